// What members of a group hear of each other.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "test/loopback/control/group.h"

namespace optireduce::control {
namespace {

using std::chrono::milliseconds;
using Group = std::vector<std::unique_ptr<ControlPlane>>;

std::vector<Events> Watch(const Group& group) {
  std::vector<Events> out(group.size());
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    group[rank]->SetEventHandler(out[rank].Handler());
  }
  return out;
}

TEST(ControlEventsTest, ARankThatEndsWithoutByeIsLostOnAllOthers) {
  Group group = MakeGroup(4);
  std::vector<Events> events = Watch(group);
  group[2].reset();
  for (const Rank rank : {0u, 1u, 3u}) {
    const std::vector<Event> heard = events[rank].WaitFor(1);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].kind, Event::Kind::kPeerLost);
    EXPECT_EQ(heard[0].rank, 2u);
    EXPECT_EQ(heard[0].status.code(), Code::kPeerLost);
    EXPECT_TRUE(Has(heard[0].status, "rank 2")) << heard[0].status.text();
    EXPECT_TRUE(Has(heard[0].status, "node2")) << heard[0].status.text();
  }
}

TEST(ControlEventsTest, ALostMasterIsLostOnAllOthers) {
  Group group = MakeGroup(4);
  std::vector<Events> events = Watch(group);
  group[0].reset();
  for (const Rank rank : {1u, 2u, 3u}) {
    const std::vector<Event> heard = events[rank].WaitFor(1);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].kind, Event::Kind::kPeerLost);
    EXPECT_EQ(heard[0].rank, 0u);
  }
  // Nobody relays any more, but a rank can still end its own ops.
  group[1]->Abort(Status(Code::kPeerLost, "rank 0 is gone"));
  const std::vector<Event> heard = events[1].WaitFor(2);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[1].kind, Event::Kind::kAborted);
  EXPECT_EQ(heard[1].rank, 1u);
}

TEST(ControlEventsTest, AByeIsNoLoss) {
  Group group = MakeGroup(4);
  std::vector<Events> events = Watch(group);
  group[3]->Leave(milliseconds(5000));
  group[3].reset();
  for (const Rank rank : {0u, 1u, 2u}) {
    const std::vector<Event> heard = events[rank].WaitFor(1);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].kind, Event::Kind::kPeerLeft);
    EXPECT_EQ(heard[0].rank, 3u);
    EXPECT_TRUE(heard[0].status.ok());
  }
  EXPECT_TRUE(events[3].Now().empty());
}

TEST(ControlEventsTest, TheMasterMayLeaveFirst) {
  Group group = MakeGroup(3);
  std::vector<Events> events = Watch(group);
  group[0]->Leave(milliseconds(0));
  group[0].reset();
  for (const Rank rank : {1u, 2u}) {
    const std::vector<Event> heard = events[rank].WaitFor(1);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].kind, Event::Kind::kPeerLeft);
    EXPECT_EQ(heard[0].rank, 0u);
  }
  group[1]->Leave(milliseconds(5000));
  group[2]->Leave(milliseconds(5000));
  EXPECT_EQ(events[1].Now().size(), 1u);
}

TEST(ControlEventsTest, AMasterThatLeavesRelaysUntilTheOthersHaveLeft) {
  Group group = MakeGroup(3);
  std::vector<Events> events = Watch(group);
  std::thread leaving([&] { group[0]->Leave(std::chrono::seconds(60)); });
  EXPECT_EQ(events[1].WaitFor(1).size(), 1u);
  EXPECT_EQ(events[2].WaitFor(1).size(), 1u);
  group[2].reset();
  const std::vector<Event> heard = events[1].WaitFor(2);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[1].kind, Event::Kind::kPeerLost);
  EXPECT_EQ(heard[1].rank, 2u);
  group[1]->Leave(milliseconds(5000));
  leaving.join();  // at once, not after a minute
}

