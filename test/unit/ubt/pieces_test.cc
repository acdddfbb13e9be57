#include "transport/ubt/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "transport/wire/message.h"

namespace optireduce::ubt {
namespace {

std::vector<std::byte> Cell(std::size_t bytes, unsigned salt) {
  std::vector<std::byte> cell(bytes);
  for (std::size_t i = 0; i < bytes; ++i) cell[i] = static_cast<std::byte>(i * 7 + salt);
  return cell;
}

std::span<const std::byte> PieceOfCell(const std::vector<std::byte>& cell, std::uint32_t index) {
  const PieceRange range = PieceAt(index, cell.size());
  return std::span(cell).subspan(range.first, range.bytes);
}

bool Same(std::span<const std::byte> a, const std::vector<std::byte>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST(Pieces, CutEveryCellWithoutAGapIntoWholeElements) {
  for (std::size_t bytes = 1; bytes <= 9000; ++bytes) {
    const std::uint32_t count = PieceCount(bytes);
    ASSERT_GE(count, 1u);
    ASSERT_LE(count, wire::kPiecesMax);
    std::size_t end = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const PieceRange range = PieceAt(i, bytes);
      ASSERT_EQ(range.first, end);
      ASSERT_EQ(range.first % 8, 0u);
      ASSERT_GT(range.bytes, 0u);
      end += range.bytes;
    }
    ASSERT_EQ(end, bytes);
    ASSERT_EQ(PieceAt(count, bytes).bytes, 0u);
  }
}

TEST(Pieces, MakeTheCellInWhateverOrderAndHoweverOftenTheyCome) {
  Pieces pieces(1440);
  const std::vector<std::byte> cell = Cell(1440, 3);
  const PieceOf of{7, 2, Stage::kBroadcast, 11};
  for (const std::uint32_t index : {5U, 0U, 7U, 7U, 1U, 2U, 6U, 0U, 4U}) {
    EXPECT_TRUE(pieces.Add(of, index, cell.size(), PieceOfCell(cell, index)).empty());
  }
  EXPECT_TRUE(Same(pieces.Add(of, 3, cell.size(), PieceOfCell(cell, 3)), cell));
  // And it is forgotten then.
  EXPECT_TRUE(pieces.Add(of, 3, cell.size(), PieceOfCell(cell, 3)).empty());
}

TEST(Pieces, OfDifferentCellsAreKeptApart) {
  Pieces pieces(1440);
  const std::vector<PieceOf> cells = {{7, 2, Stage::kBroadcast, 11},
                                      {7, 2, Stage::kScatter, 11},
                                      {7, 3, Stage::kBroadcast, 11},
                                      {8, 2, Stage::kBroadcast, 11},
                                      {7, 2, Stage::kBroadcast, 12}};
  for (std::uint32_t index = 0; index < 8; ++index) {
    for (unsigned i = 0; i < cells.size(); ++i) {
      const std::vector<std::byte> cell = Cell(1440, i);
      const auto whole = pieces.Add(cells[i], index, cell.size(), PieceOfCell(cell, index));
      EXPECT_EQ(!whole.empty(), index == 7);
      if (index == 7) {
        EXPECT_TRUE(Same(whole, cell));
      }
    }
  }
}

// A peer that begins cells and ends none takes no more memory, and costs others a repeat.
TEST(Pieces, TheOldestIsGivenUpForAnother) {
  Pieces pieces(1440);
  const std::vector<std::byte> cell = Cell(1440, 1);
  for (CellIndex i = 0; i <= Pieces::kCells; ++i) {
    pieces.Add({1, 1, Stage::kScatter, i}, 0, cell.size(), PieceOfCell(cell, 0));
  }
  const auto rest = [&](CellIndex i) {
    bool whole = false;
    for (std::uint32_t index = 1; index < 8; ++index) {
      whole = !pieces.Add({1, 1, Stage::kScatter, i}, index, cell.size(), PieceOfCell(cell, index))
                   .empty();
    }
    return whole;
  };
  EXPECT_TRUE(rest(Pieces::kCells));
  EXPECT_TRUE(rest(1));
  EXPECT_FALSE(rest(0));
}

}  // namespace
}  // namespace optireduce::ubt
