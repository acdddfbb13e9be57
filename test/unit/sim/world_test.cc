#include "transport/sim/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lib/random.h"

namespace optireduce::sim {
namespace {

// Remembers what it was called with, and when.
class Recorder : public EventHandler {
 public:
  explicit Recorder(World* world) : world_(world) {}
  void OnEvent(std::uint32_t what, std::uint64_t argument) override {
    whats.push_back(what);
    arguments.push_back(argument);
    instants.push_back(Nanos(world_->now()));
  }
  std::vector<std::uint32_t> whats;
  std::vector<std::uint64_t> arguments;
  std::vector<std::int64_t> instants;

 private:
  World* world_;
};

TEST(World, RunsEventsInOrderOfInstant) {
  World world;
  std::vector<int> order;
  world.Schedule(InstantFromNanos(30), [&] { order.push_back(3); });
  world.Schedule(InstantFromNanos(10), [&] { order.push_back(1); });
  world.Schedule(InstantFromNanos(20), [&] { order.push_back(2); });
  EXPECT_EQ(world.pending(), 3u);
  EXPECT_EQ(world.next_event(), InstantFromNanos(10));
  EXPECT_EQ(world.RunUntilIdle(100), 3u);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(Nanos(world.now()), 30);
  EXPECT_EQ(world.next_event(), kNever);
}

TEST(World, RunsEventsOfOneInstantInOrderOfInsertion) {
  World world;
  Recorder recorder(&world);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    world.ScheduleEvent(InstantFromNanos(static_cast<std::int64_t>(i % 3)), &recorder, 7, i);
  }
  world.RunUntilIdle(1000);
  ASSERT_EQ(recorder.arguments.size(), 1000u);
  for (std::size_t i = 1; i < 1000; ++i) {
    const auto before = std::pair{recorder.instants[i - 1], recorder.arguments[i - 1]};
    EXPECT_LT(before, (std::pair{recorder.instants[i], recorder.arguments[i]}));
  }
  EXPECT_EQ(recorder.whats.front(), 7u);
}

TEST(World, AnInstantThatIsPastMeansAtOnceButLast) {
  World world;
  std::vector<int> order;
  world.Schedule(InstantFromNanos(50), [&] {
    order.push_back(1);
    world.Schedule(InstantFromNanos(10), [&] { order.push_back(3); });
  });
  world.Schedule(InstantFromNanos(50), [&] { order.push_back(2); });
  world.RunUntilIdle(10);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(Nanos(world.now()), 50);
}

TEST(World, RunUntilIncludesItsEndAndLeavesTheClockThere) {
  World world;
  int runs = 0;
  world.Schedule(InstantFromNanos(100), [&] { ++runs; });
  world.Schedule(InstantFromNanos(101), [&] { ++runs; });
  EXPECT_EQ(world.RunUntil(InstantFromNanos(99)), 0u);
  EXPECT_EQ(Nanos(world.now()), 99);
  EXPECT_EQ(world.RunUntil(InstantFromNanos(100)), 1u);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(world.RunUntil(InstantFromNanos(500)), 1u);
  EXPECT_EQ(Nanos(world.now()), 500);
  EXPECT_EQ(world.RunUntil(InstantFromNanos(400)), 0u);
  EXPECT_EQ(Nanos(world.now()), 500) << "the clock went back";
}

TEST(World, RunsEventsThatEventsSchedule) {
  World world;
  int depth = 0;
  std::function<void()> again = [&] {
    if (++depth < 100) world.Schedule(world.now() + Duration{5}, again);
  };
  world.Schedule(InstantFromNanos(5), again);
  EXPECT_EQ(world.RunUntil(InstantFromNanos(500)), 100u);
  EXPECT_EQ(depth, 100);
  EXPECT_TRUE(world.idle());
  EXPECT_FALSE(world.Step());
}

TEST(World, ACancelledEventDoesNotRun) {
  World world;
  int runs = 0;
  const EventId first = world.Schedule(InstantFromNanos(1), [&] { ++runs; });
  const EventId second = world.Schedule(InstantFromNanos(2), [&] { runs += 10; });
  EXPECT_TRUE(world.Cancel(first));
  EXPECT_FALSE(world.Cancel(first)) << "twice";
  EXPECT_EQ(world.next_event(), InstantFromNanos(2));
  world.RunUntilIdle(10);
  EXPECT_EQ(runs, 10);
  EXPECT_FALSE(world.Cancel(second)) << "after it ran";
  EXPECT_FALSE(world.Cancel(EventId{}));
}

TEST(World, AnOldIdDoesNotCancelTheNextUserOfItsSlot) {
  World world;
  int runs = 0;
  const EventId old_id = world.Schedule(InstantFromNanos(1), [] {});
  world.Cancel(old_id);
  const EventId new_id = world.Schedule(InstantFromNanos(1), [&] { ++runs; });
  ASSERT_EQ(old_id.slot, new_id.slot);
  EXPECT_FALSE(world.Cancel(old_id));
  world.RunUntilIdle(10);
  EXPECT_EQ(runs, 1);
}

TEST(World, CancelAllIsForOneHandler) {
  World world;
  Recorder gone(&world);
  Recorder stays(&world);
  for (std::uint64_t i = 0; i < 100; ++i) {
    world.ScheduleEvent(InstantFromNanos(10), &gone, 0, i);
    world.ScheduleEvent(InstantFromNanos(10), &stays, 0, i);
  }
  world.CancelAll(&gone);
  EXPECT_EQ(world.pending(), 100u);
  EXPECT_EQ(world.RunUntilIdle(1000), 100u);
  EXPECT_TRUE(gone.arguments.empty());
  EXPECT_EQ(stays.arguments.size(), 100u);
}

// Against a model: an ordered list of (instant, insertion), with random cancels.
TEST(World, KeepsItsOrderUnderRandomCancels) {
  World world;
  Recorder recorder(&world);
  Stream stream(3, 0, "world test");
  std::vector<std::pair<std::int64_t, std::uint64_t>> expected;
  std::vector<EventId> ids;
  std::vector<std::int64_t> instants;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    instants.push_back(static_cast<std::int64_t>(stream.Below(700)));
    ids.push_back(world.ScheduleEvent(InstantFromNanos(instants.back()), &recorder, 0, i));
  }
  for (std::uint64_t i = 0; i < 5000; ++i) {
    if (stream.Chance(0.8)) {
      EXPECT_TRUE(world.Cancel(ids[i]));
    } else {
      expected.emplace_back(instants[i], i);
    }
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(world.pending(), expected.size());
  world.RunUntilIdle(10'000);
  ASSERT_EQ(recorder.arguments.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(recorder.instants[i], expected[i].first);
    EXPECT_EQ(recorder.arguments[i], expected[i].second);
  }
}

TEST(World, RunUntilIdleStopsAtItsLimit) {
  World world;
  std::function<void()> for_ever = [&] { world.Schedule(world.now() + Duration{1}, for_ever); };
  world.Schedule(InstantFromNanos(0), for_ever);
  EXPECT_EQ(world.RunUntilIdle(1'000'000), 1'000'000u);
  EXPECT_FALSE(world.idle());
  EXPECT_EQ(world.events_run(), 1'000'000u);
}

}  // namespace
}  // namespace optireduce::sim
