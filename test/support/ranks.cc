#include "test/support/ranks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "lib/check.h"
#include "lib/environment.h"

namespace optireduce::testing {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(1);

std::int64_t SeedsAsked() {
  const std::vector<std::string> environment = ReadEnvironment();
  const std::optional<std::string> text = FindVariable(environment, "OPTIREDUCE_TEST_SEEDS");
  const int seeds = text ? std::atoi(text->c_str()) : 0;
  return seeds > 0 ? seeds : 200;
}

}  // namespace

int TimeScale() {
#if defined(__SANITIZE_THREAD__)
  return 10;
#elif defined(__SANITIZE_ADDRESS__)
  return 5;
#else
  return 1;
#endif
}

int Rounds(int most, int least) {
  const auto share = static_cast<int>(most * std::min<std::int64_t>(SeedsAsked(), 200) / 200);
  return std::clamp(share, std::min(least, most), most);
}

bool Crowded(int ranks) {
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = 0;
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  return std::max(load[0], static_cast<double>(ranks)) > 2 * cores;
}

std::int64_t HostNanos() {
  timespec now{};
  OR_CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void SleepFor(Duration duration) { std::this_thread::sleep_for(duration); }

bool AwaitFlag(const std::atomic<int>& flag, int value, Duration limit) {
  const std::int64_t until = HostNanos() + limit.count() * TimeScale();
  while (flag.load() < value) {
    if (HostNanos() > until) {
      ADD_FAILURE() << "waited in vain for a flag of " << value << ", it is " << flag.load();
      return false;
    }
    SleepFor(kLook);
  }
  return true;
}

Listener::Listener(const std::string& address) {
  const bool v6 = address.find(':') != std::string::npos;
  fd_ = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  OR_CHECK(fd_ >= 0);
  sockaddr_storage storage{};
  auto* const any = reinterpret_cast<sockaddr*>(&storage);
  auto* const v4_address = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6_address = reinterpret_cast<sockaddr_in6*>(&storage);
  storage.ss_family = v6 ? AF_INET6 : AF_INET;
  OR_CHECK(inet_pton(storage.ss_family, address.c_str(),
                     v6 ? static_cast<void*>(&v6_address->sin6_addr)
                        : static_cast<void*>(&v4_address->sin_addr)) == 1);
  socklen_t length = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  OR_CHECK(bind(fd_, any, length) == 0 && listen(fd_, 64) == 0);
  OR_CHECK(getsockname(fd_, any, &length) == 0);
  port_ = ntohs(v6 ? v6_address->sin6_port : v4_address->sin_port);
}

void Listener::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

SharedBytes::SharedBytes(std::size_t bytes)
    : bytes_(std::max<std::size_t>(bytes, 1)),
      data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
  OR_CHECK(data_ != MAP_FAILED);
}

SharedBytes::~SharedBytes() { munmap(data_, bytes_); }

ForkedRanks::ForkedRanks(int ranks, const Body& body)
    : processes_(static_cast<std::size_t>(ranks)) {
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    Process& process = processes_[static_cast<std::size_t>(rank)];
    process.pid = fork();
    OR_CHECK(process.pid >= 0);
    if (process.pid == 0) {
      body(rank);
      std::fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    process.running = true;
  }
}

ForkedRanks::~ForkedRanks() {
  for (Process& process : processes_) {
    if (!process.running) continue;
    kill(process.pid, SIGKILL);
    while (waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void ForkedRanks::Signal(int rank, int signal) {
  Process& process = processes_[static_cast<std::size_t>(rank)];
  OR_CHECK(process.running);
  if (signal == SIGKILL) process.killed = true;
  kill(process.pid, signal);
}

bool ForkedRanks::AwaitStopped(int rank) {
  const std::int64_t until = HostNanos() + std::int64_t{20'000'000'000} * TimeScale();
  const pid_t pid = processes_[static_cast<std::size_t>(rank)].pid;
  while (HostNanos() < until) {
    int status = 0;
    if (waitpid(pid, &status, WUNTRACED | WNOHANG) == pid) return WIFSTOPPED(status);
    SleepFor(kLook);
  }
  return false;
}

// True when the rank has ended; `fault` says what was wrong with its end.
bool ForkedRanks::Reap(int rank, std::string* fault) {
  Process& process = processes_[static_cast<std::size_t>(rank)];
  int status = 0;
  if (waitpid(process.pid, &status, WNOHANG) != process.pid) return false;
  process.running = false;
  if (WIFSIGNALED(status)) {
    if (!process.killed || WTERMSIG(status) != SIGKILL) {
      *fault = "ended by signal " + std::to_string(WTERMSIG(status));
    }
  } else if (WEXITSTATUS(status) != 0) {
    *fault = "failed with status " + std::to_string(WEXITSTATUS(status));
  }
  return true;
}

bool ForkedRanks::Join(Duration limit) {
  const std::int64_t until = HostNanos() + limit.count() * TimeScale();
  bool good = true;
  for (bool any = true; any;) {
    any = false;
    const bool over = HostNanos() > until;
    for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
      Process& process = processes_[static_cast<std::size_t>(rank)];
      if (!process.running) continue;
      std::string fault;
      if (!Reap(rank, &fault)) {
        any = true;
        if (over && !process.killed) {
          fault = "did not end in time and was killed";
          Signal(rank, SIGKILL);
        }
      }
      if (!fault.empty()) {
        good = false;
        ADD_FAILURE() << "rank " << rank << " " << fault;
      }
    }
    if (any) SleepFor(kLook);
  }
  return good;
}

}  // namespace optireduce::testing
