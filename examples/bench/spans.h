// What a rank did when, for --trace: nested spans of one rank, by its own clock. All ranks make the
// same spans in the same order, so that only their times need to be gathered.
//
// One thread. Does nothing at all unless turned on.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_SPANS_H_
#define OPTIREDUCE_EXAMPLES_BENCH_SPANS_H_

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/trace_events.h"

namespace optireduce::bench {

class Spans {
 public:
  // Later spans are left out.
  static constexpr std::size_t kSpansMax = 20'000;

  // From here on times count, and spans are kept.
  void TurnOn() {
    on_ = true;
    start_ = Clock::now();
  }

  // A span as long as the object lives, or until End().
  class Scope {
   public:
    Scope(Spans* spans, std::string name) : spans_(spans), index_(spans->Begin(std::move(name))) {}
    ~Scope() { End(); }
    void End() {
      if (spans_ != nullptr) std::exchange(spans_, nullptr)->End(index_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Spans* spans_;
    const std::size_t index_;
  };

  bool on() const { return on_; }
  // Start and duration of each, in microseconds.
  const std::vector<double>& times() const { return times_us_; }

  // The trace of all ranks: the names of this one, and times() of one after the other.
  std::string Json(std::span<const double> times_us, std::span<const std::string> hosts) const {
    TraceEvents events(hosts.size() * (names_.size() + 1));
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      events.NameRank(rank, "rank " + std::to_string(rank) + " (" + hosts[rank] + ")");
      const auto own = times_us.subspan(rank * times_us_.size(), times_us_.size());
      for (std::size_t i = 0; i < names_.size(); ++i) {
        events.Span(rank, 0, names_[i], own[2 * i], own[2 * i + 1]);
      }
    }
    return events.Json();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kNone = ~std::size_t{0};

  double Now() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - start_).count();
  }
  std::size_t Begin(std::string name) {
    if (!on_ || names_.size() >= kSpansMax) return kNone;
    names_.push_back(std::move(name));
    times_us_.push_back(Now());
    times_us_.push_back(0);
    return names_.size() - 1;
  }
  void End(std::size_t index) {
    if (index != kNone) times_us_[2 * index + 1] = Now() - times_us_[2 * index];
  }

  bool on_ = false;
  Clock::time_point start_{};
  std::vector<std::string> names_;
  std::vector<double> times_us_;  // start, duration, start, ...
};

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_SPANS_H_
