// A signal that asks a process to show its state. The handler only wakes a thread, which calls
// whoever watches; a handler that the application has set is never replaced.
//
// Threads: any may make and destroy one, not from within `look`. One thread of the process serves
// all of them, and ends with the last. In a forked child the signal does nothing until the child
// makes one of its own.
#ifndef OPTIREDUCE_COLLECTIVES_STATE_SIGNAL_H_
#define OPTIREDUCE_COLLECTIVES_STATE_SIGNAL_H_

#include <functional>
#include <memory>

#include "optireduce/status.h"

namespace optireduce {

class StateSignal {
 public:
  // Calls `look` after each such signal, until the result is destroyed. Several signals at once are
  // one. Fails where the application has a handler of its own, or ignores the signal.
  static Result<std::unique_ptr<StateSignal>> Watch(int signal_number, std::function<void()> look);

  // Returns when `look` is not running and will not again. The last one puts the default back.
  ~StateSignal();
  StateSignal(const StateSignal&) = delete;
  StateSignal& operator=(const StateSignal&) = delete;

 private:
  struct Hub;
  friend void OnStateSignal(int);
  StateSignal(int signal_number, std::function<void()> look);
  static Hub* TheHub();

  const int signal_number_;
  const std::function<void()> look_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_STATE_SIGNAL_H_
