// What members of a group give each other.
#include <gtest/gtest.h>

#include <future>

#include "test/loopback/control/group.h"

namespace optireduce::control {
namespace {

using std::chrono::milliseconds;
using Group = std::vector<std::unique_ptr<ControlPlane>>;
using Shares = Result<std::vector<Bytes>>;

Bytes Share(Rank rank, int round) {
  return Bytes(rank + 1, static_cast<std::byte>(16 * round + static_cast<int>(rank)));
}

std::future<Shares> Begin(ControlPlane& plane, Bytes own) {
  const auto end = std::make_shared<std::promise<Shares>>();
  plane.Exchange(std::move(own), [end](Shares shares) { end->set_value(std::move(shares)); });
  return end->get_future();
}

TEST(ControlExchangeTest, EveryRankGetsWhatAllGave) {
  Group group = MakeGroup(4);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::future<Shares>> ends;
    for (Rank rank = 0; rank < 4; ++rank) {
      // Whoever comes first: the master in one round, the last rank in the next.
      const Rank at = round % 2 == 0 ? rank : 3 - rank;
      ends.push_back(Begin(*group[at], Share(at, round)));
    }
    for (std::future<Shares>& end : ends) {
      const Shares shares = end.get();
      ASSERT_TRUE(shares.ok()) << shares.status().text();
      ASSERT_EQ(shares->size(), 4u);
      for (Rank rank = 0; rank < 4; ++rank) EXPECT_EQ((*shares)[rank], Share(rank, round));
    }
  }
}

TEST(ControlExchangeTest, ALostRankEndsItAndIsNamed) {
  Group group = MakeGroup(4);
  std::vector<std::future<Shares>> ends;
  for (const Rank rank : {0u, 1u, 3u}) ends.push_back(Begin(*group[rank], Share(rank, 0)));
  group[2].reset();
  for (std::future<Shares>& end : ends) {
    const Shares shares = end.get();
    ASSERT_FALSE(shares.ok());
    EXPECT_TRUE(Has(shares.status(), "rank 2")) << shares.status().text();
  }
  // And whoever begins afterwards.
  EXPECT_FALSE(Begin(*group[1], {}).get().ok());
}

TEST(ControlExchangeTest, ARankThatHasLeftIsNamedToo) {
  Group group = MakeGroup(3);
  std::future<Shares> end = Begin(*group[1], Share(1, 0));
  group[2]->Leave(milliseconds(5000));
  const Shares shares = end.get();
  ASSERT_FALSE(shares.ok());
  EXPECT_TRUE(Has(shares.status(), "rank 2")) << shares.status().text();
}

TEST(ControlExchangeTest, LeavingEndsItHere) {
  Group group = MakeGroup(2);
  std::future<Shares> end = Begin(*group[1], Share(1, 0));
  group[1]->Leave(milliseconds(100));
  EXPECT_FALSE(end.get().ok());
}

}  // namespace
}  // namespace optireduce::control
