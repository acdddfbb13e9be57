#include "examples/bench/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace optireduce::bench {
namespace {

bool IsFloatingPoint(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBFloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

bool IsBitwise(ReduceOp op) {
  return op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
}

// A well-mixed 64-bit number for each (seed, rank, element): the finalizer of SplitMix64.
std::uint64_t Mixed(std::uint64_t seed, std::uint64_t rank, std::uint64_t element) {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15U * (rank + 1) + 0xD1B54A32D192ED03U * element;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Of an integer type, or a whole number that a floating point type holds exactly.
std::int64_t WholeNumber(DataType type, ReduceOp op, std::uint64_t rank, std::uint64_t bits) {
  if (type == DataType::kBool) return static_cast<std::int64_t>(bits % 8 != 0 ? bits & 1 : 2);
  if (IsBitwise(op)) return static_cast<std::int32_t>(bits);
  switch (op) {
    case ReduceOp::kProduct:
      // Three ranks make the product; the others are there, but keep it small.
      return rank < 3 ? static_cast<std::int64_t>(1 + bits % 3) : 1;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return static_cast<std::int64_t>(bits % 100) + 1;
    default:
      // From 1 on, so that a lost contribution shows in every element.
      return static_cast<std::int64_t>(bits % 8) + 1;
  }
}

double RandomNumber(ReduceOp op, int ranks, std::uint64_t bits) {
  const double fraction = static_cast<double>(bits >> 11) * 0x1p-53;
  return 1 + (op == ReduceOp::kProduct ? fraction / ranks : fraction);
}

template <typename T>
void Put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

template <typename T>
T Get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

void EncodeInteger(DataType type, std::uint64_t value, std::byte* at) {
  switch (ElementBytes(type)) {
    case 1:
      return Put(at, static_cast<std::uint8_t>(value));
    case 2:
      return Put(at, static_cast<std::uint16_t>(value));
    case 4:
      return Put(at, static_cast<std::uint32_t>(value));
    default:
      return Put(at, value);
  }
}

void EncodeFloat(DataType type, double value, std::byte* at) {
  switch (type) {
    case DataType::kFloat64:
      return Put(at, value);
    case DataType::kFloat16:
      return Put(at, Float16FromFloat(static_cast<float>(value)));
    case DataType::kBFloat16:
      return Put(at, BFloat16FromFloat(static_cast<float>(value)));
    default:
      return Put(at, static_cast<float>(value));
  }
}

double Decode(DataType type, const std::byte* at) {
  switch (type) {
    case DataType::kFloat32:
      return static_cast<double>(Get<float>(at));
    case DataType::kFloat64:
      return Get<double>(at);
    case DataType::kFloat16:
      return static_cast<double>(FloatFromFloat16(Get<std::uint16_t>(at)));
    case DataType::kBFloat16:
      return static_cast<double>(FloatFromBFloat16(Get<std::uint16_t>(at)));
    case DataType::kInt8:
      return Get<std::int8_t>(at);
    case DataType::kInt16:
      return Get<std::int16_t>(at);
    case DataType::kInt32:
      return Get<std::int32_t>(at);
    case DataType::kInt64:
      return static_cast<double>(Get<std::int64_t>(at));
    case DataType::kUInt8:
    case DataType::kBool:
      return Get<std::uint8_t>(at);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The accumulated value of integers; wraps as the type does once it is cut to it.
std::uint64_t CombineIntegers(ReduceOp op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return x + y;
    case ReduceOp::kProduct:
      return x * y;
    case ReduceOp::kMin:
      return static_cast<std::uint64_t>(std::min(a, b));
    case ReduceOp::kMax:
      return static_cast<std::uint64_t>(std::max(a, b));
    case ReduceOp::kBitAnd:
      return x & y;
    case ReduceOp::kBitOr:
      return x | y;
    case ReduceOp::kBitXor:
      return x ^ y;
  }
  return 0;
}

double CombineFloats(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    default:
      return a + b;
  }
}

// The right result of one element of an integer type. A bool counts as true unless it is 0.
std::uint64_t ReduceIntegers(DataType type, ReduceOp op, int ranks, std::uint64_t seed,
                             std::size_t element) {
  std::int64_t sum = 0;
  bool any = false;
  bool all = true;
  bool odd = false;
  for (int r = 0; r < ranks; ++r) {
    const auto rank = static_cast<std::uint64_t>(r);
    std::int64_t value = WholeNumber(type, op, rank, Mixed(seed, rank, element));
    if (type == DataType::kInt8) value = static_cast<std::int8_t>(value);
    if (type == DataType::kInt16) value = static_cast<std::int16_t>(value);
    if (type == DataType::kUInt8) value = static_cast<std::uint8_t>(value);
    any = any || value != 0;
    all = all && value != 0;
    odd = odd != (value != 0);
    sum = r == 0 ? value : static_cast<std::int64_t>(CombineIntegers(op, sum, value));
  }
  if (type != DataType::kBool) {
    return static_cast<std::uint64_t>(op == ReduceOp::kAvg ? sum / ranks : sum);
  }
  switch (op) {
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
      return all ? 1 : 0;
    case ReduceOp::kBitXor:
      return odd ? 1 : 0;
    default:
      return any ? 1 : 0;
  }
}

double FloatContribution(DataType type, ReduceOp op, ValueKind kind, int rank, int ranks,
                         std::uint64_t bits) {
  if (kind == ValueKind::kIntegers) {
    return static_cast<double>(WholeNumber(type, op, static_cast<std::uint64_t>(rank), bits));
  }
  std::byte element[8];
  EncodeFloat(type, RandomNumber(op, ranks, bits), element);
  return Decode(type, element);
}

double ReduceFloats(DataType type, ReduceOp op, ValueKind kind, int ranks, std::uint64_t seed,
                    std::size_t element) {
  double result = 0;
  for (int r = 0; r < ranks; ++r) {
    const std::uint64_t bits = Mixed(seed, static_cast<std::uint64_t>(r), element);
    const double value = FloatContribution(type, op, kind, r, ranks, bits);
    result = r == 0 ? value : CombineFloats(op, result, value);
  }
  return op == ReduceOp::kAvg ? result / ranks : result;
}

// What rounding can explain, relative to the result: once for each rank in the accumulator, once to
// the type.
double Tolerance(DataType type, int ranks) {
  switch (type) {
    case DataType::kFloat64:
      return (ranks + 1) * 0x1p-52;
    case DataType::kFloat16:
      return ranks * 0x1p-23 + 0x1p-10;
    case DataType::kBFloat16:
      return ranks * 0x1p-23 + 0x1p-7;
    default:
      return (ranks + 1) * 0x1p-23;
  }
}

}  // namespace

std::uint16_t Float16FromFloat(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7C00);
  if (magnitude < 0x1p-14F) {  // subnormal: a whole number of 2^-24
    return static_cast<std::uint16_t>(sign | std::lrint(magnitude * 0x1p24F));
  }
  const int exponent = std::ilogb(magnitude);
  // In [1024, 2048]; the upper end carries into the exponent, as it should.
  const long fraction = std::lrint(std::ldexp(magnitude, 10 - exponent));
  return static_cast<std::uint16_t>(sign | (((exponent + 15) << 10) + fraction - 1024));
}

std::uint16_t BFloat16FromFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x0040);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float FloatFromFloat16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  float magnitude = 0;
  if (exponent == 0x1F) {
    magnitude = fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                              : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float FloatFromBFloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

Values::Values(DataType type, ReduceOp op, ValueKind kind, int rank, int ranks, std::uint64_t seed)
    : type_(type),
      bitwise_exact_(kind == ValueKind::kIntegers || !IsFloatingPoint(type)),
      tolerance_(Tolerance(type, ranks)),
      element_bytes_(ElementBytes(type)),
      contribution_(2 * kPeriod * element_bytes_),
      expected_(2 * kPeriod * element_bytes_),
      reference_(2 * kPeriod) {
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const std::uint64_t bits = Mixed(seed, static_cast<std::uint64_t>(rank), i);
    std::byte* const own = contribution_.data() + i * element_bytes_;
    std::byte* const all = expected_.data() + i * element_bytes_;
    if (!IsFloatingPoint(type)) {
      const auto number = WholeNumber(type, op, static_cast<std::uint64_t>(rank), bits);
      EncodeInteger(type, static_cast<std::uint64_t>(number), own);
      EncodeInteger(type, ReduceIntegers(type, op, ranks, seed, i), all);
      reference_[i] = Decode(type, all);
      continue;
    }
    EncodeFloat(type, FloatContribution(type, op, kind, rank, ranks, bits), own);
    reference_[i] = ReduceFloats(type, op, kind, ranks, seed, i);
    double rounded = reference_[i];
    if (op == ReduceOp::kAvg && type != DataType::kFloat64) {
      // The average of a half type is divided in float32 and then rounded once more.
      rounded = static_cast<double>(static_cast<float>(rounded * ranks) /
                                    static_cast<float>(ranks));
    }
    EncodeFloat(type, rounded, all);
    if (bitwise_exact_) reference_[i] = Decode(type, all);
  }
  std::copy_n(contribution_.begin(), contribution_.size() / 2,
              contribution_.begin() + kPeriod * element_bytes_);
  std::copy_n(expected_.begin(), expected_.size() / 2,
              expected_.begin() + kPeriod * element_bytes_);
  std::copy_n(reference_.begin(), kPeriod, reference_.begin() + kPeriod);
}

