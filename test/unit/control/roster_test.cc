#include "transport/control/roster.h"

#include <gtest/gtest.h>

#include <string>

namespace optireduce::control {
namespace {

Claim ClaimOfRank(Rank rank, std::uint32_t world_size = 4) {
  Claim claim;
  claim.rank = rank;
  claim.world_size = world_size;
  claim.version = "1.0";
  claim.host = "node" + std::to_string(rank);
  claim.endpoint = "10.0.0." + std::to_string(rank + 1) + ":4000";
  claim.config_hash = 5;
  claim.config_text = "mode=exact\ntransport.path_mtu=1500\n";
  claim.pid = 100 + rank;
  return claim;
}

Roster FullRoster(std::uint32_t world_size = 4) {
  Roster roster(world_size);
  for (Rank rank = 0; rank < world_size; ++rank) roster.Put(ClaimOfRank(rank, world_size));
  return roster;
}

bool Has(const Status& status, const std::string& part) {
  return status.text().find(part) != std::string::npos;
}

TEST(RosterTest, KnowsWhoIsMissing) {
  Roster roster(4);
  roster.Put(ClaimOfRank(0));
  roster.Put(ClaimOfRank(2));
  EXPECT_FALSE(roster.Complete());
  EXPECT_EQ(roster.Missing(), (std::vector<Rank>{1, 3}));
  EXPECT_EQ(RankList(roster.Missing()), "ranks 1, 3");
  roster.Put(ClaimOfRank(1));
  EXPECT_EQ(RankList(roster.Missing()), "rank 3");
  roster.Put(ClaimOfRank(3));
  EXPECT_TRUE(roster.Complete());
  roster.Remove(3);
  EXPECT_FALSE(roster.Complete());
}

TEST(RosterTest, LongListsAreCut) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < 100; ++rank) ranks.push_back(rank);
  EXPECT_NE(RankList(ranks).find(" and 68 more"), std::string::npos);
}

TEST(RosterTest, EqualRanksAgree) {
  const Roster roster = FullRoster();
  EXPECT_TRUE(roster.Agreement().ok());
  EXPECT_TRUE(roster.Addresses().ok());
  ASSERT_EQ(roster.Members().size(), 4u);
  EXPECT_EQ(roster.Members()[2], (Member{"node2", "10.0.0.3:4000", 102}));
}

TEST(RosterTest, NamesTheOddVersion) {
  Roster roster = FullRoster();
  Claim odd = ClaimOfRank(2);
  odd.version = "0.9";
  roster.Put(odd);
  const Status status = roster.Agreement();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_TRUE(Has(status, "version: rank 2 has '0.9', ranks 0, 1, 3 have '1.0'")) << status.text();
}

TEST(RosterTest, RankZeroIsOddWhenAllOthersAgree) {
  Roster roster = FullRoster();
  Claim odd = ClaimOfRank(0);
  odd.version = "0.9";
  roster.Put(odd);
  EXPECT_TRUE(Has(roster.Agreement(), "rank 0 has '0.9'")) << roster.Agreement().text();
}

TEST(RosterTest, WithoutAMajorityRankZeroIsRight) {
  Roster roster(2);
  roster.Put(ClaimOfRank(0, 2));
  Claim other = ClaimOfRank(1, 2);
  other.version = "2.0";
  roster.Put(other);
  EXPECT_TRUE(Has(roster.Agreement(), "rank 1 has '2.0', rank 0 has '1.0'"));
}

TEST(RosterTest, NamesTheOddOptionWithBothValues) {
  Roster roster = FullRoster();
  Claim odd = ClaimOfRank(1);
  odd.config_hash = 6;
  odd.config_text = "mode=exact\ntransport.path_mtu=9000\nextra=1\n";
  roster.Put(odd);
  const Status status = roster.Agreement();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_TRUE(Has(status, "rank 1 has extra=1 (others: not there), transport.path_mtu=9000 "
                          "(others: transport.path_mtu=1500)"))
      << status.text();
  EXPECT_FALSE(Has(status, "mode")) << status.text();
}

TEST(RosterTest, NamesTheOddWorldSizeAndWaitsForTheLargest) {
  Roster roster(2);
  roster.Put(ClaimOfRank(0, 2));
  roster.Put(ClaimOfRank(1, 3));
  EXPECT_FALSE(roster.Complete());  // rank 2 is to be told too
  roster.Put(ClaimOfRank(2, 3));
  EXPECT_TRUE(roster.Complete());
  EXPECT_TRUE(Has(roster.Agreement(), "world size: rank 0 has 2, ranks 1, 2 have 3"))
      << roster.Agreement().text();
}

TEST(RosterTest, RefusesALoopbackAddressAmongOthers) {
  Roster roster = FullRoster();
  Claim local = ClaimOfRank(0);
  local.endpoint = "127.0.0.1:4000";
  roster.Put(local);
  const Status status = roster.Addresses();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(Has(status, "rank 0 would tell peers a loopback address")) << status.text();
}

TEST(RosterTest, RefusesMixedFamiliesWildcardsAndNonsense) {
  for (const char* endpoint : {"[fd00::1]:4000", "0.0.0.0:4000", "nonsense", "host:1", ""}) {
    Roster roster = FullRoster();
    Claim odd = ClaimOfRank(3);
    odd.endpoint = endpoint;
    roster.Put(odd);
    EXPECT_FALSE(roster.Addresses().ok()) << endpoint;
    EXPECT_TRUE(Has(roster.Addresses(), "rank 3")) << roster.Addresses().text();
  }
}

}  // namespace
}  // namespace optireduce::control