TEST(ControlEventsTest, AllMayLeaveAtOnce) {
  for (int round = 0; round < 5; ++round) {
    Group group = MakeGroup(4);
    std::vector<Events> events = Watch(group);
    std::vector<std::thread> threads;
    for (auto& plane : group) {
      threads.emplace_back([&plane] {
        plane->Leave(milliseconds(5000));
        plane.reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (Events& one : events) {
      for (const Event& event : one.Now()) EXPECT_EQ(event.kind, Event::Kind::kPeerLeft);
    }
  }
}

TEST(ControlEventsTest, AnAbortReachesEveryRankOnce) {
  for (const Rank origin : {0u, 2u}) {
    Group group = MakeGroup(4);
    std::vector<Events> events = Watch(group);
    group[origin]->Abort(Status(Code::kTimeout, "op 7: rank 3 is silent"));
    group[origin]->Abort(Status(Code::kInternal, "a later cause"));
    for (Events& one : events) {
      const std::vector<Event> heard = one.WaitFor(1);
      ASSERT_EQ(heard.size(), 1u);
      EXPECT_EQ(heard[0].kind, Event::Kind::kAborted);
      EXPECT_EQ(heard[0].rank, origin);
      EXPECT_EQ(heard[0].status.code(), Code::kTimeout);
      EXPECT_EQ(heard[0].status.text(), "op 7: rank 3 is silent");
    }
  }
}

TEST(ControlEventsTest, OfManyCausesOneWinsEverywhere) {
  Group group = MakeGroup(4);
  std::vector<Events> events = Watch(group);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&group, rank] {
      group[rank]->Abort(Status(Code::kAborted, "cause " + std::to_string(rank)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> causes;
  for (Events& one : events) {
    const std::vector<Event> heard = one.WaitFor(1);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].status.text(), "cause " + std::to_string(heard[0].rank));
    causes.insert(heard[0].status.text());
  }
  EXPECT_EQ(causes.size(), 1u);
  // Whatever was still on its way has come once the byes are through.
  for (const Rank rank : {1u, 2u, 3u}) group[rank]->Leave(milliseconds(5000));
  for (Events& one : events) {
    int aborts = 0;
    for (const Event& event : one.Now()) aborts += event.kind == Event::Kind::kAborted ? 1 : 0;
    EXPECT_EQ(aborts, 1);
  }
}

TEST(ControlEventsTest, AnAbortRightBeforeTheEndIsHeard) {
  for (const Rank origin : {0u, 1u}) {
    Group group = MakeGroup(3);
    std::vector<Events> events = Watch(group);
    group[origin]->Abort(Status(Code::kInvalidArgument, "ranks differ in count"));
    group[origin].reset();
    const std::vector<Event> heard = events[2].WaitFor(2);
    ASSERT_EQ(heard.size(), 2u);
    EXPECT_EQ(heard[0].kind, Event::Kind::kAborted);
    EXPECT_EQ(heard[0].rank, origin);
    EXPECT_EQ(heard[1].kind, Event::Kind::kPeerLost);
    EXPECT_EQ(heard[1].rank, origin);
  }
}

TEST(ControlEventsTest, EventsBeforeTheHandlerAreNotLost) {
  Group group = MakeGroup(3);
  Events first;
  group[0]->SetEventHandler(first.Handler());
  group[2].reset();
  ASSERT_EQ(first.WaitFor(1).size(), 1u);
  // Rank 1 has no handler yet. What the master said before this bye came before it.
  group[0]->Abort(Status(Code::kAborted, "enough"));
  ASSERT_EQ(first.WaitFor(2).size(), 2u);
  Events late;
  group[1]->SetEventHandler(late.Handler());
  const std::vector<Event> heard = late.WaitFor(2);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].kind, Event::Kind::kPeerLost);
  EXPECT_EQ(heard[1].kind, Event::Kind::kAborted);
}

TEST(ControlEventsTest, AHandlerMayBeTakenAway) {
  Group group = MakeGroup(2);
  Events events;
  group[0]->SetEventHandler(events.Handler());
  group[0]->SetEventHandler(nullptr);
  group[1].reset();
  Events second;
  // Keeps what comes until somebody listens.
  group[0]->SetEventHandler(second.Handler());
  EXPECT_EQ(second.WaitFor(1).size(), 1u);
  EXPECT_TRUE(events.Now().empty());
}

TEST(ControlEventsTest, ALoneRankHearsItsOwnAbort) {
  Group group = MakeGroup(1);
  std::vector<Events> events = Watch(group);
  group[0]->Abort(Status::Ok());
  const std::vector<Event> heard = events[0].WaitFor(1);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].status.code(), Code::kAborted);
  group[0]->Leave(std::chrono::seconds(60));
}

TEST(ControlEventsTest, ANewJobWaitsForTheEndOfTheOldOneOnItsPort) {
  Listener listener;
  const std::uint16_t port = listener.port();
  std::vector<Spec> specs{SpecOf(0, 2, port), SpecOf(1, 2, port)};
  specs[0].launch.listen_fd = listener.Take();
  std::vector<Joined> old = JoinAll(specs);
  ASSERT_TRUE(old[0].ok() && old[1].ok());
  Events events;
  (*old[0])->SetEventHandler(events.Handler());
  (*old[1]).reset();
  ASSERT_EQ(events.WaitFor(1).size(), 1u);
  // The next job's rank 1 is earlier than its rank 0 and meets the old master first.
  std::vector<Spec> next{SpecOf(0, 2, port), SpecOf(1, 2, port)};
  Joined client = Status(Code::kInternal, "");
  std::thread early([&] { client = Join(next[1]); });
  std::this_thread::sleep_for(milliseconds(50));
  (*old[0]).reset();
  const Joined master = Join(next[0]);
  early.join();
  EXPECT_TRUE(master.ok()) << master.status().ToString();
  EXPECT_TRUE(client.ok()) << client.status().ToString();
}

}  // namespace
}  // namespace optireduce::control
