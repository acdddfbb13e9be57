// How an op's elements are cut: into one shard per rank, and each shard into cells, the elements of
// one packet. A pure function of (count, element size, ranks, cell size), the same in both stages
// and on all ranks.
#ifndef OPTIREDUCE_TRANSPORT_UBT_GRID_H_
#define OPTIREDUCE_TRANSPORT_UBT_GRID_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/ids.h"

namespace optireduce::ubt {

// Shard borders are multiples of this, so that no two ranks write into one cache line.
inline constexpr std::uint64_t kShardAlignBytes = 64;

// The largest payload of whole elements (of up to 8 bytes) that keeps header + payload a multiple
// of 64 bytes within a datagram of `packet_bytes_max`; 0 when there is none.
constexpr std::uint32_t CellBytes(std::size_t packet_bytes_max, std::size_t header_bytes) {
  const std::size_t packet = packet_bytes_max / kShardAlignBytes * kShardAlignBytes;
  return packet > header_bytes ? static_cast<std::uint32_t>(packet - header_bytes) / 8 * 8 : 0;
}

class Grid {
 public:
  Grid() = default;
  Grid(std::uint64_t count, std::uint32_t element_bytes, std::uint32_t ranks,
       std::uint32_t cell_bytes)
      : count_(count),
        element_bytes_(element_bytes),
        ranks_(ranks),
        cell_elements_(cell_bytes / element_bytes) {
    const std::uint64_t per_unit = kShardAlignBytes / element_bytes_;
    const std::uint64_t units = (count_ + per_unit - 1) / per_unit;
    unit_elements_ = per_unit;
    units_each_ = units / ranks_;
    units_extra_ = units % ranks_;
    cells_each_max_ = static_cast<CellIndex>(Cells(0));
  }

  std::uint64_t count() const { return count_; }
  std::uint32_t element_bytes() const { return element_bytes_; }
  std::uint32_t cell_elements() const { return cell_elements_; }

  // First element of shard k; shard `ranks` begins at the end.
  std::uint64_t ShardFirst(Rank k) const {
    const std::uint64_t units = k * units_each_ + std::min<std::uint64_t>(k, units_extra_);
    return std::min(units * unit_elements_, count_);
  }
  std::uint64_t ShardElements(Rank k) const { return ShardFirst(k + 1) - ShardFirst(k); }
  CellIndex Cells(Rank k) const {
    return static_cast<CellIndex>((ShardElements(k) + cell_elements_ - 1) / cell_elements_);
  }
  // The largest number of cells of any shard: shard 0 is never smaller than another.
  CellIndex CellsMax() const { return cells_each_max_; }
  // Where shard k's cells begin in arrays that hold all cells of the op side by side.
  std::uint32_t Flat(Rank k) const { return k * cells_each_max_; }
  std::uint32_t FlatCells() const { return ranks_ * cells_each_max_; }

  // First element of a cell within its shard, and how many it has.
  std::uint64_t CellFirst(CellIndex cell) const {
    return std::uint64_t{cell} * cell_elements_;
  }
  std::uint32_t CellElements(Rank k, CellIndex cell) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(cell_elements_, ShardElements(k) - CellFirst(cell)));
  }
  bool CellIsFull(Rank k, CellIndex cell) const {
    return CellElements(k, cell) == cell_elements_;
  }

 private:
  std::uint64_t count_ = 0;
  std::uint32_t element_bytes_ = 1;
  std::uint32_t ranks_ = 1;
  std::uint32_t cell_elements_ = 1;
  std::uint64_t unit_elements_ = 1;
  std::uint64_t units_each_ = 0;
  std::uint64_t units_extra_ = 0;
  CellIndex cells_each_max_ = 0;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_GRID_H_
