#include "transport/control/changeover.h"

#include <gtest/gtest.h>

namespace optireduce::control {
namespace {

TEST(Changeover, HoldsFromTheOpAfterTheNewestOfAll) {
  Changeover changeover(3);
  EXPECT_FALSE(changeover.Begin());
  changeover.Propose({1'372});
  const auto prepare = changeover.Begin();
  ASSERT_TRUE(prepare);
  EXPECT_EQ(prepare->change.packet_bytes, 1'372u);
  EXPECT_FALSE(changeover.Begin()) << "one at a time";
  EXPECT_FALSE(changeover.OnReady(0, {prepare->id, 10}));
  EXPECT_FALSE(changeover.OnReady(2, {prepare->id, 12}));
  EXPECT_EQ(changeover.Missing(), std::vector<Rank>{1});
  const auto decision = changeover.OnReady(1, {prepare->id, 11});
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->commit);
  EXPECT_EQ(decision->id, prepare->id);
  EXPECT_EQ(decision->first, 13u);
  EXPECT_FALSE(changeover.Begin()) << "nothing more is wanted";
}

TEST(Changeover, OnlyEverFalls) {
  Changeover changeover(1);
  changeover.Propose({1'372});
  changeover.Propose({1'400});
  const auto first = changeover.Begin();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->change.packet_bytes, 1'372u);
  // Measured meanwhile: the next one.
  changeover.Propose({1'000});
  ASSERT_TRUE(changeover.OnReady(0, {first->id, 5}));
  const auto second = changeover.Begin();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->change.packet_bytes, 1'000u);
  EXPECT_NE(second->id, first->id);
  ASSERT_TRUE(changeover.OnReady(0, {second->id, 6}));
  for (const std::uint32_t bytes : {0U, 1'000U, 1'372U}) changeover.Propose({bytes});
  EXPECT_FALSE(changeover.Begin());
}

TEST(Changeover, WithoutAllAnswersAllStaysAsItIsAndIsTriedAgain) {
  Changeover changeover(2);
  changeover.Propose({1'372});
  const auto first = changeover.Begin();
  ASSERT_TRUE(first);
  EXPECT_FALSE(changeover.OnReady(0, {first->id, 5}));
  const auto decision = changeover.GiveUp();
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->commit);
  EXPECT_FALSE(changeover.GiveUp());
  // The answer comes now, and may not count for the next question.
  EXPECT_FALSE(changeover.OnReady(1, {first->id, 5}));
  const auto second = changeover.Begin();
  ASSERT_TRUE(second);
  EXPECT_FALSE(changeover.OnReady(1, {first->id, 5}));
  EXPECT_FALSE(changeover.OnReady(0, {second->id, 6}));
  const auto committed = changeover.OnReady(1, {second->id, 9});
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->first, 10u);
}

TEST(Changeover, WhoIsGoneIsNotWaitedForButItsAnswerCounts) {
  Changeover changeover(3);
  EXPECT_FALSE(changeover.OnGone(1));
  changeover.Propose({1'372});
  const auto prepare = changeover.Begin();
  ASSERT_TRUE(prepare);
  EXPECT_FALSE(changeover.OnReady(2, {prepare->id, 20}));
  EXPECT_FALSE(changeover.OnGone(2));
  const auto decision = changeover.OnReady(0, {prepare->id, 4});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->first, 21u);
  EXPECT_FALSE(changeover.OnGone(7)) << "no such rank";
  EXPECT_FALSE(changeover.OnReady(7, {prepare->id, 1}));
}

}  // namespace
}  // namespace optireduce::control
