#include "collectives/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace optireduce {
namespace {

__extension__ using Int128 = __int128;

constexpr std::uint16_t kHalfNan = 0x7E00;
constexpr std::uint16_t kBrainNan = 0x7FC0;

// An element or a result, in the low bits.
using Raw = std::uint64_t;

// A binary floating-point format by its numbers, to convert by arithmetic instead of by bits.
struct Format {
  int fraction_bits;
  int exponent_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int least_exponent() const { return 1 - bias() - fraction_bits; }  // of the last subnormal bit
  Raw infinity() const { return ((Raw{1} << exponent_bits) - 1) << fraction_bits; }
};
constexpr Format kHalf{10, 5};
constexpr Format kBrain{7, 8};

double Widen(Format format, Raw raw) {
  const Raw fraction = raw & ((Raw{1} << format.fraction_bits) - 1);
  const int exponent =
      static_cast<int>(raw >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const double sign = (raw >> (format.fraction_bits + format.exponent_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double units = static_cast<double>(fraction) +
                       (exponent != 0 ? std::ldexp(1.0, format.fraction_bits) : 0.0);
  return sign * std::ldexp(units, format.least_exponent() + std::max(exponent, 1) - 1);
}

Raw Narrow(Format format, double value) {
  const int sign_bit = format.fraction_bits + format.exponent_bits;
  const Raw sign = std::signbit(value) ? Raw{1} << sign_bit : 0;
  if (std::isnan(value)) return format.infinity() | (format.infinity() >> 1 & ~format.infinity());
  if (std::isinf(value)) return sign | format.infinity();
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| < 2^exponent
  const int unit = std::max(exponent - format.fraction_bits - 1, format.least_exponent());
  // Units of the last place, rounded to nearest even. Units and exponent field add up to the bits,
  // carry and all.
  const double units = std::nearbyint(std::ldexp(std::fabs(value), -unit));
  const Raw bits = static_cast<Raw>(units) +
                   (static_cast<Raw>(unit - format.least_exponent()) << format.fraction_bits);
  return sign | std::min(bits, format.infinity());
}

template <typename F, typename Bits>
Raw OneNan(F value) {
  if (std::isnan(value)) return std::bit_cast<Bits>(std::numeric_limits<F>::quiet_NaN());
  return std::bit_cast<Bits>(value);
}

template <typename F>
F ReduceFloat(ReduceOp op, const std::vector<F>& values) {
  F result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    const F x = values[i];
    if (op == ReduceOp::kSum || op == ReduceOp::kAvg) {
      result = result + x;
    } else if (op == ReduceOp::kProduct) {
      result = result * x;
    } else if (std::isnan(result) || std::isnan(x)) {
      result = std::numeric_limits<F>::quiet_NaN();
    } else if (result == x) {
      const bool negative = op == ReduceOp::kMin ? std::signbit(result) || std::signbit(x)
                                                 : std::signbit(result) && std::signbit(x);
      result = std::copysign(result, negative ? F{-1} : F{1});
    } else {
      result = op == ReduceOp::kMin ? std::min(result, x) : std::max(result, x);
    }
  }
  return op == ReduceOp::kAvg ? result / static_cast<F>(values.size()) : result;
}

Raw ReduceInteger(ReduceOp op, const std::vector<std::int64_t>& values, bool wrap_before_division) {
  Int128 sum = 0;
  Raw product = 1;
  Raw all = ~Raw{0};
  Raw any = 0;
  Raw odd = 0;
  for (const std::int64_t x : values) {
    sum += x;
    product *= static_cast<Raw>(x);
    all &= static_cast<Raw>(x);
    any |= static_cast<Raw>(x);
    odd ^= static_cast<Raw>(x);
  }
  switch (op) {
    case ReduceOp::kSum: return static_cast<Raw>(sum);
    case ReduceOp::kAvg:
      if (wrap_before_division) sum = static_cast<std::int64_t>(sum);
      return static_cast<Raw>(sum / static_cast<Int128>(values.size()));
    case ReduceOp::kProduct: return product;
    case ReduceOp::kMin: return static_cast<Raw>(*std::min_element(values.begin(), values.end()));
    case ReduceOp::kMax: return static_cast<Raw>(*std::max_element(values.begin(), values.end()));
    case ReduceOp::kBitAnd: return all;
    case ReduceOp::kBitOr: return any;
    case ReduceOp::kBitXor: return odd;
  }
  return 0;
}

Raw ReduceBool(ReduceOp op, const std::vector<Raw>& raws) {
  const auto trues = std::count_if(raws.begin(), raws.end(), [](Raw raw) { return raw != 0; });
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBitOr: return trues > 0;
    case ReduceOp::kBitXor: return trues % 2 == 1;
    default: return static_cast<std::size_t>(trues) == raws.size();
  }
}

template <typename To>
std::vector<To> As(const std::vector<Raw>& raws, To (*convert)(Raw)) {
  std::vector<To> values;
  for (const Raw raw : raws) values.push_back(convert(raw));
  return values;
}

template <typename T>
Raw ReduceAs(ReduceOp op, const std::vector<Raw>& raws) {
  const std::vector<std::int64_t> values = As<std::int64_t>(
      raws, [](Raw raw) { return static_cast<std::int64_t>(static_cast<T>(raw)); });
  return ReduceInteger(op, values, sizeof(T) == sizeof(std::int64_t)) &
         (~Raw{0} >> (64 - 8 * sizeof(T)));
}

float WidenHalf(Raw raw) { return static_cast<float>(Widen(kHalf, raw)); }
float WidenBrain(Raw raw) { return static_cast<float>(Widen(kBrain, raw)); }
float ToFloat(Raw raw) { return std::bit_cast<float>(static_cast<std::uint32_t>(raw)); }
double ToDouble(Raw raw) { return std::bit_cast<double>(raw); }

// What the reduction of these contributions is, written for reading.
Raw Oracle(DataType type, ReduceOp op, const std::vector<Raw>& raws) {
  switch (type) {
    case DataType::kFloat32:
      return OneNan<float, std::uint32_t>(ReduceFloat(op, As<float>(raws, ToFloat)));
    case DataType::kFloat64:
      return OneNan<double, std::uint64_t>(ReduceFloat(op, As<double>(raws, ToDouble)));
    case DataType::kFloat16: return Narrow(kHalf, ReduceFloat(op, As<float>(raws, WidenHalf)));
    case DataType::kBFloat16: return Narrow(kBrain, ReduceFloat(op, As<float>(raws, WidenBrain)));
    case DataType::kInt8: return ReduceAs<std::int8_t>(op, raws);
    case DataType::kInt16: return ReduceAs<std::int16_t>(op, raws);
    case DataType::kInt32: return ReduceAs<std::int32_t>(op, raws);
    case DataType::kInt64: return ReduceAs<std::int64_t>(op, raws);
    case DataType::kUInt8: return ReduceAs<std::uint8_t>(op, raws);
    case DataType::kBool: return ReduceBool(op, raws);
  }
  return 0;
}

std::size_t Bytes(DataType type) { return ElementBytes(type); }

// Bits that deserve a test, then random ones: any pattern is an element of any type.
std::vector<Raw> Specials(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return {0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000,
              0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001};
    case DataType::kFloat64:
      return {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF,
              0x0010000000000000, 0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
              0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000012345, 0x7FF0000000000001};
    case DataType::kFloat16:
      return {0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00,
              0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE12, 0x7C01};
    case DataType::kBFloat16:
      return {0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80, 0xBF80,
              0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81};
    default: {
      const Raw ones = ~Raw{0} >> (64 - 8 * Bytes(type));
      return {0, 1, 2, 3, ones, ones - 1, ones >> 1, (ones >> 1) + 1};
    }
  }
}

Raw RandomElement(DataType type, std::mt19937_64& random) {
  if (random() % 3 == 0) {
    const std::vector<Raw> specials = Specials(type);
    return specials[random() % specials.size()];
  }
  return random() & (~Raw{0} >> (64 - 8 * Bytes(type)));
}

// Memory at an odd place, with bytes around it that must not change.
class Region {
 public:
  Region(std::size_t bytes, std::size_t offset)
      : offset_(kMargin + offset),
        bytes_(bytes),
        memory_(bytes + offset + 2 * kMargin, kUntouched) {}
  unsigned char* data() { return memory_.data() + offset_; }
  void SetElement(std::size_t index, std::size_t element_bytes, Raw raw) {
    std::memcpy(data() + index * element_bytes, &raw, element_bytes);
  }
  Raw Element(std::size_t index, std::size_t element_bytes) {
    Raw raw = 0;
    std::memcpy(&raw, data() + index * element_bytes, element_bytes);
    return raw;
  }
  bool MarginsUntouched() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < offset_ || i >= offset_ + bytes_) && memory_[i] != kUntouched) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMargin = 32;
  static constexpr unsigned char kUntouched = 0xA5;
  std::size_t offset_;
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
};

