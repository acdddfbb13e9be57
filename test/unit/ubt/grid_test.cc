#include "transport/ubt/grid.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace optireduce::ubt {
namespace {

TEST(CellBytes, FillPacketsToMultiplesOf64Bytes) {
  struct Row {
    std::size_t packet_bytes_max;
    std::uint32_t cell_bytes;
  };
  for (const Row& row : {Row{1472, 1440},    // IPv4 at MTU 1500
                         Row{1452, 1376},    // IPv6 at MTU 1500: a packet of 1408
                         Row{1408, 1376}, Row{1471, 1376}, Row{8972, 8928}, Row{8952, 8864},
                         Row{64, 32}, Row{127, 32}, Row{128, 96}}) {
    EXPECT_EQ(CellBytes(row.packet_bytes_max, 32), row.cell_bytes) << row.packet_bytes_max;
  }
  EXPECT_EQ(CellBytes(63, 32), 0U);
  EXPECT_EQ(CellBytes(0, 32), 0U);
}

TEST(CellBytes, HoldWholeElementsOfEverySize) {
  for (std::size_t packet = 64; packet < 9100; ++packet) {
    const std::uint32_t bytes = CellBytes(packet, 32);
    ASSERT_EQ(bytes % 8, 0U);
    ASSERT_EQ((bytes + 32) % 64, 0U);
    ASSERT_LE(bytes + 32, packet);
    ASSERT_GT(bytes + 32 + 64, packet);
  }
}

TEST(Grid, CutsFourShardsOfFloats) {
  const Grid grid(1000, 4, 4, 1440);
  // 63 units of 16 elements: 16, 16, 16, 15; the last unit has but 8 elements.
  EXPECT_EQ(grid.ShardFirst(0), 0U);
  EXPECT_EQ(grid.ShardFirst(1), 256U);
  EXPECT_EQ(grid.ShardFirst(2), 512U);
  EXPECT_EQ(grid.ShardFirst(3), 768U);
  EXPECT_EQ(grid.ShardFirst(4), 1000U);
  EXPECT_EQ(grid.ShardElements(3), 232U);
  EXPECT_EQ(grid.Cells(0), 1U);
  EXPECT_EQ(grid.CellElements(0, 0), 256U);
  EXPECT_FALSE(grid.CellIsFull(0, 0));
}

TEST(Grid, LastCellOfAShardMayBeShort) {
  const Grid grid(3 * 400, 4, 3, 1440);
  EXPECT_EQ(grid.Cells(0), 2U);
  EXPECT_TRUE(grid.CellIsFull(0, 0));
  EXPECT_EQ(grid.CellFirst(1), 360U);
  EXPECT_EQ(grid.CellElements(0, 1), 40U);
  EXPECT_EQ(grid.CellsMax(), 2U);
  EXPECT_EQ(grid.FlatCells(), 6U);
  EXPECT_EQ(grid.Flat(2), 4U);
}

TEST(Grid, FewElementsGoToTheFirstRank) {
  const Grid one(1, 8, 128, 1440);
  EXPECT_EQ(one.ShardElements(0), 1U);
  for (Rank k = 1; k < 128; ++k) EXPECT_EQ(one.Cells(k), 0U);
  const Grid none(0, 4, 5, 1440);
  EXPECT_EQ(none.CellsMax(), 0U);
  EXPECT_EQ(none.FlatCells(), 0U);
  EXPECT_EQ(none.ShardFirst(5), 0U);
}

TEST(Grid, CountsBeyond32Bits) {
  const std::uint64_t count = (std::uint64_t{1} << 33) + 12345;
  const Grid grid(count, 1, 3, 1440);
  EXPECT_EQ(grid.ShardFirst(3), count);
  // 134,217,921 units of 64 elements, 44,739,307 a shard.
  EXPECT_EQ(grid.ShardFirst(1), std::uint64_t{44'739'307} * 64);
  EXPECT_EQ(grid.ShardFirst(2), std::uint64_t{44'739'307} * 2 * 64);
  const CellIndex last = grid.Cells(1) - 1;
  EXPECT_EQ(grid.CellFirst(last), std::uint64_t{last} * 1440);
  EXPECT_EQ(grid.CellFirst(last) + grid.CellElements(1, last), grid.ShardElements(1));
}

}  // namespace
}  // namespace optireduce::ubt
