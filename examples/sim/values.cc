#include "examples/sim/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lib/check.h"
#include "lib/random.h"

namespace optireduce::sim {
namespace {

bool IsFloating(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBFloat16 ||
         type == DataType::kFloat32 || type == DataType::kFloat64;
}

// Bits of a binary floating point type with the given widths, rounded to nearest, ties to even.
std::uint64_t Encode(double value, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint64_t sign = std::signbit(value)
                                 ? std::uint64_t{1} << (exponent_bits + fraction_bits)
                                 : std::uint64_t{0};
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // In units of the last place; what rounds up to the next power of two carries by itself.
  const double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
  const auto whole = static_cast<std::uint64_t>(units);
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  const auto exponent_field = static_cast<std::uint64_t>(exponent + bias - 1) << fraction_bits;
  return sign | std::min(exponent_field + whole, infinity);
}

double Decode(std::uint64_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto field = static_cast<int>(bits >> fraction_bits & ((1ULL << exponent_bits) - 1));
  const std::uint64_t fraction = bits & ((1ULL << fraction_bits) - 1);
  const bool negative = (bits >> (exponent_bits + fraction_bits) & 1) != 0;
  double magnitude = 0;
  if (field == (1 << exponent_bits) - 1) {
    magnitude = fraction != 0 ? std::nan("") : HUGE_VAL;
  } else if (field == 0) {
    magnitude = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  } else {
    magnitude = std::ldexp(static_cast<double>(fraction | 1ULL << fraction_bits),
                           field - bias - fraction_bits);
  }
  return negative ? -magnitude : magnitude;
}

std::uint64_t FloatingBits(DataType type, double value) {
  switch (type) {
    case DataType::kFloat16: return Encode(value, 5, 10);
    case DataType::kBFloat16: return Encode(value, 8, 7);
    case DataType::kFloat32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    default: return std::bit_cast<std::uint64_t>(value);
  }
}

double FloatingValue(DataType type, std::uint64_t bits) {
  switch (type) {
    case DataType::kFloat16: return Decode(bits, 5, 10);
    case DataType::kBFloat16: return Decode(bits, 8, 7);
    case DataType::kFloat32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    default: return std::bit_cast<double>(bits);
  }
}

std::int64_t WholeValue(DataType type, std::uint64_t bits) {
  switch (type) {
    case DataType::kInt8: return static_cast<std::int8_t>(bits);
    case DataType::kInt16: return static_cast<std::int16_t>(bits);
    case DataType::kInt32: return static_cast<std::int32_t>(bits);
    default: return static_cast<std::int64_t>(bits);
  }
}

// Numbers are kept little endian in memory on every machine that the library supports.
void Store(std::uint64_t bits, std::byte* at, std::size_t bytes) { std::memcpy(at, &bits, bytes); }

std::int64_t Combine(ReduceOp reduce, std::int64_t a, std::int64_t b) {
  switch (reduce) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg: return a + b;
    case ReduceOp::kProduct: return a * b;
    case ReduceOp::kMin: return std::min(a, b);
    case ReduceOp::kMax: return std::max(a, b);
    case ReduceOp::kBitAnd: return a & b;
    case ReduceOp::kBitOr: return a | b;
    case ReduceOp::kBitXor: return a ^ b;
  }
  return 0;
}

}  // namespace

std::string_view Name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kSmall: return "small";
    case ValueKind::kSets: return "sets";
    case ValueKind::kRandom: return "random";
    case ValueKind::kCounts: return "counts";
  }
  return "?";
}

bool CallValues::CanTellSets(DataType type, ReduceOp reduce, std::uint32_t ranks) {
  if (!MayBeBounded(type, reduce)) return false;
  std::uint32_t ranks_max = 8;
  if (type == DataType::kFloat32) ranks_max = 24;
  if (type == DataType::kFloat64) ranks_max = 53;
  // A quotient must keep neighbours apart: a few bits more than the set has.
  if (reduce == ReduceOp::kAvg && !std::has_single_bit(ranks)) {
    if (type == DataType::kBFloat16) return false;
    ranks_max = std::min(ranks_max, 8U);
  }
  return ranks <= ranks_max;
}

