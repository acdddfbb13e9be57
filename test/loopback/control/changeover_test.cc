// Changeovers over real connections: questions, answers, decisions, and who does not answer.
#include <gtest/gtest.h>

#include "test/loopback/control/group.h"

namespace optireduce::control {
namespace {

using Group = std::vector<std::unique_ptr<ControlPlane>>;
using Kind = Event::Kind;

std::vector<Events> Watch(const Group& group) {
  std::vector<Events> out(group.size());
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    group[rank]->SetEventHandler(out[rank].Handler());
  }
  return out;
}

TEST(ControlChangeoverTest, AllHearTheQuestionAndThenTheDecision) {
  const Group group = MakeGroup(4);
  std::vector<Events> events = Watch(group);
  group[2]->Propose({1'372});
  for (Rank rank = 0; rank < 4; ++rank) {
    const std::vector<Event> heard = events[rank].WaitFor(1);
    ASSERT_EQ(heard.size(), 1u);
    ASSERT_EQ(heard[0].kind, Kind::kPrepare);
    EXPECT_EQ(heard[0].prepare.change.packet_bytes, 1'372u);
    group[rank]->Answer({heard[0].prepare.id, 100 + rank});
  }
  for (Rank rank = 0; rank < 4; ++rank) {
    const std::vector<Event> heard = events[rank].WaitFor(2);
    ASSERT_EQ(heard.size(), 2u);
    ASSERT_EQ(heard[1].kind, Kind::kDecided);
    EXPECT_TRUE(heard[1].decision.commit);
    EXPECT_EQ(heard[1].decision.first, 104u);
  }
}

// Nobody may be kept from its calls by one that is stopped.
TEST(ControlChangeoverTest, WithoutOneAnswerItIsCalledOffAndComesAgain) {
  const Group group = MakeGroup(3);
  std::vector<Events> events = Watch(group);
  group[0]->Propose({1'372});
  for (const Rank rank : {0U, 2U}) {
    group[rank]->Answer({events[rank].WaitFor(1).at(0).prepare.id, 7});
  }
  for (Rank rank = 0; rank < 3; ++rank) {
    const std::vector<Event> heard = events[rank].WaitFor(2);
    ASSERT_EQ(heard.size(), 2u);
    ASSERT_EQ(heard[1].kind, Kind::kDecided);
    EXPECT_FALSE(heard[1].decision.commit);
  }
  for (Rank rank = 0; rank < 3; ++rank) {
    const std::vector<Event> heard = events[rank].WaitFor(3);
    ASSERT_EQ(heard.size(), 3u);
    ASSERT_EQ(heard[2].kind, Kind::kPrepare);
    EXPECT_NE(heard[2].prepare.id, heard[0].prepare.id);
    group[rank]->Answer({heard[2].prepare.id, 9});
  }
  EXPECT_TRUE(events[1].WaitFor(4).at(3).decision.commit);
}

TEST(ControlChangeoverTest, WhoLeavesMeanwhileIsNotWaitedFor) {
  const Group group = MakeGroup(3);
  std::vector<Events> events = Watch(group);
  group[1]->Propose({1'372});
  for (const Rank rank : {0U, 1U}) {
    group[rank]->Answer({events[rank].WaitFor(1).at(0).prepare.id, 7});
  }
  group[2]->Leave(std::chrono::seconds(5));
  const std::vector<Event> heard = events[1].WaitFor(3);
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard[1].kind, Kind::kPeerLeft);
  ASSERT_EQ(heard[2].kind, Kind::kDecided);
  EXPECT_TRUE(heard[2].decision.commit);
}

}  // namespace
}  // namespace optireduce::control
