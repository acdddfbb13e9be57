#include "lib/random.h"

#include <array>
#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace optireduce {
namespace {

TEST(Random, SplitMix64GivesItsPublishedNumbers) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t want :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
        16408922859458223821u}) {
    EXPECT_EQ(SplitMix64(state), want);
  }
}

TEST(Random, XoshiroGivesItsPublishedNumbers) {
  Stream stream(std::array<std::uint64_t, 4>{1, 2, 3, 4});
  for (const std::uint64_t want : {std::uint64_t{11520}, std::uint64_t{0},
                                   std::uint64_t{1509978240}, std::uint64_t{1215971899390074240}}) {
    EXPECT_EQ(stream.Next(), want);
  }
}

TEST(Random, HashTextIsFnv1a) {
  EXPECT_EQ(HashText(""), 0xcbf29ce484222325u);
  EXPECT_EQ(HashText("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(HashText("foobar"), 0x85944171f73967e8u);
}

// A change here changes what every seed in bug reports and committed replays means.
TEST(Random, StreamsKeepTheirNumbers) {
  Stream stream(42, 3, "loss");
  EXPECT_EQ(stream.Next(), 0xa9f7e1f532daaf59u);
  EXPECT_EQ(stream.Next(), 0x4bf9ef579e504eefu);
  EXPECT_EQ(stream.Next(), 0x0b35f500d8fdd098u);
  EXPECT_EQ(stream.Next(), 0xeaa84afe1efe2f10u);
  EXPECT_EQ(stream.Below(10), 9u);
  EXPECT_EQ(stream.Below(1000), 705u);
  EXPECT_EQ(stream.Below(std::uint64_t{1} << 63), 3571394632785471519u);
  EXPECT_EQ(stream.Uniform(), 0.7498650672301489);
}

TEST(Random, StreamsDifferBySeedNodeAndPurpose) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t node = 0; node < 8; ++node) {
      for (const char* purpose : {"loss", "delay", ""}) {
        first.insert(Stream(seed, node, purpose).Next());
      }
    }
  }
  EXPECT_EQ(first.size(), 8u * 8u * 3u);
}

TEST(Random, BelowIsInRangeAndReachesAll) {
  Stream stream(1, 0, "below");
  for (std::uint64_t n : {1u, 2u, 3u, 7u, 10u}) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 500; ++i) {
      const std::uint64_t draw = stream.Below(n);
      ASSERT_LT(draw, n);
      seen.insert(draw);
    }
    EXPECT_EQ(seen.size(), n);
  }
  // More than half of all numbers: a plain remainder would favour the low half two to one.
  const std::uint64_t n = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 62);
  int low = 0;
  for (int i = 0; i < 3000; ++i) low += stream.Below(n) < n / 2 ? 1 : 0;
  EXPECT_NEAR(low, 1500, 150);
}

TEST(Random, ChanceIsExactAtItsEndsAndFairBetween) {
  Stream stream(2, 0, "chance");
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    ASSERT_FALSE(stream.Chance(0));
    ASSERT_TRUE(stream.Chance(1));
    hits += stream.Chance(0.01) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 100, 40);
}

TEST(Random, ChanceAlwaysDrawsOnce) {
  Stream a(3, 0, "draws");
  Stream b(3, 0, "draws");
  a.Chance(0);
  b.Chance(0.5);
  EXPECT_EQ(a.Next(), b.Next());
}

TEST(RandomDeathTest, MisuseIsABug) {
  Stream stream(1, 0, "misuse");
  EXPECT_DEATH(stream.Below(0), "check failed");
  EXPECT_DEATH(Stream(std::array<std::uint64_t, 4>{}), "check failed");
}

}  // namespace
}  // namespace optireduce
