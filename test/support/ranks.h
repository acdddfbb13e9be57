// Ranks as forked processes, and what their tests share: memory, a meeting point, a listening
// socket, and limits of time that fit the machine and the build.
//
// A rank's body uses the EXPECT macros as any test does: what it expects in vain makes its process
// end with an error, which Join() reports. Nothing outlives the ForkedRanks object: processes are
// ended by their ids, memory is unmapped, the parent's signals and environment stay as they are.
//
// Threads: fork only where the parent runs one thread.
#ifndef OPTIREDUCE_TEST_SUPPORT_RANKS_H_
#define OPTIREDUCE_TEST_SUPPORT_RANKS_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "optireduce/time.h"

namespace optireduce::testing {

// How much longer things may take in this build: 1, or more under a sanitizer.
int TimeScale();
// `most`, or less where OPTIREDUCE_TEST_SEEDS asks for short tests; at least `least`.
int Rounds(int most, int least = 2);
// True where more than two running tasks share a core, with `ranks` more.
bool Crowded(int ranks);

// Of the host, so that the times of its processes can be compared.
std::int64_t HostNanos();
void SleepFor(Duration duration);

// A TCP socket that listens at a port which the kernel chose.
class Listener {
 public:
  explicit Listener(const std::string& address = "127.0.0.1");
  ~Listener() { Close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }
  int Take() { return std::exchange(fd_, -1); }
  void Close();

 private:
  int fd_ = -1;
  int port_ = 0;
};

// Bytes that a process and those it forks share; zero at first.
class SharedBytes {
 public:
  explicit SharedBytes(std::size_t bytes);
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  void* data() const { return data_; }

 private:
  const std::size_t bytes_;
  void* data_;
};

template <typename T>
class SharedArray {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  explicit SharedArray(std::size_t count) : count_(count), bytes_(count * sizeof(T)) {
    for (std::size_t i = 0; i < count; ++i) new (data() + i) T{};
  }
  std::size_t size() const { return count_; }
  T* data() const { return static_cast<T*>(bytes_.data()); }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }

 private:
  const std::size_t count_;
  const SharedBytes bytes_;
};

using SharedFlag = SharedArray<std::atomic<int>>;

// Waits until the flag has at least this value; false after `limit`, which TimeScale() stretches.
bool AwaitFlag(const std::atomic<int>& flag, int value, Duration limit = std::chrono::seconds(20));

// Where the ranks meet without sending a packet.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks), arrived_(1) {}
  // Returns when all have called it as often as this rank has.
  void Meet() const {
    const int before = arrived_[0].fetch_add(1);
    AwaitFlag(arrived_[0], (before / ranks_ + 1) * ranks_);
  }

 private:
  const int ranks_;
  SharedFlag arrived_;
};

class ForkedRanks {
 public:
  using Body = std::function<void(int rank)>;
  ForkedRanks(int ranks, const Body& body);
  // Ends what still runs.
  ~ForkedRanks();
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  void Signal(int rank, int signal);
  // Returns when the rank has stopped itself; false after a long wait.
  bool AwaitStopped(int rank);
  // Waits for all, `limit` times TimeScale() at most, and expects each to end well, but those that
  // this test has killed. True when they did.
  bool Join(Duration limit = std::chrono::seconds(60));

 private:
  struct Process {
    pid_t pid = -1;
    bool running = false;
    bool killed = false;
  };
  bool Reap(int rank, std::string* fault);
  std::vector<Process> processes_;
};

}  // namespace optireduce::testing

#endif  // OPTIREDUCE_TEST_SUPPORT_RANKS_H_
