#include "transport/sim/world.h"

#include <algorithm>
#include <utility>

#include "lib/check.h"

namespace optireduce::sim {

EventId World::Schedule(Instant at, std::function<void()> callback) {
  OR_CHECK(callback != nullptr);
  const std::uint32_t slot = Insert(at);
  slots_[slot].handler = nullptr;
  slots_[slot].callback = std::move(callback);
  return EventId{slot, sequence_};
}

EventId World::ScheduleEvent(Instant at, EventHandler* handler, std::uint32_t what,
                             std::uint64_t argument) {
  OR_CHECK(handler != nullptr);
  const std::uint32_t slot = Insert(at);
  slots_[slot].handler = handler;
  slots_[slot].what = what;
  slots_[slot].argument = argument;
  return EventId{slot, sequence_};
}

bool World::Cancel(EventId id) {
  if (id.sequence == 0 || id.slot >= slots_.size() || slots_[id.slot].sequence != id.sequence) {
    return false;
  }
  Release(id.slot);
  Compact();
  return true;
}

void World::CancelAll(const EventHandler* handler) {
  OR_CHECK(handler != nullptr);
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].sequence != 0 && slots_[slot].handler == handler) Release(slot);
  }
  Compact();
}

bool World::Step() {
  SkipStale();
  if (heap_.empty()) return false;
  const Entry entry = heap_.front();
  PopEntry();
  OR_CHECK(entry.at >= now_);
  now_ = entry.at;
  ++events_run_;
  // The slot is free before the event runs: what runs may schedule, and may grow slots_.
  Slot& slot = slots_[entry.slot];
  if (slot.handler != nullptr) {
    EventHandler* const handler = slot.handler;
    const std::uint32_t what = slot.what;
    const std::uint64_t argument = slot.argument;
    Release(entry.slot);
    handler->OnEvent(what, argument);
  } else {
    const std::function<void()> callback = std::move(slot.callback);
    Release(entry.slot);
    callback();
  }
  return true;
}

std::uint64_t World::RunUntil(Instant end) {
  OR_CHECK(end != kNever);
  const std::uint64_t before = events_run_;
  while (next_event() <= end && !idle()) Step();
  now_ = std::max(now_, end);
  return events_run_ - before;
}

std::uint64_t World::RunUntilIdle(std::uint64_t events_max) {
  std::uint64_t events = 0;
  while (events < events_max && Step()) ++events;
  return events;
}

Instant World::next_event() {
  SkipStale();
  return heap_.empty() ? kNever : heap_.front().at;
}

std::uint32_t World::Insert(Instant at) {
  OR_CHECK(at != kNever);
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot].sequence = ++sequence_;
  heap_.push_back(Entry{std::max(at, now_), sequence_, slot});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
  ++pending_;
  return slot;
}

void World::Release(std::uint32_t slot) {
  slots_[slot].sequence = 0;
  if (slots_[slot].handler == nullptr) slots_[slot].callback = nullptr;
  slots_[slot].handler = nullptr;
  free_slots_.push_back(slot);
  --pending_;
}

void World::PopEntry() {
  std::pop_heap(heap_.begin(), heap_.end(), Later{});
  heap_.pop_back();
}

void World::SkipStale() {
  while (!heap_.empty() && Stale(heap_.front())) PopEntry();
}

void World::Compact() {
  // Small heaps clear themselves; the limit keeps the cost of cancelling constant on average.
  if (heap_.size() < 64 || heap_.size() < 2 * pending_) return;
  std::erase_if(heap_, [this](const Entry& entry) { return Stale(entry); });
  std::make_heap(heap_.begin(), heap_.end(), Later{});
}

}  // namespace optireduce::sim
