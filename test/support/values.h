// What ranks contribute in tests, and what the reduction of it must be, worked out one element at a
// time by plain arithmetic. The floating-point values are chosen so that sums and products are
// exact in every order; integers take the whole range and wrap.
#ifndef OPTIREDUCE_TEST_SUPPORT_VALUES_H_
#define OPTIREDUCE_TEST_SUPPORT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "optireduce/types.h"

namespace optireduce::testing {

using Tensor = std::vector<std::byte>;

// A number that follows from its arguments and from nothing else.
std::uint64_t Mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0);
std::uint64_t HashOf(const void* data, std::size_t bytes);

Tensor Contribution(DataType type, ReduceOp op, int rank, std::size_t count, std::uint64_t salt);
// Of ranks [0, ranks), divided by `ranks` for AVG.
Tensor Expected(DataType type, ReduceOp op, int ranks, std::size_t count, std::uint64_t salt);

// The bits of a half or bfloat16 nearest to a number, ties to even.
std::uint16_t HalfBits(double value);
std::uint16_t BrainBits(double value);

// Elements that differ; the first of them is described in the failure that this adds.
std::size_t ExpectSame(const Tensor& expected, const void* actual, DataType type);

}  // namespace optireduce::testing

#endif  // OPTIREDUCE_TEST_SUPPORT_VALUES_H_
