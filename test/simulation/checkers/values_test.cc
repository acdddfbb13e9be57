// The oracle itself: which set a sum names, and what the exact results are.
#include "examples/sim/values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

namespace optireduce::sim {
namespace {

template <typename T>
std::vector<T> Contribution(const CallValues& values, Rank rank, std::size_t count) {
  std::vector<T> tensor(count);
  values.Fill(rank, std::as_writable_bytes(std::span(tensor)));
  return tensor;
}

template <typename T>
std::vector<T> SumOf(const CallValues& values, RankSet set, std::uint32_t ranks,
                     std::size_t count, T divisor) {
  std::vector<T> sum(count);
  for (Rank rank = 0; rank < ranks; ++rank) {
    if ((set >> rank & 1) == 0) continue;
    const std::vector<T> part = Contribution<T>(values, rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  for (T& value : sum) value /= divisor;
  return sum;
}

TEST(CallValues, SumsNameTheirSet) {
  for (const std::uint32_t ranks : {2u, 5u, 8u}) {
    for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kAvg}) {
      const CallValues values(ValueKind::kSets, DataType::kFloat32, reduce, ranks, 7);
      const float divisor = reduce == ReduceOp::kAvg ? static_cast<float>(ranks) : 1.0f;
      for (RankSet set = 0; set <= values.everybody(); ++set) {
        const auto sum = SumOf<float>(values, set, ranks, 2000, divisor);
        const auto bytes = std::as_bytes(std::span(sum));
        for (const std::uint64_t i : {0u, 1u, 1020u, 1021u, 1999u}) {
          EXPECT_EQ(values.SetOf(bytes, i), set) << ranks << " ranks, element " << i;
        }
        EXPECT_EQ(values.NextUnlikeAll(bytes, 0), set == values.everybody() ? 2000u : 0u);
      }
    }
  }
}

TEST(CallValues, OtherBitsAreNoSet) {
  const CallValues values(ValueKind::kSets, DataType::kFloat64, ReduceOp::kSum, 3, 7);
  auto sum = SumOf<double>(values, 7, 3, 10, 1.0);
  sum[4] += 0x1p-40;  // a part of a contribution
  sum[5] = -sum[5];
  const auto twice = Contribution<double>(values, 2, 10);
  sum[6] += twice[6];
  const auto bytes = std::as_bytes(std::span(sum));
  EXPECT_EQ(values.SetOf(bytes, 3), 7u);
  for (const std::uint64_t i : {4u, 5u, 6u}) EXPECT_EQ(values.SetOf(bytes, i), std::nullopt);
  EXPECT_EQ(values.NextUnlikeAll(bytes, 0), 4u);
  EXPECT_EQ(values.NextUnlikeAll(bytes, 7), 10u);
}

TEST(CallValues, SaysWhereSetsCanBeTold) {
  EXPECT_TRUE(CallValues::CanTellSets(DataType::kBFloat16, ReduceOp::kSum, 8));
  EXPECT_FALSE(CallValues::CanTellSets(DataType::kBFloat16, ReduceOp::kSum, 9));
  EXPECT_TRUE(CallValues::CanTellSets(DataType::kBFloat16, ReduceOp::kAvg, 4));
  EXPECT_FALSE(CallValues::CanTellSets(DataType::kBFloat16, ReduceOp::kAvg, 7));
  EXPECT_TRUE(CallValues::CanTellSets(DataType::kFloat32, ReduceOp::kSum, 24));
  EXPECT_FALSE(CallValues::CanTellSets(DataType::kInt32, ReduceOp::kSum, 2));
  EXPECT_FALSE(CallValues::CanTellSets(DataType::kFloat32, ReduceOp::kMax, 2));
}

TEST(CallValues, SmallSumsAreWholeNumbers) {
  const CallValues values(ValueKind::kSmall, DataType::kInt32, ReduceOp::kSum, 4, 3);
  const auto sum = SumOf<std::int32_t>(values, 15, 4, 3000, 1);
  const auto bytes = std::as_bytes(std::span(sum));
  EXPECT_EQ(values.NextUnlikeAll(bytes, 0), 3000u);
  EXPECT_EQ(values.Exact(1500), static_cast<double>(sum[1500]));
}

TEST(CallValues, HalfTypesAreEncoded) {
  // 1.5 in bfloat16 is 0x3fc0 and in float16 0x3e00; averages of 1 and 2, at some scale.
  for (const auto& [type, one, mean] :
       {std::tuple{DataType::kFloat16, 0x3c00, 0x3e00},
        std::tuple{DataType::kBFloat16, 0x3f80, 0x3fc0}}) {
    const CallValues values(ValueKind::kSets, type, ReduceOp::kAvg, 2, 3);
    const auto first = Contribution<std::uint16_t>(values, 0, 1021);
    std::size_t seen = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i] != one) continue;
      ++seen;
      std::vector<std::uint16_t> result(1021, static_cast<std::uint16_t>(mean));
      EXPECT_EQ(values.SetOf(std::as_bytes(std::span(result)), i), 3u);
      EXPECT_EQ(values.Exact(i), 1.5);
    }
    EXPECT_GT(seen, 50u);
  }
}

// Of every number of ranks, also where the type has too few bits to name them.
TEST(CallValues, CountsTellHowManyAreIn) {
  for (const std::uint32_t ranks : {2u, 9u, 63u, 64u}) {
    for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kAvg}) {
      const CallValues values(ValueKind::kCounts, DataType::kFloat32, reduce, ranks, 7);
      const auto own = Contribution<float>(values, 1, 2000);
      for (std::uint32_t in = 0; in <= ranks; ++in) {
        auto sum = own;
        for (float& value : sum) {
          value *= static_cast<float>(in);
          if (reduce == ReduceOp::kAvg) value /= static_cast<float>(ranks);
        }
        const auto bytes = std::as_bytes(std::span(sum));
        EXPECT_EQ(values.CountOf(bytes, 1999), in) << ranks;
        EXPECT_EQ(values.NextUnlikeAll(bytes, 0), in == ranks ? 2000u : 0u);
        sum[5] += own[5] / 256;  // less than one
        EXPECT_EQ(values.CountOf(bytes, 5), std::nullopt);
      }
    }
  }
  // bfloat16 is the upper half of float32, and whole numbers of 8 bits are exact in it.
  const CallValues half(ValueKind::kCounts, DataType::kBFloat16, ReduceOp::kSum, 64, 7);
  const CallValues single(ValueKind::kCounts, DataType::kFloat32, ReduceOp::kSum, 64, 7);
  for (std::uint32_t in = 0; in <= 64; ++in) {
    const float sum = Contribution<float>(single, 0, 9)[8] * static_cast<float>(in);
    std::vector<std::uint16_t> result(9);
    result[8] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum) >> 16);
    EXPECT_EQ(half.CountOf(std::as_bytes(std::span(result)), 8), in);
  }
}

}  // namespace
}  // namespace optireduce::sim
