#include "collectives/driver.h"

#include <algorithm>

namespace optireduce {
namespace {

using std::chrono::milliseconds;

// A sleep never lasts longer, whatever the engine says.
constexpr Duration kSleepMax = milliseconds(100);
// The thread takes over from callers when none has come back for this long.
constexpr Duration kTakeOver = milliseconds(1);
constexpr int kShortParks = 4;

}  // namespace

Instant MonotonicNow() {
  return Instant{std::chrono::duration_cast<Duration>(
      std::chrono::steady_clock::now().time_since_epoch())};
}

Driver::Driver(Engine* engine, PacketPort* port, Duration spin_max)
    : engine_(engine), port_(port), spin_max_(spin_max) {}

Driver::~Driver() { Stop(Duration{0}); }

void Driver::Start() { thread_ = std::thread([this] { Run(); }); }

void Driver::Notify() { port_->Wake(); }

bool Driver::Spin(Instant& now) {
  if (engine_->Settled()) return false;  // nothing is awaited
  const Instant until = now + spin_max_;
  do {
    std::this_thread::yield();  // whoever else wants this core goes first
    now = MonotonicNow();
    if (engine_->Turn(now)) {
      spin_.Found();
      return true;
    }
  } while (now < until);
  spin_.FoundNothing();
  return false;
}

void Driver::TurnOrSleep(Instant limit) {
  Instant now = MonotonicNow();
  if (engine_->Turn(now)) return;
  if (spin_max_ > Duration{0} && spin_.Due() && Spin(now)) return;
  const Instant wake = std::min(engine_->NextWake(), limit);
  port_->Wait(std::clamp<Duration>(wake - std::min(now, wake), Duration{0}, kSleepMax));
}

void Driver::NoteProgress() {
  { const std::lock_guard lock(mutex_); }  // nobody is between its check and its wait
  progress_.notify_all();
}

void Driver::OnCallEnd(Call& call) {
  call.finished.store(true, std::memory_order_release);
  NoteProgress();
}

// Waits until no caller turns the engine. A short wait is looked at again by time, which is cheaper
// than a wake-up per op; in a long one the last caller to leave wakes the thread.
void Driver::Park() {
  std::unique_lock lock(mutex_);
  for (int round = 0; round < kShortParks; ++round) {
    parked_.wait_for(lock, kTakeOver);
    if (callers_.load(std::memory_order_acquire) == 0 || stop_) return;
  }
  long_parked_.store(true, std::memory_order_seq_cst);
  parked_.wait(lock, [this] { return callers_.load(std::memory_order_seq_cst) == 0 || stop_; });
  long_parked_.store(false, std::memory_order_relaxed);
}

void Driver::Run() {
  while (!stop_.load(std::memory_order_acquire)) {
    if (callers_.load(std::memory_order_acquire) > 0) {
      Park();
      continue;
    }
    {
      const std::lock_guard lock(turning_);
      while (!stop_.load(std::memory_order_acquire) &&
             callers_.load(std::memory_order_acquire) == 0) {
        TurnOrSleep(kNever);
      }
    }
    NoteProgress();
  }
}

bool Driver::TryTakeOver(std::unique_lock<std::mutex>& turn, const Call* call) {
  if (turn.try_lock()) return true;
  port_->Wake();  // the thread, asleep in the kernel, makes way
  std::unique_lock lock(mutex_);
  // Whoever lets go of the engine, or ends a call, takes this mutex before it notifies.
  if (turn.try_lock()) return true;
  if (call == nullptr || !call->finished.load(std::memory_order_acquire)) {
    progress_.wait_for(lock, kTakeOver);
  }
  return false;
}

void Driver::Await(Call& call) {
  callers_.fetch_add(1, std::memory_order_acq_rel);
  std::unique_lock turn(turning_, std::defer_lock);
  while (!call.finished.load(std::memory_order_acquire)) {
    if (turn.owns_lock() && looking_.load(std::memory_order_acquire) > 0) {
      turn.unlock();  // whoever only wants to look goes first
      NoteProgress();
      std::this_thread::yield();
    }
    if (turn.owns_lock() || TryTakeOver(turn, &call)) TurnOrSleep(kNever);
  }
  Leave(turn);
}

void Driver::AwaitRoom() {
  callers_.fetch_add(1, std::memory_order_acq_rel);
  std::unique_lock turn(turning_, std::defer_lock);
  if (TryTakeOver(turn, nullptr)) TurnOrSleep(MonotonicNow() + kTakeOver);
  Leave(turn);
}

void Driver::Inspect(const std::function<void()>& look) {
  callers_.fetch_add(1, std::memory_order_acq_rel);
  looking_.fetch_add(1, std::memory_order_acq_rel);
  std::unique_lock turn(turning_, std::defer_lock);
  while (!TryTakeOver(turn, nullptr)) {
  }
  looking_.fetch_sub(1, std::memory_order_acq_rel);
  look();
  Leave(turn);
}

void Driver::Leave(std::unique_lock<std::mutex>& turn) {
  const bool last = callers_.fetch_sub(1, std::memory_order_seq_cst) == 1;
  if (turn.owns_lock()) {
    turn.unlock();
    NoteProgress();
  }
  if (last && long_parked_.load(std::memory_order_seq_cst)) {
    { const std::lock_guard lock(mutex_); }
    parked_.notify_one();
  }
}

void Driver::Stop(Duration linger) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true, std::memory_order_release);
  }
  parked_.notify_all();
  port_->Wake();
  thread_.join();
  const std::lock_guard lock(turning_);
  const Instant until = MonotonicNow() + linger;
  Instant ask_at = MonotonicNow();
  for (Instant now = ask_at; !engine_->Settled() && now < until; now = MonotonicNow()) {
    if (now >= ask_at) {
      engine_->AskToSettle(now);
      ask_at = now + milliseconds(10);
    }
    TurnOrSleep(std::min(ask_at, until));
  }
}

void Driver::EndAll(const Status& cause) {
  engine_->PostFailure(cause);
  const std::lock_guard lock(turning_);
  // Bounded: a network that takes nothing more must not hold up the end of the process.
  const Instant until = MonotonicNow() + milliseconds(200);
  for (Instant now = MonotonicNow(); !engine_->Settled() && now < until; now = MonotonicNow()) {
    TurnOrSleep(now + milliseconds(1));
  }
}

}  // namespace optireduce