// Reduces contributions[rank][index] in the order of the ranks.
std::vector<Raw> Reduce(const Kernels& kernels, DataType type,
                        const std::vector<std::vector<Raw>>& contributions, bool in_place,
                        std::size_t offset) {
  const std::size_t count = contributions.front().size();
  const std::size_t bytes = Bytes(type);
  Region accumulators(count * kernels.accumulator_bytes, offset * 3 % 8);
  for (std::size_t rank = 0; rank < contributions.size(); ++rank) {
    Region elements(count * bytes, (offset + rank) % 8);
    for (std::size_t i = 0; i < count; ++i) {
      elements.SetElement(i, bytes, contributions[rank][i]);
    }
    (rank == 0 ? kernels.load : kernels.add)(accumulators.data(), elements.data(), count);
    EXPECT_TRUE(elements.MarginsUntouched());
  }
  Region apart(count * bytes, (offset + 5) % 8);
  Region& result = in_place ? accumulators : apart;
  kernels.finish(result.data(), accumulators.data(), count,
                 static_cast<std::uint32_t>(contributions.size()));
  EXPECT_TRUE(accumulators.MarginsUntouched());
  EXPECT_TRUE(apart.MarginsUntouched());
  std::vector<Raw> raws;
  for (std::size_t i = 0; i < count; ++i) raws.push_back(result.Element(i, bytes));
  return raws;
}

