// What each rank contributes, and what the sum must be: a pattern of small whole numbers whose
// length no packet or shard divides, so that a misplaced part of a tensor shows. It differs from
// rank to rank and moves with every iteration. Sums are exact in any order.
//
// Pure functions over the caller's memory, any thread.
#ifndef OPTIREDUCE_TEST_LAB_PATTERN_H_
#define OPTIREDUCE_TEST_LAB_PATTERN_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace optireduce::lab {

inline constexpr std::size_t kPeriod = 1021;  // a prime

// factor * (place in the pattern) + constant, beginning at `shift`.
inline std::array<float, kPeriod> Pattern(std::uint64_t shift, int factor, int constant) {
  std::array<float, kPeriod> pattern;
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const std::uint64_t place = (i + shift) % kPeriod;
    pattern[i] = static_cast<float>(factor) * static_cast<float>(place) +
                 static_cast<float>(constant);
  }
  return pattern;
}

// The contribution of `rank`.
inline void Fill(std::span<float> tensor, std::uint64_t shift, int rank) {
  const auto pattern = Pattern(shift, 1, rank + 1);
  for (std::size_t i = 0; i < tensor.size(); i += kPeriod) {
    const std::size_t count = std::min(kPeriod, tensor.size() - i);
    std::memcpy(tensor.data() + i, pattern.data(), count * sizeof(float));
  }
}

// How many elements are not the sum over all ranks, to the bit.
inline std::uint64_t CountWrong(std::span<const float> sums, std::uint64_t shift, int ranks) {
  const auto expected = Pattern(shift, ranks, ranks * (ranks + 1) / 2);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); i += kPeriod) {
    const std::size_t count = std::min(kPeriod, sums.size() - i);
    if (std::memcmp(sums.data() + i, expected.data(), count * sizeof(float)) == 0) continue;
    for (std::size_t j = 0; j < count; ++j) {
      if (std::memcmp(&sums[i + j], &expected[j], sizeof(float)) != 0) ++wrong;
    }
  }
  return wrong;
}

}  // namespace optireduce::lab

#endif  // OPTIREDUCE_TEST_LAB_PATTERN_H_
