#include "transport/control/resolve.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

bool Wanted(const asio::ip::address& address, AddressFamily family) {
  return family == AddressFamily::kAny || (family == AddressFamily::kIpv6) == address.is_v6();
}

Result<Resolver::Addresses> LookUp(const std::string& host, AddressFamily family) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = family == AddressFamily::kIpv4   ? AF_INET
                    : family == AddressFamily::kIpv6 ? AF_INET6
                                                     : AF_UNSPEC;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first);
  if (error != 0) {
    return Status(Code::kUnavailable,
                  "name " + Quoted(host) + " does not resolve: " + gai_strerror(error));
  }
  Resolver::Addresses out;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    Tcp::endpoint endpoint;
    if (at->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), at->ai_addr, at->ai_addrlen);
    out.push_back(endpoint.address());
  }
  freeaddrinfo(first);
  if (out.empty()) {
    return Status(Code::kUnavailable, "name " + Quoted(host) + " has no address");
  }
  return out;
}

}  // namespace

// Shared by the Resolver and the thread; `io` is null once nobody wants the answer.
struct Resolver::Query {
  std::mutex mutex;
  asio::io_context* io = nullptr;
  OnAnswer on_answer;
};

Resolver::~Resolver() {
  if (!query_) return;
  const std::scoped_lock lock(query_->mutex);
  query_->io = nullptr;
  query_->on_answer = nullptr;
}

void Resolver::Resolve(const std::string& host, AddressFamily family, OnAnswer on_answer) {
  ErrorCode error;
  const asio::ip::address numeric = asio::ip::make_address(host, error);
  if (!error) {
    Result<Addresses> answer = Addresses{numeric};
    if (!Wanted(numeric, family)) {
      answer = Status(Code::kInvalidArgument,
                      "address " + Quoted(host) + " is not of the configured family");
    }
    asio::post(io_, [call = std::move(on_answer), answer] { call(answer); });
    return;
  }
  query_ = std::make_shared<Query>();
  query_->io = &io_;
  query_->on_answer = std::move(on_answer);
  try {
    std::thread([query = query_, host, family] {
      Result<Addresses> answer = LookUp(host, family);
      const std::scoped_lock lock(query->mutex);
      if (query->io == nullptr) return;
      asio::post(*query->io, [query, answer] {
        OnAnswer call;
        {
          const std::scoped_lock inner(query->mutex);
          call = std::move(query->on_answer);
        }
        if (call) call(answer);
      });
      query->io = nullptr;
    }).detach();
  } catch (const std::system_error&) {
    asio::post(io_, [call = std::move(query_->on_answer)] {
      call(Status(Code::kUnavailable, "no thread could be started to look up a name"));
    });
  }
}

}  // namespace optireduce::control