Raw ReduceOne(DataType type, ReduceOp op, const std::vector<Raw>& raws) {
  std::vector<std::vector<Raw>> contributions;
  for (const Raw raw : raws) contributions.push_back({raw});
  return Reduce(KernelsFor(type, op), type, contributions, false, 0).front();
}

std::vector<DataType> Types() {
  std::vector<DataType> types;
  for (std::size_t i = 0; i < kDataTypes; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}
std::vector<ReduceOp> Ops() {
  std::vector<ReduceOp> ops;
  for (std::size_t i = 0; i < kReduceOps; ++i) ops.push_back(static_cast<ReduceOp>(i));
  return ops;
}
constexpr DataType kFloatingTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16,
                                       DataType::kBFloat16};

class ReducePair : public testing::TestWithParam<std::tuple<DataType, ReduceOp, Isa>> {};

TEST_P(ReducePair, GivesWhatTheOracleGives) {
  const auto [type, op, isa] = GetParam();
  if (!Runs(isa)) GTEST_SKIP() << "not on this machine";
  const Kernels kernels = KernelsFor(type, op, isa);
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels.accumulator_bytes, AccumulatorBytes(type, op));
  ASSERT_GE(kernels.accumulator_bytes, Bytes(type));
  std::mt19937_64 random(static_cast<std::uint64_t>(type) * kReduceOps +
                         static_cast<std::uint64_t>(op));
  std::vector<std::size_t> counts(71);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i;
  counts.push_back(3 * 64 + 5);
  for (const std::size_t count : counts) {
    const std::size_t ranks = 1 + random() % 9;
    std::vector<std::vector<Raw>> contributions(ranks, std::vector<Raw>(count));
    for (auto& contribution : contributions) {
      for (Raw& raw : contribution) raw = RandomElement(type, random);
    }
    std::vector<Raw> expected;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Raw> raws;
      for (const auto& contribution : contributions) raws.push_back(contribution[i]);
      expected.push_back(Oracle(type, op, raws));
    }
    for (const bool in_place : {false, true}) {
      ASSERT_EQ(Reduce(kernels, type, contributions, in_place, random() % 8), expected)
          << count << " elements of " << ranks << " ranks" << (in_place ? ", in place" : "");
    }
  }
}

std::vector<std::tuple<DataType, ReduceOp, Isa>> SupportedPairs() {
  std::vector<std::tuple<DataType, ReduceOp, Isa>> pairs;
  for (const DataType type : Types()) {
    for (const ReduceOp op : Ops()) {
      if (!Supported(type, op)) continue;
      for (const Isa isa : {Isa::kBaseline, Isa::kAvx2}) pairs.emplace_back(type, op, isa);
    }
  }
  return pairs;
}

