// Cells that come in pieces, because their path does not carry them whole, put together again.
//
// Room for kCells of them: a path is narrow only until the ops that are open when that shows are
// over. Of more, the oldest is given up, like a packet that is lost. One thread. Allocates once,
// with the first piece.
#ifndef OPTIREDUCE_TRANSPORT_UBT_PIECES_H_
#define OPTIREDUCE_TRANSPORT_UBT_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/ids.h"

namespace optireduce::ubt {

// Which cell, of whom.
struct PieceOf {
  OpNumber op = 0;
  Rank sender = 0;
  Stage stage = Stage::kScatter;
  CellIndex cell = 0;
  friend bool operator==(const PieceOf&, const PieceOf&) = default;
};

// Pieces that a cell of this size is sent in.
std::uint32_t PieceCount(std::size_t cell_bytes);
// Where piece `index` lies in its cell; empty: there is no such piece.
struct PieceRange {
  std::size_t first = 0;
  std::size_t bytes = 0;
};
PieceRange PieceAt(std::uint32_t index, std::size_t cell_bytes);

class Pieces {
 public:
  static constexpr std::size_t kCells = 64;

  explicit Pieces(std::size_t cell_bytes_max) : cell_bytes_max_(cell_bytes_max) {}

  // Takes a piece that is as long as PieceAt() says. Gives the whole cell when this was the last
  // one missing, valid until the next call; else nothing.
  std::span<const std::byte> Add(const PieceOf& of, std::uint32_t index, std::size_t cell_bytes,
                                 std::span<const std::byte> piece);

 private:
  struct Entry {
    PieceOf of;
    std::uint32_t in = 0;  // bit set of pieces; 0: free
  };

  const std::size_t cell_bytes_max_;
  std::vector<Entry> entries_;
  std::vector<std::byte> memory_;
  std::size_t next_ = 0;  // the one to give up
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_PIECES_H_
