// A master's name into addresses, without ever holding up the control thread: the system's look-up
// may take many seconds and cannot be cancelled, so it runs on a detached thread of its own that
// owns all it touches. Only the thread that runs the io_context may use a Resolver; destroying it
// at any time is fine, the answer is then dropped.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_RESOLVE_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_RESOLVE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/settings.h"
#include "optireduce/status.h"
#include "transport/control/asio.h"

namespace optireduce::control {

class Resolver {
 public:
  using Addresses = std::vector<asio::ip::address>;
  using OnAnswer = std::function<void(Result<Addresses>)>;

  explicit Resolver(asio::io_context& io) : io_(io) {}
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // One at a time. `on_answer` is called later on the control thread.
  void Resolve(const std::string& host, AddressFamily family, OnAnswer on_answer);

 private:
  struct Query;

  asio::io_context& io_;
  std::shared_ptr<Query> query_;
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_RESOLVE_H_
