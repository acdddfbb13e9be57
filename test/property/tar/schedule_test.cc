#include "collectives/tar/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace optireduce::tar {
namespace {

using Orders = std::vector<std::vector<Rank>>;  // by rank

Orders AllServeOrders(std::uint32_t ranks) {
  Orders orders;
  for (Rank rank = 0; rank < ranks; ++rank) orders.push_back(ServeOrder(ranks, rank));
  return orders;
}

std::vector<std::uint32_t> Worlds() {
  std::vector<std::uint32_t> worlds(128);
  std::iota(worlds.begin(), worlds.end(), 1U);
  worlds.insert(worlds.end(), {256, 512, 1024});
  return worlds;
}

// All of them up to 128 ranks; beyond, the ends, the halves and some that divide nothing.
std::set<std::uint32_t> Incasts(std::uint32_t ranks) {
  const std::uint32_t most = std::max(ranks - 1, 1U);
  std::set<std::uint32_t> incasts;
  if (ranks <= 128) {
    for (std::uint32_t incast = 1; incast <= most; ++incast) incasts.insert(incast);
    return incasts;
  }
  for (const std::uint32_t incast : {1U, 2U, 3U, 8U, 31U, most / 2, most / 2 + 1, most - 1, most}) {
    incasts.insert(incast);
  }
  return incasts;
}

TEST(Schedule, ServesEachPeerOnce) {
  for (const std::uint32_t ranks : Worlds()) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::vector<Rank> order = ServeOrder(ranks, rank);
      order.push_back(rank);
      std::sort(order.begin(), order.end());
      for (Rank r = 0; r < ranks; ++r) ASSERT_EQ(order[r], r) << ranks << " ranks, rank " << rank;
      ASSERT_EQ(order.size(), ranks);
    }
  }
}

TEST(Schedule, ServesInAPermutationAtEveryPlace) {
  for (const std::uint32_t ranks : Worlds()) {
    const Orders orders = AllServeOrders(ranks);
    for (std::uint32_t place = 0; place + 1 < ranks; ++place) {
      std::vector<bool> served(ranks);
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Rank peer = orders[rank][place];
        ASSERT_NE(peer, rank);
        ASSERT_FALSE(served[peer]) << ranks << " ranks: two serve " << peer << " at " << place;
        served[peer] = true;
      }
    }
  }
}

TEST(Schedule, StartsWithTheNextRank) {
  EXPECT_EQ(ServeOrder(5, 3), (std::vector<Rank>{4, 0, 1, 2}));
  EXPECT_EQ(SumOrder(5, 3), (std::vector<Rank>{3, 2, 1, 0, 4}));
  EXPECT_TRUE(ServeOrder(1, 0).empty());
  EXPECT_EQ(SumOrder(1, 0), std::vector<Rank>{0});
}

TEST(Schedule, AddsInTheOrderInWhichContributionsCome) {
  for (const std::uint32_t ranks : Worlds()) {
    const Orders orders = AllServeOrders(ranks);
    for (Rank owner = 0; owner < ranks; ++owner) {
      // Its own first, then from the rank that has the owner at place 0, at 1, and so on.
      std::vector<Rank> comes(ranks, kNoRank);
      comes[0] = owner;
      for (Rank rank = 0; rank < ranks; ++rank) {
        if (rank == owner) continue;
        const std::uint32_t place = ServePlace(ranks, rank, owner);
        ASSERT_EQ(orders[rank].at(place), owner);
        comes.at(place + 1) = rank;
      }
      ASSERT_EQ(SumOrder(ranks, owner), comes) << ranks << " ranks, owner " << owner;
    }
  }
}

// Plays both stages round by round and counts what arrives where.
class Play {
 public:
  Play(std::uint32_t ranks, std::uint32_t incast)
      : ranks_(ranks), incast_(incast), orders_(AllServeOrders(ranks)), added_(ranks * ranks) {
    for (Rank rank = 0; rank < ranks; ++rank) ++added_[rank * ranks + rank];  // its own
  }

  void Scatter() {
    Rounds([this](Rank from, Rank owner) { ++added_[owner * ranks_ + from]; });
  }
  // With each contribution once in each result, each result once at each rank is all there is.
  void Broadcast() {
    std::vector<std::uint32_t> results(ranks_ * ranks_);  // by receiver and owner
    for (Rank rank = 0; rank < ranks_; ++rank) ++results[rank * ranks_ + rank];
    Rounds([this, &results](Rank owner, Rank to) { ++results[to * ranks_ + owner]; });
    for (const std::uint32_t times : results) ASSERT_EQ(times, 1U);
  }
  void ExpectEachContributionAddedOnce() const {
    for (const std::uint32_t times : added_) ASSERT_EQ(times, 1U);
  }

 private:
  template <typename OnTransfer>
  void Rounds(OnTransfer on_transfer) {
    std::uint32_t places = 0;
    for (std::uint32_t round = 0; round < tar::Rounds(ranks_, incast_); ++round) {
      const Places in_round = PlacesOfRound(ranks_, incast_, round);
      ASSERT_GE(in_round.count, 1U);
      std::vector<std::uint32_t> senders(ranks_);
      for (Rank from = 0; from < ranks_; ++from) {
        for (std::uint32_t i = 0; i < in_round.count; ++i) {
          const Rank to = orders_[from].at(in_round.first + i);
          ++senders[to];
          on_transfer(from, to);
        }
      }
      for (const std::uint32_t count : senders) ASSERT_LE(count, incast_);
      places += in_round.count;
    }
    ASSERT_EQ(places, ranks_ - 1);
  }

  std::uint32_t ranks_;
  std::uint32_t incast_;
  Orders orders_;
  std::vector<std::uint32_t> added_;  // by owner and contributor
};

TEST(Schedule, BringsEachContributionToEachRankOnce) {
  for (const std::uint32_t ranks : Worlds()) {
    for (const std::uint32_t incast : Incasts(ranks)) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, incast " << incast);
      Play play(ranks, incast);
      ASSERT_NO_FATAL_FAILURE(play.Scatter());
      ASSERT_NO_FATAL_FAILURE(play.ExpectEachContributionAddedOnce());
      ASSERT_NO_FATAL_FAILURE(play.Broadcast());
    }
  }
}

TEST(Schedule, UsesAsFewRoundsAsIncastAllows) {
  EXPECT_EQ(Rounds(1, 1), 0U);
  EXPECT_EQ(Rounds(2, 1), 1U);
  EXPECT_EQ(Rounds(8, 1), 7U);
  EXPECT_EQ(Rounds(8, 2), 4U);
  EXPECT_EQ(Rounds(8, 3), 3U);
  EXPECT_EQ(Rounds(8, 7), 1U);
  EXPECT_EQ(Rounds(7, 2), 3U);
  const Places last = PlacesOfRound(8, 3, 2);
  EXPECT_EQ(last.first, 6U);
  EXPECT_EQ(last.count, 1U);
}

}  // namespace
}  // namespace optireduce::tar
