#include "test/support/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lib/check.h"

namespace optireduce::testing {
namespace {

__extension__ using Int128 = __int128;

bool IsFloat(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64 || type == DataType::kFloat16 ||
         type == DataType::kBFloat16;
}

// The nearest number of a format, as its bits.
std::uint16_t NarrowBits(double value, int fraction_bits, int exponent_bits) {
  const int sign_bit = fraction_bits + exponent_bits;
  const auto sign = static_cast<unsigned>(std::signbit(value) ? 1 : 0) << sign_bit;
  const unsigned infinity = ((1U << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1U << (fraction_bits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  const int least = 2 - (1 << (exponent_bits - 1)) - fraction_bits;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - fraction_bits - 1, least);
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
  const unsigned bits = units + (static_cast<unsigned>(unit - least) << fraction_bits);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

void Store(Tensor& tensor, std::size_t index, std::uint64_t bits, std::size_t element_bytes) {
  std::memcpy(tensor.data() + index * element_bytes, &bits, element_bytes);  // little endian
}

std::uint64_t FloatBits(DataType type, double value) {
  switch (type) {
    case DataType::kFloat64:
      return std::bit_cast<std::uint64_t>(value);
    case DataType::kFloat32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DataType::kFloat16:
      return HalfBits(value);
    default:
      return BrainBits(value);
  }
}

double FloatValue(ReduceOp op, int rank, std::size_t index, std::uint64_t salt) {
  const std::uint64_t number = Mix(static_cast<std::uint64_t>(rank) + 1, index, salt);
  constexpr double kFactors[] = {1, -1, 2, 0.5, -2, -0.5};
  if (op == ReduceOp::kProduct) return kFactors[number % std::size(kFactors)];
  return (static_cast<double>(number % 33) - 16) / 4;
}

std::int64_t IntegerValue(DataType type, int rank, std::size_t index, std::uint64_t salt) {
  const std::uint64_t number = Mix(static_cast<std::uint64_t>(rank) + 1, index, salt);
  if (type == DataType::kBool) return static_cast<std::int64_t>(number % 3);
  if (type == DataType::kUInt8) return static_cast<std::int64_t>(number & 0xFF);
  const auto shift = static_cast<unsigned>(64 - 8 * ElementBytes(type));
  return static_cast<std::int64_t>(number << shift) >> shift;
}

double ReduceFloats(DataType type, ReduceOp op, const std::vector<double>& values) {
  double result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    switch (op) {
      case ReduceOp::kProduct:
        result *= values[i];
        break;
      case ReduceOp::kMin:
        result = std::min(result, values[i]);
        break;
      case ReduceOp::kMax:
        result = std::max(result, values[i]);
        break;
      default:
        result += values[i];
    }
  }
  if (op != ReduceOp::kAvg) return result;
  const auto ranks = static_cast<double>(values.size());
  if (type == DataType::kFloat64) return result / ranks;
  return static_cast<float>(result) / static_cast<float>(ranks);
}

std::uint64_t ReduceBools(ReduceOp op, const std::vector<std::int64_t>& values) {
  const auto trues = std::count_if(values.begin(), values.end(), [](auto x) { return x != 0; });
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBitOr:
      return trues > 0 ? 1 : 0;
    case ReduceOp::kBitXor:
      return static_cast<std::uint64_t>(trues % 2);
    default:
      return static_cast<std::size_t>(trues) == values.size() ? 1 : 0;
  }
}

std::uint64_t ReduceIntegers(DataType type, ReduceOp op, const std::vector<std::int64_t>& values) {
  Int128 sum = 0;
  std::uint64_t product = 1;
  std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t any = 0;
  std::uint64_t odd = 0;
  for (const std::int64_t x : values) {
    sum += x;
    product *= static_cast<std::uint64_t>(x);
    all &= static_cast<std::uint64_t>(x);
    any |= static_cast<std::uint64_t>(x);
    odd ^= static_cast<std::uint64_t>(x);
  }
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<std::uint64_t>(sum);
    case ReduceOp::kAvg:
      if (type == DataType::kInt64) sum = static_cast<std::int64_t>(sum);  // 64-bit sums wrap
      return static_cast<std::uint64_t>(sum / static_cast<Int128>(values.size()));
    case ReduceOp::kProduct:
      return product;
    case ReduceOp::kMin:
      return static_cast<std::uint64_t>(*std::min_element(values.begin(), values.end()));
    case ReduceOp::kMax:
      return static_cast<std::uint64_t>(*std::max_element(values.begin(), values.end()));
    case ReduceOp::kBitAnd:
      return all;
    case ReduceOp::kBitOr:
      return any;
    case ReduceOp::kBitXor:
      return odd;
  }
  return 0;
}

std::uint64_t BitsAt(const void* tensor, std::size_t index, std::size_t element_bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(tensor) + index * element_bytes, element_bytes);
  return bits;
}

}  // namespace

