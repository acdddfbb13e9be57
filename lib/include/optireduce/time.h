// Instants and durations of the injected monotonic clock, in integer nanoseconds.
//
// The protocol core never asks what time it is: `now` comes in as an argument. `MonotonicClock`
// below is only a tag that keeps our instants apart from those of every other clock; it has no
// now() on purpose. Drivers (threads, the simulator) make instants from what they have.
#ifndef OPTIREDUCE_TIME_H_
#define OPTIREDUCE_TIME_H_

#include <chrono>
#include <cstdint>

namespace optireduce {

using Duration = std::chrono::nanoseconds;

struct MonotonicClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
};

// A point in time of this process's monotonic clock. Instants of two hosts are never compared.
using Instant = MonotonicClock::time_point;

// "Never": later than every instant that occurs.
inline constexpr Instant kNever = Instant::max();

constexpr Instant InstantFromNanos(std::int64_t ns) { return Instant{Duration{ns}}; }
constexpr std::int64_t Nanos(Instant t) { return t.time_since_epoch().count(); }

}  // namespace optireduce

#endif  // OPTIREDUCE_TIME_H_
