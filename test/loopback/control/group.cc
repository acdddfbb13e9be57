#include "test/loopback/control/group.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "lib/check.h"

namespace optireduce::control {
namespace {

constexpr std::chrono::seconds kLongWait{20};

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

}  // namespace

Listener::Listener(const std::string& address) {
  const bool v6 = address.find(':') != std::string::npos;
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  if (v6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    in6->sin6_family = AF_INET6;
    OR_CHECK(inet_pton(AF_INET6, address.c_str(), &in6->sin6_addr) == 1);
    bytes = sizeof *in6;
  } else {
    auto* in4 = reinterpret_cast<sockaddr_in*>(&storage);
    in4->sin_family = AF_INET;
    OR_CHECK(inet_pton(AF_INET, address.c_str(), &in4->sin_addr) == 1);
    bytes = sizeof *in4;
  }
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  fd_ = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  OR_CHECK(fd_ >= 0 && bind(fd_, generic, bytes) == 0 && listen(fd_, 128) == 0);
  OR_CHECK(getsockname(fd_, generic, &bytes) == 0);
  port_ = ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

std::uint16_t FreePort() { return Listener().port(); }

Stranger::Stranger(std::uint16_t port) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = Loopback(port);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

Stranger::~Stranger() {
  if (fd_ >= 0) close(fd_);
}

void Stranger::Send(std::span<const std::byte> bytes) {
  (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void Stranger::Send(const std::string& text) {
  Send(std::as_bytes(std::span(text.data(), text.size())));
}

bool Stranger::ClosedWithin(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd entry{fd_, POLLIN, 0};
    if (left.count() <= 0 || poll(&entry, 1, static_cast<int>(left.count())) <= 0) return false;
    std::array<char, 512> input;
    if (recv(fd_, input.data(), input.size(), 0) <= 0) return true;
  }
}

void Stranger::Reset() {
  const linger now{1, 0};
  (void)setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(std::exchange(fd_, -1));
}

std::function<void(const Event&)> Events::Handler() {
  return [state = state_](const Event& event) {
    const std::scoped_lock lock(state->mutex);
    state->events.push_back(event);
    state->changed.notify_all();
  };
}

std::vector<Event> Events::WaitFor(std::size_t count) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, kLongWait, [&] { return state_->events.size() >= count; });
  return state_->events;
}

std::vector<Event> Events::Now() {
  const std::scoped_lock lock(state_->mutex);
  return state_->events;
}

Spec SpecOf(Rank rank, std::uint32_t world_size, std::uint16_t port) {
  Spec spec;
  spec.launch = {rank, world_size, "127.0.0.1", port, -1, {}, {}};
  spec.info.version = "1.0";
  spec.info.wire_config_text = "mode=exact\ntransport.path_mtu=1500\n";
  spec.info.wire_config_hash = 7;
  spec.info.host = "node" + std::to_string(rank);
  spec.bound_suffix = std::to_string(4000 + rank);
  return spec;
}

Joined Join(const Spec& spec) {
  return ControlPlane::Join(spec.launch, spec.info, spec.limit,
                            [&spec](const std::string& address) -> Result<std::string> {
                              const bool v6 = address.find(':') != std::string::npos;
                              return (v6 ? "[" + address + "]" : address) + ":" +
                                     spec.bound_suffix;
                            });
}

std::vector<Joined> JoinAll(const std::vector<Spec>& specs) {
  std::vector<std::future<Joined>> running;
  for (const Spec& spec : specs) {
    running.push_back(std::async(std::launch::async, [&spec] { return Join(spec); }));
  }
  std::vector<Joined> out;
  for (auto& one : running) out.push_back(one.get());
  return out;
}

std::vector<std::unique_ptr<ControlPlane>> MakeGroup(std::uint32_t world_size) {
  Listener listener;
  std::vector<Spec> specs;
  for (Rank rank = 0; rank < world_size; ++rank) {
    specs.push_back(SpecOf(rank, world_size, listener.port()));
  }
  specs[0].launch.listen_fd = listener.Take();
  std::vector<std::unique_ptr<ControlPlane>> out;
  for (Joined& joined : JoinAll(specs)) {
    EXPECT_TRUE(joined.ok()) << joined.status().ToString();
    out.push_back(joined.ok() ? *std::move(joined) : nullptr);
  }
  return out;
}

bool Has(const Status& status, const std::string& part) {
  return status.text().find(part) != std::string::npos;
}

}  // namespace optireduce::control