CallValues::CallValues(ValueKind kind, DataType type, ReduceOp reduce, std::uint32_t ranks,
                       std::uint64_t seed)
    : kind_(kind),
      type_(type),
      reduce_(reduce),
      ranks_(ranks),
      seed_(seed),
      element_bytes_(ElementBytes(type)),
      everybody_(ranks >= 64 ? ~RankSet{0} : (RankSet{1} << ranks) - 1) {
  OR_CHECK(ranks >= 1 && Supported(type, reduce));
  OR_CHECK(kind != ValueKind::kSets || CanTellSets(type, reduce, ranks));
  OR_CHECK((kind != ValueKind::kRandom && kind != ValueKind::kCounts) ||
           MayBeBounded(type, reduce));
  Stream stream(seed, 0, "simulated values");
  for (std::uint8_t& scale : pattern_) scale = static_cast<std::uint8_t>(stream.Below(kScales));
  if (kind == ValueKind::kRandom) return;
  all_in_.resize(kPeriod * element_bytes_);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    std::uint64_t bits = 0;
    switch (kind) {
      case ValueKind::kSets: bits = ResultOfSet(everybody_, i); break;
      case ValueKind::kCounts: bits = ResultOfSet(ranks, i); break;
      default: bits = ResultOfSmall(i);
    }
    Store(bits, all_in_.data() + i * element_bytes_, element_bytes_);
  }
}

std::int64_t CallValues::Small(Rank rank, std::size_t place) const {
  const std::uint8_t draw = pattern_[(place + std::size_t{rank} * 97) % kPeriod];
  const bool has_sign = type_ != DataType::kUInt8 && type_ != DataType::kBool;
  if (type_ == DataType::kBool) return draw % 3;
  if (reduce_ == ReduceOp::kProduct) {
    const std::int64_t size = ranks_ <= 8 && (draw & 1) != 0 ? 2 : 1;
    return has_sign && (draw & 2) != 0 ? -size : size;
  }
  return has_sign ? draw % 7 - 3 : draw % 4;
}

double CallValues::Random(Rank rank, std::uint64_t element) const {
  std::uint64_t mix = seed_ ^ (std::uint64_t{rank} << 48) ^ element;
  const double unit = static_cast<double>(SplitMix64(mix) >> 11) * 0x1p-52 - 1;
  return FloatingValue(type_, FloatingBits(type_, unit));
}

std::uint64_t CallValues::ResultOfSmall(std::size_t place) const {
  const bool is_bool = type_ == DataType::kBool;
  std::int64_t result = 0;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const std::int64_t value = is_bool ? std::int64_t{Small(rank, place) != 0} : Small(rank, place);
    result = rank == 0 ? value : Combine(reduce_, result, value);
  }
  if (is_bool) return static_cast<std::uint64_t>(result != 0);
  if (IsFloating(type_)) {
    const auto exact = static_cast<double>(result);
    return FloatingBits(type_, reduce_ == ReduceOp::kAvg ? exact / ranks_ : exact);
  }
  if (reduce_ == ReduceOp::kAvg) result /= static_cast<std::int64_t>(ranks_);
  return static_cast<std::uint64_t>(result);
}

std::uint64_t CallValues::ResultOfSet(RankSet set, std::size_t place) const {
  const double sum = std::ldexp(static_cast<double>(set), pattern_[place % kPeriod]);
  return FloatingBits(type_, reduce_ == ReduceOp::kAvg ? sum / ranks_ : sum);
}

