// The memory of a communicator's data path, reserved once: a ring of shards, which come and go in
// the order of ops, and a pool of cells, for payloads that wait for their turn.
//
// One thread. Pages are touched only when used; the pool hands out what was given back last, so
// that a quiet network keeps to a few warm cells.
#ifndef OPTIREDUCE_COLLECTIVES_ARENA_H_
#define OPTIREDUCE_COLLECTIVES_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/bounded.h"
#include "optireduce/status.h"

namespace optireduce {

// Page-aligned zero memory that costs nothing until touched.
class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(std::size_t bytes);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Pieces of one region, given back in the order in which they were taken.
class ShardRing {
 public:
  ShardRing(std::size_t bytes, std::size_t pieces_max);

  // A piece of at least `bytes`, aligned to 64; null: no room.
  std::byte* Take(std::size_t bytes);
  // Gives back the oldest piece.
  void GiveBackOldest();
  std::size_t bytes_max() const { return memory_.size(); }
  std::size_t in_use() const { return pieces_.size(); }

 private:
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Reservation memory_;
  RingQueue<Piece> pieces_;
};

// Cells of one size.
class CellPool {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = ~Id{0};

  CellPool(std::size_t bytes, std::size_t cell_bytes);

  Id Take(std::span<const std::byte> payload);  // copies; kNone: no room
  std::span<const std::byte> Get(Id id) const {
    return {memory_.data() + std::size_t{id} * stride_, lengths_[id]};
  }
  void GiveBack(Id id) { free_.push_back(id); }
  std::size_t in_use() const { return touched_ - free_.size(); }

 private:
  std::size_t stride_;
  Reservation memory_;
  std::size_t capacity_;
  std::size_t touched_ = 0;  // cells below this were used at least once
  std::vector<std::uint32_t> lengths_;
  std::vector<Id> free_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_ARENA_H_