static_assert(std::endian::native == std::endian::little);

std::uint64_t Mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b * 0xD1B54A32D192ED03U + c * 0x8CB92BA72F3D8DD7U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::uint64_t HashOf(const void* data, std::size_t bytes) {
  std::uint64_t hash = bytes;
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(data) + at,
                std::min(bytes - at, sizeof(std::uint64_t)));
    hash = (std::rotl(hash, 23) ^ word) * 0x9E3779B97F4A7C15U;
  }
  return hash;
}

std::uint16_t HalfBits(double value) { return NarrowBits(value, 10, 5); }

std::uint16_t BrainBits(double value) { return NarrowBits(value, 7, 8); }

Tensor Contribution(DataType type, ReduceOp op, int rank, std::size_t count, std::uint64_t salt) {
  const std::size_t element_bytes = ElementBytes(type);
  Tensor tensor(count * element_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits =
        IsFloat(type) ? FloatBits(type, FloatValue(op, rank, i, salt))
                      : static_cast<std::uint64_t>(IntegerValue(type, rank, i, salt));
    Store(tensor, i, bits, element_bytes);
  }
  return tensor;
}

Tensor Expected(DataType type, ReduceOp op, int ranks, std::size_t count, std::uint64_t salt) {
  const std::size_t element_bytes = ElementBytes(type);
  Tensor tensor(count * element_bytes);
  std::vector<double> floats(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> integers(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    if (IsFloat(type)) {
      for (int r = 0; r < ranks; ++r) {
        floats[static_cast<std::size_t>(r)] = FloatValue(op, r, i, salt);
      }
      bits = FloatBits(type, ReduceFloats(type, op, floats));
    } else {
      for (int r = 0; r < ranks; ++r) {
        integers[static_cast<std::size_t>(r)] = IntegerValue(type, r, i, salt);
      }
      bits = type == DataType::kBool ? ReduceBools(op, integers)
                                     : ReduceIntegers(type, op, integers);
    }
    Store(tensor, i, bits, element_bytes);
  }
  return tensor;
}

std::size_t ExpectSame(const Tensor& expected, const void* actual, DataType type) {
  if (expected.empty() || std::memcmp(expected.data(), actual, expected.size()) == 0) return 0;
  const std::size_t element_bytes = ElementBytes(type);
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < expected.size() / element_bytes; ++i) {
    if (BitsAt(expected.data(), i, element_bytes) == BitsAt(actual, i, element_bytes)) continue;
    if (wrong++ == 0) first = i;
  }
  ADD_FAILURE() << wrong << " of " << expected.size() / element_bytes << " elements of "
                << Name(type) << " are wrong; element " << first << " has the bits " << std::hex
                << BitsAt(actual, first, element_bytes) << ", expected "
                << BitsAt(expected.data(), first, element_bytes);
  return wrong;
}

}  // namespace optireduce::testing
