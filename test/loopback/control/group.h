// Ranks as threads of one process, each with a ControlPlane of its own, for the tests beside this.
#ifndef OPTIREDUCE_TEST_LOOPBACK_CONTROL_GROUP_H_
#define OPTIREDUCE_TEST_LOOPBACK_CONTROL_GROUP_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/control/control.h"

namespace optireduce::control {

// A TCP socket that listens at a port the kernel chose, which nobody else can take meanwhile.
class Listener {
 public:
  explicit Listener(const std::string& address = "127.0.0.1");
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  std::uint16_t port() const { return port_; }
  // Gives the socket away.
  int Take() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

// A port that was free a moment ago; a listener on it is made by the master itself.
std::uint16_t FreePort();

// A client that is none of ours.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port);
  ~Stranger();
  Stranger(Stranger&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  bool connected() const { return fd_ >= 0; }
  void Send(std::span<const std::byte> bytes);
  void Send(const std::string& text);
  // Whether the other side closes within `limit`.
  bool ClosedWithin(std::chrono::milliseconds limit);
  void Reset();  // closes with RST

 private:
  int fd_ = -1;
};

// What one rank heard, in order; waits for what is to come.
class Events {
 public:
  std::function<void(const Event&)> Handler();
  // The events, once there are `count`, or what is there at the end of a long wait.
  std::vector<Event> WaitFor(std::size_t count);
  std::vector<Event> Now();

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Event> events;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

using Joined = Result<std::unique_ptr<ControlPlane>>;

// The parameters of one rank; the tests change what they are about.
struct Spec {
  Launch launch;
  LocalInfo info;
  Duration limit = std::chrono::seconds(20);
  std::string bound_suffix;  // replaces the port in what bind_data gives
};

Spec SpecOf(Rank rank, std::uint32_t world_size, std::uint16_t port);
Joined Join(const Spec& spec);
// All at once, each on its thread; in the order of `specs`.
std::vector<Joined> JoinAll(const std::vector<Spec>& specs);
// A whole group, rank 0 with an adopted listener.
std::vector<std::unique_ptr<ControlPlane>> MakeGroup(std::uint32_t world_size);

bool Has(const Status& status, const std::string& part);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TEST_LOOPBACK_CONTROL_GROUP_H_
