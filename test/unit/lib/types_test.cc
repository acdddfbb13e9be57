#include "optireduce/types.h"

#include <set>
#include <string_view>

#include "gtest/gtest.h"

namespace optireduce {
namespace {

TEST(Types, ElementBytes) {
  EXPECT_EQ(ElementBytes(DataType::kFloat32), 4u);
  EXPECT_EQ(ElementBytes(DataType::kFloat64), 8u);
  EXPECT_EQ(ElementBytes(DataType::kFloat16), 2u);
  EXPECT_EQ(ElementBytes(DataType::kBFloat16), 2u);
  EXPECT_EQ(ElementBytes(DataType::kInt8), 1u);
  EXPECT_EQ(ElementBytes(DataType::kInt16), 2u);
  EXPECT_EQ(ElementBytes(DataType::kInt32), 4u);
  EXPECT_EQ(ElementBytes(DataType::kInt64), 8u);
  EXPECT_EQ(ElementBytes(DataType::kUInt8), 1u);
  EXPECT_EQ(ElementBytes(DataType::kBool), 1u);
}

TEST(TypesDeathTest, SizeOfAnUnknownTypeIsABug) {
  EXPECT_DEATH(ElementBytes(static_cast<DataType>(kDataTypes)), "check failed");
}

TEST(Types, NamesDiffer) {
  std::set<std::string_view> types;
  for (std::size_t i = 0; i < kDataTypes; ++i) types.insert(Name(static_cast<DataType>(i)));
  EXPECT_EQ(types.size(), kDataTypes);
  EXPECT_FALSE(types.contains("unknown"));
  EXPECT_EQ(Name(static_cast<DataType>(kDataTypes)), "unknown");
  std::set<std::string_view> ops;
  for (std::size_t i = 0; i < kReduceOps; ++i) ops.insert(Name(static_cast<ReduceOp>(i)));
  EXPECT_EQ(ops.size(), kReduceOps);
  EXPECT_FALSE(ops.contains("unknown"));
  EXPECT_EQ(Name(static_cast<ReduceOp>(kReduceOps)), "unknown");
  EXPECT_EQ(Name(Mode::kExact), "exact");
  EXPECT_EQ(Name(Mode::kBounded), "bounded");
}

TEST(Types, WhichPairsExist) {
  int supported = 0;
  int bounded = 0;
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    for (std::size_t o = 0; o < kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      supported += Supported(type, op) ? 1 : 0;
      bounded += MayBeBounded(type, op) ? 1 : 0;
      EXPECT_TRUE(Supported(type, op) || !MayBeBounded(type, op));
    }
  }
  EXPECT_EQ(supported, 10 * 5 + 6 * 3 - 1);
  EXPECT_EQ(bounded, 4 * 2);
  EXPECT_FALSE(Supported(DataType::kBFloat16, ReduceOp::kBitAnd));
  EXPECT_TRUE(Supported(DataType::kBool, ReduceOp::kBitXor));
  EXPECT_FALSE(Supported(DataType::kBool, ReduceOp::kAvg));
  EXPECT_TRUE(MayBeBounded(DataType::kFloat16, ReduceOp::kAvg));
  EXPECT_FALSE(MayBeBounded(DataType::kFloat32, ReduceOp::kMax));
  EXPECT_FALSE(MayBeBounded(DataType::kInt32, ReduceOp::kSum));
  // What came from outside may be anything.
  EXPECT_FALSE(Supported(static_cast<DataType>(200), ReduceOp::kSum));
  EXPECT_FALSE(Supported(DataType::kInt8, static_cast<ReduceOp>(200)));
}

}  // namespace
}  // namespace optireduce
