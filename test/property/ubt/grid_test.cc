#include "transport/ubt/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "lib/random.h"

namespace optireduce::ubt {
namespace {

constexpr std::uint32_t kElementBytes[] = {1, 2, 4, 8};

// What holds for every grid, without looking at single elements.
void CheckBorders(const Grid& grid, std::uint64_t count, std::uint32_t bytes,
                  std::uint32_t ranks) {
  ASSERT_EQ(grid.ShardFirst(0), 0U);
  ASSERT_EQ(grid.ShardFirst(ranks), count);
  std::uint64_t smallest = count;
  for (Rank k = 0; k < ranks; ++k) {
    ASSERT_LE(grid.ShardFirst(k), grid.ShardFirst(k + 1));
    if (grid.ShardFirst(k) != count) {
      ASSERT_EQ(grid.ShardFirst(k) * bytes % 64, 0U);
    }
    ASSERT_LE(grid.ShardElements(k), grid.ShardElements(0));
    ASSERT_LE(grid.Cells(k), grid.CellsMax());
    smallest = std::min(smallest, grid.ShardElements(k));
    // The cells of a shard are full but the last, and together are the shard.
    const CellIndex cells = grid.Cells(k);
    if (cells == 0) {
      ASSERT_EQ(grid.ShardElements(k), 0U);
      continue;
    }
    const std::uint32_t last = grid.CellElements(k, cells - 1);
    ASSERT_GE(last, 1U);
    ASSERT_LE(last, grid.cell_elements());
    ASSERT_EQ(grid.CellFirst(cells - 1) + last, grid.ShardElements(k));
    ASSERT_EQ(grid.CellFirst(cells - 1), std::uint64_t{cells - 1} * grid.cell_elements());
    if (cells > 1) {
      ASSERT_TRUE(grid.CellIsFull(k, cells / 2 - 1));
    }
  }
  // Equal shares: within one unit of 64 bytes, and the end of the tensor.
  ASSERT_LT(grid.ShardElements(0) - smallest, 2 * 64 / bytes);
}

// Every element is in exactly one cell of one shard.
void CheckElements(const Grid& grid, std::uint64_t count, std::uint32_t ranks) {
  std::vector<std::uint8_t> times(count, 0);
  std::set<std::uint32_t> flats;
  for (Rank k = 0; k < ranks; ++k) {
    for (CellIndex cell = 0; cell < grid.Cells(k); ++cell) {
      ASSERT_TRUE(flats.insert(grid.Flat(k) + cell).second);
      ASSERT_LT(grid.Flat(k) + cell, grid.FlatCells());
      const std::uint64_t first = grid.ShardFirst(k) + grid.CellFirst(cell);
      for (std::uint64_t i = first; i < first + grid.CellElements(k, cell); ++i) ++times.at(i);
    }
  }
  ASSERT_TRUE(std::all_of(times.begin(), times.end(), [](std::uint8_t n) { return n == 1; }));
}

TEST(GridProperty, EveryElementInOneCellOfOneShard) {
  for (std::uint32_t ranks = 1; ranks <= 128; ++ranks) {
    for (const std::uint32_t bytes : kElementBytes) {
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{ranks} - 1, std::uint64_t{ranks},
            std::uint64_t{ranks} + 1, std::uint64_t{2}, std::uint64_t{61}, std::uint64_t{997},
            std::uint64_t{4099}}) {
        const Grid grid(count, bytes, ranks, 1440);
        CheckBorders(grid, count, bytes, ranks);
        CheckElements(grid, count, ranks);
        if (HasFatalFailure()) FAIL() << count << " of " << bytes << " bytes, ranks " << ranks;
      }
    }
  }
}

TEST(GridProperty, RandomCountsAndCells) {
  Stream random(1, 0, "grid");
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t count = random.Below(20'000);
    const std::uint32_t bytes = kElementBytes[random.Below(4)];
    const auto ranks = static_cast<std::uint32_t>(1 + random.Below(128));
    const auto cell_bytes = static_cast<std::uint32_t>(8 + 8 * random.Below(200));
    const Grid grid(count, bytes, ranks, cell_bytes);
    CheckBorders(grid, count, bytes, ranks);
    CheckElements(grid, count, ranks);
    if (HasFatalFailure()) FAIL() << count << " of " << bytes << " bytes, ranks " << ranks;
  }
}

TEST(GridProperty, CountsBeyond32Bits) {
  Stream random(2, 0, "grid");
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t count = (std::uint64_t{1} << 32) + random.Below(std::uint64_t{1} << 34);
    const std::uint32_t bytes = kElementBytes[random.Below(4)];
    const auto ranks = static_cast<std::uint32_t>(1 + random.Below(128));
    CheckBorders(Grid(count, bytes, ranks, 1440), count, bytes, ranks);
    if (HasFatalFailure()) FAIL() << count << " of " << bytes << " bytes, ranks " << ranks;
  }
}

}  // namespace
}  // namespace optireduce::ubt
