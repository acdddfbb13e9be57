#include "examples/bench/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace optireduce::bench {
namespace {

constexpr std::size_t kCount = 2 * Values::kPeriod + 17;

std::vector<float> Filled(const Values& values, std::uint64_t shift) {
  std::vector<float> tensor(kCount);
  values.Fill(reinterpret_cast<std::byte*>(tensor.data()), kCount, shift);
  return tensor;
}

std::vector<float> SumOverRanks(ValueKind kind, int ranks, std::uint64_t shift) {
  std::vector<float> sum(kCount, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const Values values(DataType::kFloat32, ReduceOp::kSum, kind, rank, ranks, 7);
    const std::vector<float> tensor = Filled(values, shift);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += tensor[i];
  }
  return sum;
}

Values::Findings Checked(const Values& values, const std::vector<float>& tensor,
                         std::uint64_t shift) {
  return values.Check(reinterpret_cast<const std::byte*>(tensor.data()), kCount, shift);
}

TEST(Values, TheSumOfAllRanksIsRight) {
  const Values values(DataType::kFloat32, ReduceOp::kSum, ValueKind::kIntegers, 1, 3, 7);
  const Values::Findings found = Checked(values, SumOverRanks(ValueKind::kIntegers, 3, 5), 5);
  EXPECT_EQ(found.wrong, 0U);
  EXPECT_EQ(found.max_relative_error, 0);
}

TEST(Values, OneWrongElementIsFound) {
  const Values values(DataType::kFloat32, ReduceOp::kSum, ValueKind::kIntegers, 1, 3, 7);
  const std::vector<float> right = SumOverRanks(ValueKind::kIntegers, 3, 5);
  for (const std::size_t at : {std::size_t{0}, Values::kPeriod, kCount - 1}) {
    std::vector<float> tensor = right;
    tensor[at] *= 1.5F;
    const Values::Findings found = Checked(values, tensor, 5);
    EXPECT_EQ(found.wrong, 1U) << at;
    EXPECT_DOUBLE_EQ(found.max_relative_error, 0.5);
    tensor[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isfinite(Checked(values, tensor, 5).max_relative_error));
  }
}

TEST(Values, WhatIsLeftOverFromAnotherIterationIsWrong) {
  const Values values(DataType::kFloat32, ReduceOp::kSum, ValueKind::kIntegers, 0, 3, 7);
  EXPECT_GT(Checked(values, SumOverRanks(ValueKind::kIntegers, 3, 5), 6).wrong, kCount / 2);
}

TEST(Values, ALostContributionIsWrongEverywhere) {
  const Values values(DataType::kFloat32, ReduceOp::kSum, ValueKind::kIntegers, 0, 3, 7);
  const std::vector<float> sum = SumOverRanks(ValueKind::kIntegers, 3, 0);
  const std::vector<float> own = Filled(values, 0);
  std::vector<float> without(kCount);
  for (std::size_t i = 0; i < kCount; ++i) without[i] = sum[i] - own[i];
  EXPECT_EQ(Checked(values, without, 0).wrong, kCount);
}

TEST(Values, RandomValuesAllowRoundingAndNoMore) {
  const Values values(DataType::kFloat32, ReduceOp::kSum, ValueKind::kRandom, 0, 5, 7);
  std::vector<float> sum = SumOverRanks(ValueKind::kRandom, 5, 9);
  const Values::Findings found = Checked(values, sum, 9);
  EXPECT_EQ(found.wrong, 0U);
  EXPECT_GT(found.max_relative_error, 0);
  EXPECT_LT(found.max_relative_error, 1e-6);
  sum[3] *= 1.001F;
  EXPECT_EQ(Checked(values, sum, 9).wrong, 1U);
}

// With one rank the contribution is the result, whatever the type and (mostly) the operator.
TEST(Values, OneRanksContributionIsItsResult) {
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    for (std::size_t o = 0; o < kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      // True may be any nonzero byte where it is contributed, and is 1 where it is a result.
      if (!Supported(type, op) || type == DataType::kBool) continue;
      for (const ValueKind kind : {ValueKind::kIntegers, ValueKind::kRandom}) {
        const Values values(type, op, kind, 0, 1, 3);
        std::vector<std::byte> tensor(kCount * ElementBytes(type));
        values.Fill(tensor.data(), kCount, 11);
        EXPECT_EQ(values.Check(tensor.data(), kCount, 11).wrong, 0U) << Name(type) << Name(op);
        tensor.back() ^= std::byte{0x7F};
        EXPECT_EQ(values.Check(tensor.data(), kCount, 11).wrong, 1U) << Name(type) << Name(op);
      }
    }
  }
}

TEST(Values, IntegersWrapAndAveragesTruncate) {
  constexpr int kRanks = 100;
  std::vector<std::uint8_t> sum(Values::kPeriod, 0);
  std::vector<int> wide(Values::kPeriod, 0);
  std::vector<std::uint8_t> tensor(Values::kPeriod);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Values values(DataType::kUInt8, ReduceOp::kSum, ValueKind::kIntegers, rank, kRanks, 1);
    values.Fill(reinterpret_cast<std::byte*>(tensor.data()), tensor.size(), 0);
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      sum[i] = static_cast<std::uint8_t>(sum[i] + tensor[i]);
      wide[i] += tensor[i];
    }
  }
  const Values sums(DataType::kUInt8, ReduceOp::kSum, ValueKind::kIntegers, 0, kRanks, 1);
  EXPECT_EQ(sums.Check(reinterpret_cast<std::byte*>(sum.data()), sum.size(), 0).wrong, 0U);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = static_cast<std::uint8_t>(wide[i] / kRanks);
  }
  const Values averages(DataType::kUInt8, ReduceOp::kAvg, ValueKind::kIntegers, 0, kRanks, 1);
  EXPECT_EQ(averages.Check(reinterpret_cast<std::byte*>(tensor.data()), tensor.size(), 0).wrong,
            0U);
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(Float16FromFloat(1.0F), 0x3C00);
  EXPECT_EQ(Float16FromFloat(-2.0F), 0xC000);
  EXPECT_EQ(Float16FromFloat(65504.0F), 0x7BFF);
  EXPECT_EQ(Float16FromFloat(65519.0F), 0x7BFF);
  EXPECT_EQ(Float16FromFloat(65520.0F), 0x7C00);
  EXPECT_EQ(Float16FromFloat(2049.0F), 0x6800);  // halfway between 2048 and 2050
  EXPECT_EQ(Float16FromFloat(2051.0F), 0x6802);
  EXPECT_EQ(Float16FromFloat(0x1p-24F), 0x0001);
  EXPECT_EQ(Float16FromFloat(0x1p-25F), 0x0000);
  EXPECT_EQ(Float16FromFloat(-0.0F), 0x8000);
}

TEST(Float16, EveryNumberGoesThereAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = FloatFromFloat16(half);
    if (!std::isnan(value)) {
      EXPECT_EQ(Float16FromFloat(value), half);
    }
    const float brain = FloatFromBFloat16(half);
    if (!std::isnan(brain)) {
      EXPECT_EQ(BFloat16FromFloat(brain), half);
    }
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16FromFloat(257.0F), 0x4380);  // halfway between 256 and 258
  EXPECT_EQ(BFloat16FromFloat(259.0F), 0x4382);
  EXPECT_EQ(BFloat16FromFloat(std::numeric_limits<float>::max()), 0x7F80);
}

}  // namespace
}  // namespace optireduce::bench
