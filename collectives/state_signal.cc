#include "collectives/state_signal.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace optireduce {

// Never destroyed: a handler may look at it at any time.
struct StateSignal::Hub {
  void Serve();

  const pid_t owner = getpid();
  Hub* const before = hub.load();  // the parent's, in a forked child
  // Open for as long as the process lives: its number must not become another file's.
  const int wake_fd = eventfd(0, EFD_CLOEXEC);
  std::mutex changing;  // whoever watches or ceases to; taken before the other
  std::thread thread;
  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards what follows
  std::vector<StateSignal*> watches;

  static std::atomic<Hub*> hub;
};

std::atomic<StateSignal::Hub*> StateSignal::Hub::hub{nullptr};

namespace {

void Wake(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(fd, &one, sizeof one);
}

}  // namespace

void OnStateSignal(int /*signal_number*/) {
  const int saved_errno = errno;
  const StateSignal::Hub* const hub = StateSignal::Hub::hub.load();
  if (hub != nullptr && hub->owner == getpid()) Wake(hub->wake_fd);
  errno = saved_errno;
}

namespace {

bool IsOurs(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == OnStateSignal;
}

// False: the application has the signal.
bool Install(int signal_number) {
  struct sigaction ours {};
  ours.sa_handler = OnStateSignal;
  ours.sa_flags = SA_RESTART;
  struct sigaction before {};
  if (sigaction(signal_number, nullptr, &before) != 0) return false;
  if (IsOurs(before)) return true;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return false;
  return sigaction(signal_number, &ours, nullptr) == 0;
}

void Uninstall(int signal_number) {
  struct sigaction now {};
  if (sigaction(signal_number, nullptr, &now) != 0 || !IsOurs(now)) return;
  signal(signal_number, SIG_DFL);
}

}  // namespace

StateSignal::Hub* StateSignal::TheHub() {
  Hub* known = Hub::hub.load();
  while (known == nullptr || known->owner != getpid()) {
    auto made = std::make_unique<Hub>();
    if (made->wake_fd < 0) return nullptr;
    if (Hub::hub.compare_exchange_strong(known, made.get())) return made.release();
    close(made->wake_fd);
  }
  return known;
}

void StateSignal::Hub::Serve() {
  for (;;) {
    std::uint64_t count = 0;
    if (read(wake_fd, &count, sizeof count) < 0 && errno != EINTR) return;
    if (stop.load()) return;
    const std::lock_guard lock(mutex);
    for (const StateSignal* watch : watches) watch->look_();
  }
}

StateSignal::StateSignal(int signal_number, std::function<void()> look)
    : signal_number_(signal_number), look_(std::move(look)) {}

Result<std::unique_ptr<StateSignal>> StateSignal::Watch(int signal_number,
                                                        std::function<void()> look) {
  Hub* const hub = TheHub();
  if (hub == nullptr) {
    return Status(Code::kResource, std::string("open an eventfd: ") + std::strerror(errno));
  }
  // Made before the lock is taken: its destructor takes it too.
  std::unique_ptr<StateSignal> made(new StateSignal(signal_number, std::move(look)));
  const std::lock_guard changing(hub->changing);
  if (!Install(signal_number)) {
    return Status(Code::kUnavailable, std::string("the program handles or ignores signal ") +
                                          strsignal(signal_number) + " itself");
  }
  {
    const std::lock_guard lock(hub->mutex);
    hub->watches.push_back(made.get());
  }
  if (!hub->thread.joinable()) {
    // The application's signals are for the application's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    hub->thread = std::thread([hub] { hub->Serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return made;
}

StateSignal::~StateSignal() {
  Hub* const hub = Hub::hub.load();
  const std::lock_guard changing(hub->changing);
  bool last_of_signal = true;
  bool last = false;
  {
    const std::lock_guard lock(hub->mutex);
    if (std::erase(hub->watches, this) == 0) return;  // it never came to watching
    for (const StateSignal* other : hub->watches) {
      last_of_signal = last_of_signal && other->signal_number_ != signal_number_;
    }
    last = hub->watches.empty();
  }
  if (last_of_signal) Uninstall(signal_number_);
  if (!last) return;
  hub->stop = true;
  Wake(hub->wake_fd);
  hub->thread.join();
  hub->stop = false;
}

}  // namespace optireduce
