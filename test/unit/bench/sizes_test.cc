#include "examples/bench/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optireduce::bench {
namespace {

using testing::ElementsAre;

TEST(ParseSize, TakesPowersOf1024) {
  EXPECT_EQ(ParseSize("0"), 0U);
  EXPECT_EQ(ParseSize("1500"), 1500U);
  EXPECT_EQ(ParseSize("4K"), 4096U);
  EXPECT_EQ(ParseSize("25m"), 25U << 20);
  EXPECT_EQ(ParseSize("3GiB"), 3ULL << 30);
  EXPECT_EQ(ParseSize("1tb"), 1ULL << 40);
  EXPECT_EQ(ParseSize("12B"), 12U);
  EXPECT_EQ(ParseSize("16777215T"), 16777215ULL << 40);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* const text : {"", "K", "4X", "-4K", "4 K", "4KK", "1.5M", "0x10", "16777216T",
                                 "99999999999999999999"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(SizeText, IsShort) {
  EXPECT_EQ(SizeText(0), "0 B");
  EXPECT_EQ(SizeText(4096), "4 KiB");
  EXPECT_EQ(SizeText(3 << 19), "1.5 MiB");
}

TEST(SweepSizes, MultipliesOrAdds) {
  EXPECT_THAT(*SweepSizes({4, 100, 3, 0}), ElementsAre(4, 12, 36));
  EXPECT_THAT(*SweepSizes({4, 108, 3, 0}), ElementsAre(4, 12, 36, 108));
  EXPECT_THAT(*SweepSizes({0, 10, 2, 5}), ElementsAre(0, 5, 10));
  EXPECT_THAT(*SweepSizes({7, 7, 0, 0}), ElementsAre(7));
}

TEST(SweepSizes, EndsAtTheLargestNumber) {
  const std::uint64_t most = ~std::uint64_t{0};
  EXPECT_THAT(*SweepSizes({most / 2, most, 2, 0}), ElementsAre(most / 2, most - 1));
  EXPECT_THAT(*SweepSizes({most - 1, most, 2, 3}), ElementsAre(most - 1));
}

TEST(SweepSizes, RefusesSweepsThatAreEmptyOrEndless) {
  EXPECT_FALSE(SweepSizes({8, 4, 2, 0}).ok());
  EXPECT_FALSE(SweepSizes({4, 8, 1, 0}).ok());
  EXPECT_FALSE(SweepSizes({0, 8, 2, 0}).ok());
  EXPECT_FALSE(SweepSizes({0, 1 << 20, 2, 1}).ok());
}

}  // namespace
}  // namespace optireduce::bench