void Values::Fill(std::byte* tensor, std::size_t count, std::uint64_t shift) const {
  const std::byte* const period = contribution_.data() + shift % kPeriod * element_bytes_;
  for (std::size_t first = 0; first < count; first += kPeriod) {
    std::memcpy(tensor + first * element_bytes_, period,
                std::min(kPeriod, count - first) * element_bytes_);
  }
}

Values::Findings Values::Check(const std::byte* result, std::size_t count,
                               std::uint64_t shift) const {
  Findings findings;
  const std::size_t start = shift % kPeriod;
  const std::byte* const period = expected_.data() + start * element_bytes_;
  for (std::size_t first = 0; first < count; first += kPeriod) {
    const std::size_t length = std::min(kPeriod, count - first);
    const std::byte* const span = result + first * element_bytes_;
    const bool same = std::memcmp(span, period, length * element_bytes_) == 0;
    // Random values: the same as the rounded reference still differs from the reference itself.
    if (!same || !bitwise_exact_) CheckSpan(span, length, start, &findings);
  }
  return findings;
}

void Values::CheckSpan(const std::byte* result, std::size_t count, std::size_t first,
                       Findings* findings) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const got = result + i * element_bytes_;
    const std::byte* const want = expected_.data() + (first + i) * element_bytes_;
    const bool same = std::memcmp(got, want, element_bytes_) == 0;
    if (same && bitwise_exact_) continue;
    const double reference = reference_[first + i];
    const double unit = IsFloatingPoint(type_) ? std::fabs(reference)
                                               : std::max(1.0, std::fabs(reference));
    double error = std::fabs(Decode(type_, got) - reference) / unit;
    // NaN and infinity have no place in the results: worse than everything else will do.
    if (!std::isfinite(error)) error = std::numeric_limits<double>::max();
    findings->max_relative_error = std::max(findings->max_relative_error, error);
    const bool right = bitwise_exact_ ? same : error <= tolerance_;
    if (!right) ++findings->wrong;
  }
}

}  // namespace optireduce::bench
