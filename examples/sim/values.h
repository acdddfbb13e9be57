// What simulated ranks contribute, and what must come out: an oracle that shares no code with the
// library's kernels.
//
// Immutable once made. Which contributions are in a result can be read from its bits (kSets), so
// that what reports say about losses is compared with the truth and not with another report.
#ifndef OPTIREDUCE_EXAMPLES_SIM_VALUES_H_
#define OPTIREDUCE_EXAMPLES_SIM_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/ids.h"
#include "optireduce/types.h"

namespace optireduce::sim {

enum class ValueKind : std::uint8_t {
  kSmall,   // small whole numbers: one right bit pattern, in any order of adding
  kSets,    // rank r contributes 2^r, scaled by a power of two of the element: sums name their set
  kRandom,  // floating point in [-1, 1): right is what rounding can explain
  kCounts,  // each rank contributes the same power of two: sums tell how many are in them
};
std::string_view Name(ValueKind kind);  // "sets"

// Ranks as bits: bit r is rank r.
using RankSet = std::uint64_t;

class CallValues {
 public:
  // (type, reduce) is supported; kSets where CanTellSets; kRandom and kCounts for floating point
  // SUM and AVG.
  CallValues(ValueKind kind, DataType type, ReduceOp reduce, std::uint32_t ranks,
             std::uint64_t seed);

  // True where results of every set of ranks have bits of their own.
  static bool CanTellSets(DataType type, ReduceOp reduce, std::uint32_t ranks);

  ValueKind kind() const { return kind_; }
  RankSet everybody() const { return everybody_; }
  std::size_t element_bytes() const { return element_bytes_; }

  // Writes the rank's contribution over the whole tensor.
  void Fill(Rank rank, std::span<std::byte> tensor) const;

  // First element of `result` at or after `from` that is not what all contributions give; the
  // number of elements when there is none. Not of kRandom.
  std::uint64_t NextUnlikeAll(std::span<const std::byte> result, std::uint64_t from) const;

  // The set whose result this element is; nothing: of none. kSets.
  std::optional<RankSet> SetOf(std::span<const std::byte> result, std::uint64_t element) const;

  // How many contributions this element has; nothing: it is no sum of any number. kCounts.
  std::optional<std::uint64_t> CountOf(std::span<const std::byte> result,
                                       std::uint64_t element) const;

  // The exact result with all contributions in, as fp64 has it, and a result's element as fp64.
  double Exact(std::uint64_t element) const;
  double ValueOf(std::span<const std::byte> result, std::uint64_t element) const;

 private:
  static constexpr std::size_t kPeriod = 1021;
  static constexpr std::size_t kScales = 8;

  std::int64_t Small(Rank rank, std::size_t place) const;
  double Random(Rank rank, std::uint64_t element) const;
  std::uint64_t ResultOfSmall(std::size_t place) const;
  std::uint64_t ResultOfSet(RankSet set, std::size_t place) const;
  // The set as a number: its members' contributions of kSets, or how many there are of kCounts.
  std::optional<std::uint64_t> WholeSum(std::span<const std::byte> result, std::uint64_t element,
                                        std::uint64_t most) const;
  std::uint64_t BitsAt(std::span<const std::byte> tensor, std::uint64_t element) const;

  ValueKind kind_;
  DataType type_;
  ReduceOp reduce_;
  std::uint32_t ranks_;
  std::uint64_t seed_;
  std::size_t element_bytes_;
  RankSet everybody_;
  std::array<std::uint8_t, kPeriod> pattern_{};  // repeated over the tensor
  std::vector<std::byte> all_in_;                // results of one period with everybody in
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_VALUES_H_
