// What the protocol core orders done with payloads. The core decides (accept, add, wait, close,
// place), whoever implements this acts; the core itself never touches a payload's bytes, so late
// data cannot land anywhere by construction.
//
// Called only from within the core's own entry points, on the thread that turns it.
#ifndef OPTIREDUCE_TRANSPORT_UBT_PAYLOAD_ACTIONS_H_
#define OPTIREDUCE_TRANSPORT_UBT_PAYLOAD_ACTIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/ids.h"
#include "transport/ubt/grid.h"
#include "transport/ubt/op_spec.h"

namespace optireduce::ubt {

// Names a payload that waits in the arena.
using StagedId = std::uint32_t;
inline constexpr StagedId kNotStaged = ~StagedId{0};

class PayloadActions {
 public:
  virtual ~PayloadActions() = default;

  // Reserves memory for this rank's shard of an op. Ops are opened and retired in the order of
  // their numbers. False: no room now.
  virtual bool OpenShard(OpNumber op, const OpSpec& spec, const Grid& grid) = 0;
  // Nobody needs the op any more; its shard's memory is free.
  virtual void RetireShard(OpNumber op) = 0;

  // Copies a payload into the arena. kNotStaged: no room.
  virtual StagedId Stage(std::span<const std::byte> payload) = 0;
  virtual void Unstage(StagedId id) = 0;

  // Contributions to a cell of this rank's shard, in the fixed order of ranks. `first`: nothing
  // is in the cell's accumulator yet.
  virtual void AddOwn(OpNumber op, CellIndex cell, bool first) = 0;
  virtual void Add(OpNumber op, CellIndex cell, std::span<const std::byte> payload,
                   bool first) = 0;
  virtual void AddStaged(OpNumber op, CellIndex cell, StagedId id, bool first) = 0;  // unstages
  // Rounds the accumulator once to the op's type; these bits are the result. Without a single
  // contributor the result is 0.
  virtual void CloseCell(OpNumber op, CellIndex cell, std::uint32_t contributors) = 0;

  // Results into the caller's memory.
  virtual void PlaceOwn(OpNumber op, CellIndex cell) = 0;
  virtual void Place(OpNumber op, Rank shard, CellIndex cell,
                     std::span<const std::byte> payload) = 0;
  virtual void PlaceStaged(OpNumber op, Rank shard, CellIndex cell, StagedId id) = 0;  // unstages
  // A cell that this rank could not get: 0.
  virtual void PlaceZero(OpNumber op, Rank shard, CellIndex cell) = 0;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_PAYLOAD_ACTIONS_H_