std::string PairName(const testing::TestParamInfo<ReducePair::ParamType>& info) {
  const auto [type, op, isa] = info.param;
  std::string name = std::string(Name(type)) + "_" + std::string(Name(op));
  name += isa == Isa::kBaseline ? "_baseline" : "_avx2";
  std::erase_if(name, [](char c) { return c != '_' && std::isalnum(static_cast<int>(c)) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ReducePair, testing::ValuesIn(SupportedPairs()), PairName);

TEST(Reduce, HasKernelsForExactlyTheSupportedPairs) {
  for (const DataType type : Types()) {
    for (const ReduceOp op : Ops()) {
      SCOPED_TRACE(std::string(Name(type)) + " " + std::string(Name(op)));
      EXPECT_EQ(static_cast<bool>(KernelsFor(type, op)), Supported(type, op));
      EXPECT_EQ(AccumulatorBytes(type, op) != 0, Supported(type, op));
    }
  }
  EXPECT_FALSE(KernelsFor(DataType::kBool, ReduceOp::kAvg));
  EXPECT_FALSE(KernelsFor(DataType::kFloat32, ReduceOp::kBitXor));
  EXPECT_FALSE(KernelsFor(static_cast<DataType>(kDataTypes), ReduceOp::kSum));
  EXPECT_FALSE(KernelsFor(DataType::kFloat32, static_cast<ReduceOp>(kReduceOps)));
}

TEST(Reduce, SumsHalfTypesInFourBytes) {
  EXPECT_EQ(AccumulatorBytes(DataType::kFloat16, ReduceOp::kSum), 4U);
  EXPECT_EQ(AccumulatorBytes(DataType::kBFloat16, ReduceOp::kAvg), 4U);
  EXPECT_EQ(AccumulatorBytes(DataType::kFloat32, ReduceOp::kSum), 4U);
  EXPECT_EQ(AccumulatorBytes(DataType::kInt8, ReduceOp::kSum), 1U);
  EXPECT_EQ(AccumulatorBytes(DataType::kInt8, ReduceOp::kAvg), 4U);
  EXPECT_EQ(AccumulatorBytes(DataType::kInt32, ReduceOp::kAvg), 8U);
}

TEST(Reduce, IntegerAverageTruncatesTowardZeroAndDoesNotOverflow) {
  for (const DataType type : {DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64,
                              DataType::kUInt8}) {
    const Raw ones = ~Raw{0} >> (64 - 8 * Bytes(type));
    EXPECT_EQ(ReduceOne(type, ReduceOp::kAvg, {3, 4}), 3U);
    EXPECT_EQ(ReduceOne(type, ReduceOp::kAvg, {7, 0}), 3U);
    if (type != DataType::kUInt8) {
      EXPECT_EQ(ReduceOne(type, ReduceOp::kAvg, {ones & -Raw{7}, 0}), ones & -Raw{3});
    }
    if (type == DataType::kInt64) continue;
    const Raw most = type == DataType::kUInt8 ? ones : ones >> 1;
    EXPECT_EQ(ReduceOne(type, ReduceOp::kAvg, std::vector<Raw>(8, most)), most);
  }
  // 64-bit sums wrap.
  const Raw most = ~Raw{0} >> 1;
  EXPECT_EQ(ReduceOne(DataType::kInt64, ReduceOp::kAvg, {most, most}), ~Raw{0});
}

TEST(Reduce, HalfSumsOverflowOnlyAtTheEnd) {
  const std::vector<Raw> eight(8, Narrow(kHalf, 30000.0));
  EXPECT_EQ(ReduceOne(DataType::kFloat16, ReduceOp::kAvg, eight), Narrow(kHalf, 30000.0));
  EXPECT_EQ(ReduceOne(DataType::kFloat16, ReduceOp::kSum, eight), 0x7C00U);
  const Raw large = Narrow(kHalf, 60000.0);
  EXPECT_EQ(ReduceOne(DataType::kFloat16, ReduceOp::kSum, {large, large, large ^ 0x8000U}), large);
}

TEST(Reduce, AddsInTheOrderOfTheCalls) {
  const auto raw = [](float x) { return Raw{std::bit_cast<std::uint32_t>(x)}; };
  EXPECT_EQ(ReduceOne(DataType::kFloat32, ReduceOp::kSum,
                      {raw(1e8F), raw(1.0F), raw(-1e8F), raw(1.0F)}),
            raw(1.0F));
  EXPECT_EQ(ReduceOne(DataType::kFloat32, ReduceOp::kSum,
                      {raw(1e8F), raw(-1e8F), raw(1.0F), raw(1.0F)}),
            raw(2.0F));
}

TEST(Reduce, NanOfAnyRankIsTheOneNan) {
  constexpr Raw kOne[] = {0x3F800000, 0x3FF0000000000000, 0x3C00, 0x3F80};
  constexpr Raw kNan[] = {0x7FC00000, 0x7FF8000000000000, kHalfNan, kBrainNan};
  constexpr Raw kOddNan[] = {0xFF800123, 0xFFF0000000000123, 0xFC03, 0xFF83};
  for (const DataType type : kFloatingTypes) {
    const std::size_t i = static_cast<std::size_t>(type);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProduct, ReduceOp::kMin,
                              ReduceOp::kMax}) {
      for (std::size_t rank = 0; rank < 5; ++rank) {
        std::vector<Raw> raws(5, kOne[i]);
        raws[rank] = kOddNan[i];
        EXPECT_EQ(ReduceOne(type, op, raws), kNan[i]) << Name(type) << Name(op) << rank;
      }
    }
  }
}

