#include "collectives/path_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optireduce {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)", "rank 3 (d)"};

TEST(AgreeOnPaths, WhereAllAreEqualNobodyIsOdd) {
  const std::vector<PathReport> reports(4, PathReport{1472, 0, 1472, 0, 0});
  const Result<PathAgreement> agreement = AgreeOnPaths(reports, kNames);
  ASSERT_TRUE(agreement.ok());
  EXPECT_EQ(agreement->packet_bytes, 1472U);
  EXPECT_EQ(agreement->odd, "");
}

TEST(AgreeOnPaths, ARankThatIsNarrowToAllIsTheOddOne) {
  const std::vector<PathReport> reports = {
      {1372, 3, 8972, 0, 0}, {1372, 3, 1472, 0, 0}, {1372, 3, 1472, 0, 0}, {1372, 0, 1372, 0, 0}};
  const Result<PathAgreement> agreement = AgreeOnPaths(reports, kNames);
  ASSERT_TRUE(agreement.ok());
  EXPECT_EQ(agreement->packet_bytes, 1372U);
  EXPECT_EQ(agreement->odd, "rank 3 (d)");
}

TEST(AgreeOnPaths, ANarrowPathIsNamedByItsEnds) {
  const std::vector<PathReport> reports = {
      {1472, 1, 1472, 0, 0}, {1472, 0, 1472, 0, 0}, {1252, 1, 1472, 0, 0}, {1472, 0, 1472, 0, 0}};
  const Result<PathAgreement> agreement = AgreeOnPaths(reports, kNames);
  ASSERT_TRUE(agreement.ok());
  EXPECT_EQ(agreement->packet_bytes, 1252U);
  EXPECT_EQ(agreement->odd, "the path from rank 2 (c) to rank 1 (b)");
}

TEST(AgreeOnPaths, APairThatIsSilentIsAnErrorThatNamesIt) {
  const std::vector<PathReport> reports = {
      {1472, 1, 1472, 0, 0}, {1472, 0, 1472, 1, 3}, {1472, 0, 1472, 0, 0}, {1472, 0, 1472, 1, 1}};
  const Result<PathAgreement> agreement = AgreeOnPaths(reports, kNames);
  ASSERT_FALSE(agreement.ok());
  EXPECT_THAT(agreement.status().text(),
              HasSubstr("rank 1 (b) gets no answer over UDP from rank 3 (d), and 1 more"));
}

TEST(PathReport, ComesBackAsItWas) {
  const PathReport report{1252, 2, 1472, 1, 3};
  const Result<PathReport> back = ParsePathReport(Serialize(report), 4);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->smallest, 1252U);
  EXPECT_EQ(back->smallest_peer, 2U);
  EXPECT_EQ(back->largest, 1472U);
  EXPECT_EQ(back->silent_peers, 1U);
  EXPECT_EQ(back->silent_peer, 3U);
}

TEST(PathReport, WhatNoRankCanFindIsRefused) {
  for (const PathReport& report :
       {PathReport{1473, 0, 1472, 0, 0}, PathReport{1472, 4, 1472, 0, 0},
        PathReport{1472, 0, 1472, 4, 0}, PathReport{1472, 0, 1472, 1, 4},
        PathReport{40, 0, 1472, 0, 0}, PathReport{0, 0, 0, 2, 0},
        PathReport{1472, 0, 1U << 30, 0, 0}}) {
    EXPECT_FALSE(ParsePathReport(Serialize(report), 4).ok());
  }
  EXPECT_TRUE(ParsePathReport(Serialize(PathReport{0, 0, 0, 3, 0}), 4).ok());
  EXPECT_FALSE(ParsePathReport(std::vector<std::byte>(19), 4).ok());
  EXPECT_FALSE(ParsePathReport(std::vector<std::byte>(21), 4).ok());
  EXPECT_FALSE(ParsePathReport({}, 4).ok());
}

}  // namespace
}  // namespace optireduce
