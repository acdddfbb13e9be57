// Who turns the engine: a thread that blocks in the kernel until the engine's next wake, or a
// caller that waits for its own op and turns it meanwhile, which saves a hand-over between threads.
// Before it sleeps, it looks for packets for at most option `spin`, where that has paid lately.
//
// Threads: Start and Stop from the communicator's owner; Await and Notify from any.
#ifndef OPTIREDUCE_COLLECTIVES_DRIVER_H_
#define OPTIREDUCE_COLLECTIVES_DRIVER_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "collectives/call.h"
#include "collectives/engine.h"
#include "collectives/spin.h"
#include "optireduce/time.h"
#include "transport/packet_io.h"

namespace optireduce {

// This process's monotonic clock.
Instant MonotonicNow();

class Driver {
 public:
  Driver(Engine* engine, PacketPort* port, Duration spin_max);
  ~Driver();

  void Start();
  // Serves the peers until they have all they need, at most `linger`; then ends the thread.
  void Stop(Duration linger);
  // After Stop(): ends every call that has not ended, with this cause.
  void EndAll(const Status& cause);

  // Returns when the call has ended; turns the engine itself where nobody else does.
  void Await(Call& call);
  // Something was posted to the engine.
  void Notify();
  // Moves packets for a while, for a caller whom the engine has no room for.
  void AwaitRoom();
  // Runs `look` while nobody turns the engine.
  void Inspect(const std::function<void()>& look);
  // The engine has ended the call: releases whoever awaits it.
  void OnCallEnd(Call& call);

 private:
  void Run();
  void Park();
  // Turns once; sleeps when there was nothing to do, at most until `limit`. Holds turning_.
  void TurnOrSleep(Instant limit);
  // Looks for packets; true: something was done. `now` moves on. Holds turning_.
  bool Spin(Instant& now);

  Engine* const engine_;
  PacketPort* const port_;
  const Duration spin_max_;
  AdaptiveSpin spin_;  // guarded by turning_

  void NoteProgress();
  // Takes the engine from its thread; false after a moment in which nobody let go of it, or when
  // `call` has ended.
  bool TryTakeOver(std::unique_lock<std::mutex>& turn, const Call* call);
  void Leave(std::unique_lock<std::mutex>& turn);

  std::mutex turning_;  // whoever holds it turns the engine
  std::atomic<int> callers_{0};  // that want to turn, or do
  std::atomic<int> looking_{0};      // of these, that only want to look
  std::atomic<bool> long_parked_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;                  // for the two below
  std::condition_variable progress_;  // a call has ended, or nobody turns the engine any more
  std::condition_variable parked_;    // the thread, while callers turn
  std::thread thread_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_DRIVER_H_