TEST(Reduce, ZerosAreOrderedForExtremes) {
  for (const DataType type : kFloatingTypes) {
    const Raw minus = Raw{1} << (8 * Bytes(type) - 1);
    for (const auto& raws : {std::vector<Raw>{0, minus}, std::vector<Raw>{minus, 0}}) {
      EXPECT_EQ(ReduceOne(type, ReduceOp::kMin, raws), minus);
      EXPECT_EQ(ReduceOne(type, ReduceOp::kMax, raws), 0U);
      EXPECT_EQ(ReduceOne(type, ReduceOp::kSum, raws), 0U);
    }
    EXPECT_EQ(ReduceOne(type, ReduceOp::kSum, {minus, minus}), minus);
  }
}

// Every half with each of a few others: all exponents, ties both ways, carries into infinity.
TEST(Reduce, RoundsSumsOfHalvesToNearestEven) {
  for (const auto& [type, format] :
       {std::pair{DataType::kFloat16, kHalf}, std::pair{DataType::kBFloat16, kBrain}}) {
    for (const Raw other : {Raw{0}, Raw{0x0001}, Raw{0x3C01}, Raw{0x1234}}) {
      std::vector<std::vector<Raw>> contributions(2);
      for (Raw raw = 0; raw <= 0xFFFF; ++raw) {
        contributions[0].push_back(raw);
        contributions[1].push_back(other);
      }
      for (const Isa isa : {Isa::kBaseline, Isa::kAvx2}) {
        if (!Runs(isa)) continue;
        const std::vector<Raw> sums =
            Reduce(KernelsFor(type, ReduceOp::kSum, isa), type, contributions, true, 1);
        for (Raw raw = 0; raw <= 0xFFFF; ++raw) {
          const float sum = static_cast<float>(Widen(format, raw)) +
                            static_cast<float>(Widen(format, other));
          ASSERT_EQ(sums[raw], Narrow(format, sum)) << Name(type) << " " << raw << " + " << other;
        }
      }
    }
  }
}

#if defined(__x86_64__)
TEST(Reduce, IsBlindToTheThreadsFloatMode) {
  constexpr unsigned kFlushAndZero = 0x8040;
  constexpr unsigned kDownward = 0x2000;
  const unsigned saved = _mm_getcsr();
  std::mt19937_64 random(7);
  for (const DataType type : kFloatingTypes) {
    for (const ReduceOp op : Ops()) {
      if (!Supported(type, op)) continue;
      std::vector<std::vector<Raw>> contributions(3, std::vector<Raw>(100));
      for (auto& contribution : contributions) {
        for (Raw& raw : contribution) raw = RandomElement(type, random) >> random() % 12;
      }
      for (const Isa isa : {Isa::kBaseline, Isa::kAvx2}) {
        if (!Runs(isa)) continue;
        const Kernels kernels = KernelsFor(type, op, isa);
        const std::vector<Raw> expected = Reduce(kernels, type, contributions, false, 1);
        _mm_setcsr((saved & ~0x3FU) | kFlushAndZero | kDownward);
        const std::vector<Raw> reduced = Reduce(kernels, type, contributions, false, 1);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(saved);
        EXPECT_EQ(reduced, expected) << Name(type) << " " << Name(op);
        EXPECT_EQ(after & ~0x3FU, (saved & ~0x3FU) | kFlushAndZero | kDownward);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace optireduce
