// Sizes as people write them, and the sweep over sizes that -b, -e and -f describe.
//
// Pure functions, any thread.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_SIZES_H_
#define OPTIREDUCE_EXAMPLES_BENCH_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optireduce/status.h"

namespace optireduce::bench {

// "4096", "4K", "25M", "1g": powers of 1024; a trailing "B" or "iB" is let through ("4KiB").
std::optional<std::uint64_t> ParseSize(std::string_view text);

// "4 KiB", "1.5 MiB", "1000 B": for progress lines.
std::string SizeText(std::uint64_t bytes);

struct Sweep {
  std::uint64_t bytes_min = 0;
  std::uint64_t bytes_max = 0;
  std::uint64_t factor = 2;      // used when step_bytes is 0
  std::uint64_t step_bytes = 0;  // otherwise each size is this much more than the one before
};

// The sizes from bytes_min to at most bytes_max.
Result<std::vector<std::uint64_t>> SweepSizes(const Sweep& sweep);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_SIZES_H_
