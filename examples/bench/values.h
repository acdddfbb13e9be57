// What the ranks contribute, and what must come out.
//
// Each rank's contribution is a pattern of a prime number of elements, repeated over the tensor and
// shifted from iteration to iteration: a result left over from an earlier iteration, or a cell in
// another's place, is wrong. Every rank can make every other rank's pattern from the seed, so the
// right result is computed here, in one period, independently of the library.
//
// Immutable once made; any thread may use it.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_VALUES_H_
#define OPTIREDUCE_EXAMPLES_BENCH_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "optireduce/types.h"

namespace optireduce::bench {

enum class ValueKind : std::uint8_t {
  kIntegers,  // small whole numbers: the right result is one bit pattern, in any order of adding
  kRandom,    // floating point in [1, 2): right is what rounding can explain
};

// float -> the nearest float16 or bfloat16, ties to even, and back.
std::uint16_t Float16FromFloat(float value);
std::uint16_t BFloat16FromFloat(float value);
float FloatFromFloat16(std::uint16_t bits);
float FloatFromBFloat16(std::uint16_t bits);

class Values {
 public:
  static constexpr std::size_t kPeriod = 4093;

  struct Findings {
    std::uint64_t wrong = 0;  // elements
    double max_relative_error = 0;
  };

  // (type, op) is supported; 0 <= rank < ranks.
  Values(DataType type, ReduceOp op, ValueKind kind, int rank, int ranks, std::uint64_t seed);

  // Writes this rank's contribution of `count` elements.
  void Fill(std::byte* tensor, std::size_t count, std::uint64_t shift) const;

  // Compares a result with what contributions of the same shift must give.
  Findings Check(const std::byte* result, std::size_t count, std::uint64_t shift) const;

 private:
  void CheckSpan(const std::byte* result, std::size_t count, std::size_t first,
                 Findings* findings) const;

  const DataType type_;
  const bool bitwise_exact_;
  const double tolerance_;
  const std::size_t element_bytes_;
  // Two periods each, so that a period from any shift on is one piece of memory.
  std::vector<std::byte> contribution_;
  std::vector<std::byte> expected_;
  std::vector<double> reference_;  // expected_ before it was rounded to the type
};

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_VALUES_H_
