// The simulated world: one clock and one queue of events.
//
// Events run in the order of (instant, insertion), which is a total order: two runs that schedule
// the same events run them in the same order. The clock stands still while an event runs and jumps
// to the next event's instant; nothing here looks at a real clock.
//
// Threads: one thread owns a World and everything that schedules in it.
// Does not: run anything by itself. Someone calls Step() or RunUntil().
#ifndef OPTIREDUCE_TRANSPORT_SIM_WORLD_H_
#define OPTIREDUCE_TRANSPORT_SIM_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "optireduce/time.h"

namespace optireduce::sim {

// Receives events that carry no closure: the way of everything that happens once per packet.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  // `what` and `argument` are those that the event was scheduled with.
  virtual void OnEvent(std::uint32_t what, std::uint64_t argument) = 0;
};

// Names one scheduled event, for Cancel(). A default one names none.
struct EventId {
  std::uint32_t slot = 0;
  std::uint64_t sequence = 0;
};

class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Instant now() const { return now_; }

  // Runs `callback` at `at`, or at once (after what is already due) when `at` is past. `at` is not
  // kNever. May allocate; things that happen per packet use ScheduleEvent().
  EventId Schedule(Instant at, std::function<void()> callback);

  // The same for handler->OnEvent(what, argument), without allocation once the queue has grown.
  // The handler outlives the event, or calls CancelAll().
  EventId ScheduleEvent(Instant at, EventHandler* handler, std::uint32_t what,
                        std::uint64_t argument);

  // False: the event has run, was cancelled before, or never was.
  bool Cancel(EventId id);
  // Cancels every event of this handler (looks at the whole queue).
  void CancelAll(const EventHandler* handler);

  // Runs the next event. False: there is none, and the clock has not moved.
  bool Step();

  // Runs every event up to and including `end`, then sets the clock to `end` (when that is not
  // past). Returns how many events ran.
  std::uint64_t RunUntil(Instant end);

  // Runs until nothing is scheduled, or until `events_max` events have run. Returns how many ran;
  // idle() tells which it was.
  std::uint64_t RunUntilIdle(std::uint64_t events_max);

  bool idle() const { return pending_ == 0; }
  std::size_t pending() const { return pending_; }
  Instant next_event();  // kNever when idle
  std::uint64_t events_run() const { return events_run_; }

 private:
  // What the heap moves around: small, and ordered without looking at the slot.
  struct Entry {
    Instant at;
    std::uint64_t sequence;
    std::uint32_t slot;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  struct Slot {
    std::uint64_t sequence = 0;  // 0: free
    EventHandler* handler = nullptr;
    std::uint64_t argument = 0;
    std::uint32_t what = 0;
    std::function<void()> callback;  // used when there is no handler
  };

  std::uint32_t Insert(Instant at);
  void Release(std::uint32_t slot);
  bool Stale(const Entry& entry) const { return slots_[entry.slot].sequence != entry.sequence; }
  void PopEntry();
  // Drops cancelled entries from the head, so that the head is the next event.
  void SkipStale();
  // Drops all cancelled entries when they are most of the heap.
  void Compact();

  Instant now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t events_run_ = 0;
  std::size_t pending_ = 0;  // entries that are not cancelled
  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_TRANSPORT_SIM_WORLD_H_