void CallValues::Fill(Rank rank, std::span<std::byte> tensor) const {
  const std::size_t count = tensor.size() / element_bytes_;
  const std::size_t made = kind_ == ValueKind::kRandom ? count : std::min(count, kPeriod);
  for (std::size_t i = 0; i < made; ++i) {
    std::uint64_t bits = 0;
    if (kind_ == ValueKind::kRandom) {
      bits = FloatingBits(type_, Random(rank, i));
    } else if (kind_ == ValueKind::kSets) {
      bits = FloatingBits(type_, std::ldexp(1.0, static_cast<int>(rank) + pattern_[i]));
    } else if (kind_ == ValueKind::kCounts) {
      bits = FloatingBits(type_, std::ldexp(1.0, pattern_[i]));
    } else if (IsFloating(type_)) {
      bits = FloatingBits(type_, static_cast<double>(Small(rank, i)));
    } else {
      bits = static_cast<std::uint64_t>(Small(rank, i));
    }
    Store(bits, tensor.data() + i * element_bytes_, element_bytes_);
  }
  for (std::size_t i = made; i < count; i += kPeriod) {
    std::memcpy(tensor.data() + i * element_bytes_, tensor.data(),
                std::min(kPeriod, count - i) * element_bytes_);
  }
}

std::uint64_t CallValues::NextUnlikeAll(std::span<const std::byte> result,
                                        std::uint64_t from) const {
  OR_CHECK(kind_ != ValueKind::kRandom);
  const std::uint64_t count = result.size() / element_bytes_;
  while (from < count) {
    const std::size_t place = static_cast<std::size_t>(from % kPeriod);
    const std::size_t most = static_cast<std::size_t>(
        std::min<std::uint64_t>(kPeriod - place, count - from));
    const std::byte* const got = result.data() + from * element_bytes_;
    const std::byte* const want = all_in_.data() + place * element_bytes_;
    if (std::memcmp(got, want, most * element_bytes_) == 0) {
      from += most;
      continue;
    }
    const auto differ = std::mismatch(got, got + most * element_bytes_, want);
    return from + static_cast<std::size_t>(differ.first - got) / element_bytes_;
  }
  return count;
}

std::uint64_t CallValues::BitsAt(std::span<const std::byte> tensor, std::uint64_t element) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.data() + element * element_bytes_, element_bytes_);
  return bits;
}

std::optional<RankSet> CallValues::SetOf(std::span<const std::byte> result,
                                         std::uint64_t element) const {
  OR_CHECK(kind_ == ValueKind::kSets);
  return WholeSum(result, element, everybody_);
}

std::optional<std::uint64_t> CallValues::CountOf(std::span<const std::byte> result,
                                                 std::uint64_t element) const {
  OR_CHECK(kind_ == ValueKind::kCounts);
  return WholeSum(result, element, ranks_);
}

std::optional<std::uint64_t> CallValues::WholeSum(std::span<const std::byte> result,
                                                  std::uint64_t element,
                                                  std::uint64_t most) const {
  const std::uint64_t bits = BitsAt(result, element);
  double sum = FloatingValue(type_, bits);
  if (reduce_ == ReduceOp::kAvg) sum *= ranks_;
  const auto place = static_cast<std::size_t>(element % kPeriod);
  const double set = std::nearbyint(std::ldexp(sum, -int{pattern_[place]}));
  if (!(set >= 0 && set <= static_cast<double>(most))) return std::nullopt;
  // Bit for bit, so that half a contribution is no contribution.
  if (ResultOfSet(static_cast<RankSet>(set), place) != bits) return std::nullopt;
  return static_cast<RankSet>(set);
}

double CallValues::Exact(std::uint64_t element) const {
  const auto place = static_cast<std::size_t>(element % kPeriod);
  if (kind_ != ValueKind::kRandom) return ValueOf(all_in_, place);
  double sum = 0;
  for (Rank rank = 0; rank < ranks_; ++rank) sum += Random(rank, element);
  return reduce_ == ReduceOp::kAvg ? sum / ranks_ : sum;
}

double CallValues::ValueOf(std::span<const std::byte> result, std::uint64_t element) const {
  const std::uint64_t bits = BitsAt(result, element);
  if (IsFloating(type_)) return FloatingValue(type_, bits);
  return static_cast<double>(WholeValue(type_, bits));
}

}  // namespace optireduce::sim
