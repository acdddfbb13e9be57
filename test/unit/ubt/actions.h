// PayloadActions that really add, with numbers that tell who is in a sum, and that watch over
// everything the core must never order: a cell changed after its close, a result placed twice, a
// payload used after it was given back.
//
// Element i of rank r's contribution to an op is 2^(40 + r) + f(op, i): the high bits of a sum are
// the set of its contributors.
#ifndef OPTIREDUCE_TEST_UNIT_UBT_ACTIONS_H_
#define OPTIREDUCE_TEST_UNIT_UBT_ACTIONS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/ubt/payload_actions.h"

namespace optireduce::ubt {

using Elements = std::vector<std::int64_t>;

inline std::int64_t Low(OpNumber op, std::uint64_t element) {
  return static_cast<std::int64_t>((element + op * 7) % 1009);
}
// The sum of the contributions of the ranks in `set`, a bit each.
inline std::int64_t SumOf(std::uint64_t set, OpNumber op, std::uint64_t element) {
  return static_cast<std::int64_t>(set << 40) + std::popcount(set) * Low(op, element);
}
inline std::uint64_t SetIn(std::int64_t value) { return static_cast<std::uint64_t>(value) >> 40; }
inline std::uint64_t SetOfAll(std::uint32_t ranks) { return (std::uint64_t{1} << ranks) - 1; }

inline Elements ToElements(std::span<const std::byte> bytes) {
  Elements elements(bytes.size() / sizeof(std::int64_t));
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}
inline std::vector<std::byte> ToBytes(const Elements& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

class FakeActions : public PayloadActions {
 public:
  FakeActions(Rank self, std::uint32_t ranks) : self_(self), ranks_(ranks) {}

  // What the caller reduces, in place.
  void MakeTensor(OpNumber op, std::uint64_t count) {
    Elements& tensor = tensors[op];
    tensor.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      tensor.push_back(SumOf(std::uint64_t{1} << self_, op, i));
    }
  }

  // The bytes of a cell that goes out now.
  std::vector<std::byte> Payload(optireduce::Stage stage, OpNumber op, Rank shard,
                                 CellIndex cell) {
    Shard& own = shards.at(op);
    if (stage == optireduce::Stage::kBroadcast) {
      EXPECT_EQ(shard, self_);
      EXPECT_TRUE(own.closed[cell]) << "a result goes out before its cell is closed";
      return ToBytes(own.cells[cell]);
    }
    const Elements& tensor = tensors.at(op);
    const auto first = tensor.begin() + static_cast<std::ptrdiff_t>(
                                            own.grid.ShardFirst(shard) + own.grid.CellFirst(cell));
    return ToBytes(Elements(first, first + own.grid.CellElements(shard, cell)));
  }

  bool OpenShard(OpNumber op, const OpSpec&, const Grid& grid) override {
    if (shards.size() >= shards_max) return false;
    EXPECT_TRUE(shards.empty() || shards.rbegin()->first + 1 == op) << "opened out of order";
    Shard& shard = shards[op];
    shard.grid = grid;
    for (CellIndex cell = 0; cell < grid.Cells(self_); ++cell) {
      shard.cells.emplace_back(grid.CellElements(self_, cell), 0);
    }
    shard.in.resize(shard.cells.size());
    shard.closed.resize(shard.cells.size());
    log.push_back("open " + std::to_string(op));
    return true;
  }
  void RetireShard(OpNumber op) override {
    ASSERT_FALSE(shards.empty());
    EXPECT_EQ(shards.begin()->first, op) << "retired out of order";
    shards.erase(op);
    log.push_back("retire " + std::to_string(op));
  }

  StagedId Stage(std::span<const std::byte> payload) override {
    if (staged.size() >= staged_max) return kNotStaged;
    staged[next_id_] = ToElements(payload);
    return next_id_++;
  }
  void Unstage(StagedId id) override { EXPECT_EQ(staged.erase(id), 1U); }

  void AddOwn(OpNumber op, CellIndex cell, bool first) override {
    const Grid& grid = shards.at(op).grid;
    const Elements& tensor = tensors.at(op);
    const auto begin = tensor.begin() + static_cast<std::ptrdiff_t>(grid.ShardFirst(self_) +
                                                                    grid.CellFirst(cell));
    AddElements(op, cell, Elements(begin, begin + grid.CellElements(self_, cell)), first);
  }
  void Add(OpNumber op, CellIndex cell, std::span<const std::byte> payload, bool first) override {
    AddElements(op, cell, ToElements(payload), first);
  }
  void AddStaged(OpNumber op, CellIndex cell, StagedId id, bool first) override {
    AddElements(op, cell, staged.at(id), first);
    staged.erase(id);
  }
  void CloseCell(OpNumber op, CellIndex cell, std::uint32_t contributors) override {
    Shard& shard = shards.at(op);
    EXPECT_FALSE(shard.closed[cell]) << "closed twice";
    EXPECT_EQ(shard.in[cell].size(), contributors);
    shard.closed[cell] = true;
    log.push_back("close " + Cell(op, cell) + " of " + std::to_string(contributors));
  }

  void PlaceOwn(OpNumber op, CellIndex cell) override {
    const Shard& shard = shards.at(op);
    EXPECT_TRUE(shard.closed[cell]);
    PlaceElements(op, self_, cell, shard.cells[cell]);
  }
  void Place(OpNumber op, Rank shard, CellIndex cell,
             std::span<const std::byte> payload) override {
    PlaceElements(op, shard, cell, ToElements(payload));
  }
  void PlaceStaged(OpNumber op, Rank shard, CellIndex cell, StagedId id) override {
    PlaceElements(op, shard, cell, staged.at(id));
    staged.erase(id);
  }
  void PlaceZero(OpNumber op, Rank shard, CellIndex cell) override {
    PlaceElements(op, shard, cell, Elements(shards.at(op).grid.CellElements(shard, cell), 0));
    zeroed.emplace_back(shard, cell);
  }

  // The ranks added to a cell of this rank's shard, in the order in which they were.
  const std::vector<Rank>& AddedTo(OpNumber op, CellIndex cell) { return shards.at(op).in[cell]; }
  bool Closed(OpNumber op, CellIndex cell) { return shards.at(op).closed[cell]; }

  struct Shard {
    Grid grid;
    std::vector<Elements> cells;
    std::vector<std::vector<Rank>> in;
    std::vector<bool> closed;
  };
  std::map<OpNumber, Shard> shards;
  std::map<OpNumber, Elements> tensors;
  std::map<StagedId, Elements> staged;
  std::map<OpNumber, std::map<std::pair<Rank, CellIndex>, int>> placed;
  std::vector<std::pair<Rank, CellIndex>> zeroed;
  std::vector<std::string> log;  // of opens, retirements, sums and closes
  std::size_t shards_max = 1000;
  std::size_t staged_max = 100'000;

 private:
  static std::string Cell(OpNumber op, CellIndex cell) {
    return std::to_string(op) + "/" + std::to_string(cell);
  }

  void AddElements(OpNumber op, CellIndex cell, const Elements& payload, bool first) {
    Shard& shard = shards.at(op);
    ASSERT_FALSE(shard.closed[cell]) << "added to a closed cell " << Cell(op, cell);
    ASSERT_EQ(first, shard.in[cell].empty());
    ASSERT_EQ(payload.size(), shard.cells[cell].size());
    const std::uint64_t set = SetIn(payload[0]);
    ASSERT_EQ(std::popcount(set), 1) << "a contribution that is none: its memory was overwritten";
    const auto rank = static_cast<Rank>(std::countr_zero(set));
    ASSERT_EQ(std::count(shard.in[cell].begin(), shard.in[cell].end(), rank), 0)
        << "rank " << rank << " is in " << Cell(op, cell) << " twice";
    for (std::size_t i = 0; i < payload.size(); ++i) shard.cells[cell][i] += payload[i];
    shard.in[cell].push_back(rank);
    log.push_back("add " + Cell(op, cell) + " rank " + std::to_string(rank));
  }

  void PlaceElements(OpNumber op, Rank shard, CellIndex cell, const Elements& values) {
    const Grid& grid = shards.at(op).grid;
    ASSERT_LT(shard, ranks_);
    ASSERT_EQ(values.size(), grid.CellElements(shard, cell));
    EXPECT_EQ(++placed[op][std::pair(shard, cell)], 1) << "placed twice";
    Elements& tensor = tensors.at(op);
    std::copy(values.begin(), values.end(),
              tensor.begin() +
                  static_cast<std::ptrdiff_t>(grid.ShardFirst(shard) + grid.CellFirst(cell)));
  }

  const Rank self_;
  const std::uint32_t ranks_;
  StagedId next_id_ = 0;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TEST_UNIT_UBT_ACTIONS_H_
