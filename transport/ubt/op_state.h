// The state of one op at one rank: what was sent to whom, what is held, and for the rank's own
// shard every cell from open to closed. Data and lookups only; transport/ubt/group decides.
//
// One thread. Reset() allocates only when an op is larger than any before it in this slot.
#ifndef OPTIREDUCE_TRANSPORT_UBT_OP_STATE_H_
#define OPTIREDUCE_TRANSPORT_UBT_OP_STATE_H_

#include <cstdint>
#include <vector>

#include "lib/bounded.h"
#include "lib/ids.h"
#include "optireduce/time.h"
#include "transport/ubt/grid.h"
#include "transport/ubt/op_spec.h"
#include "transport/ubt/payload_actions.h"

namespace optireduce::ubt {

struct OpState {
  void Reset(OpNumber number, const OpSpec& spec, const Grid& grid, Rank self,
             std::uint32_t ranks);

  std::size_t OwnIndex(Rank peer, CellIndex cell) const {
    return std::size_t{peer} * own_cells + cell;
  }
  bool OwnShardClosed() const { return closed.count() == own_cells; }
  bool AllOpened() const { return opened_from.All(); }

  OpNumber number = 0;
  OpSpec spec;
  Rank opened_by = 0;  // whose OPEN or call brought the spec
  Grid grid;
  bool called = false;    // by this rank's caller
  bool finished = false;  // for this rank's caller

  // When whom: starts as this rank dates them (arrival - age), kNever: not known.
  Instant called_at{};
  Duration timeout{};  // from the call
  std::vector<Instant> starts;
  Bitmap opened_from;   // whose OPEN is in (own: called)
  Bitmap open_covered;  // who is known to have our OPEN
  std::vector<PacketNumber> open_number;  // with which it last went out, 0: it did not
  Instant all_opened_at = kNever;

  // The clock of the op at this rank; kNever: not known yet.
  Instant anchor = kNever;
  Instant base = kNever;      // the bound runs from here
  Instant ended_at = kNever;  // own shard closed or expired: the next op's clock may run
  Instant last_held = Instant{};

  // Scatter, outgoing. Indexed flat (shard * CellsMax + cell) or by owner.
  std::vector<std::uint32_t> data_number_low;
  Bitmap data_repeat;
  std::vector<std::uint32_t> data_repeats;
  std::vector<CellIndex> scatter_next;

  // Broadcast, incoming. Flat, or by owner.
  Bitmap held;
  Bitmap set_wanted;  // results that came incomplete
  Bitmap set_known;   // and whose set of contributors has come
  std::vector<StagedId> result_staged;
  std::vector<CellIndex> lacking;
  std::vector<CellIndex> result_seen;  // one past the highest cell seen
  std::uint64_t lacking_total = 0;
  std::vector<Instant> not_yet_after;  // the owner has said "not yet": the tail is not asked before

  // Own shard: contributions. By (rank, cell), or by cell, or by rank.
  CellIndex own_cells = 0;
  BitRows received;
  std::vector<StagedId> data_staged;
  std::vector<std::uint16_t> next;  // place in the order of the sum
  std::vector<std::uint16_t> in;    // contributions received
  std::vector<CellIndex> data_lacking;
  std::vector<CellIndex> data_seen;  // one past the highest cell seen
  std::uint64_t early_count = 0;     // staged, but their sender's OPEN is not in: no contribution
  bool waits_for_call = false;       // the arena is full of contributions that wait for ours
  Bitmap excluded;                   // ranks that cells do not wait for (the late rule)

  // Own shard: decided cells, and their way out. By cell, or by (rank, cell), or by rank.
  Bitmap closed;
  Bitmap complete;
  std::vector<CellIndex> closed_order;
  std::vector<std::uint32_t> result_number_low;
  BitRows result_sent;
  BitRows result_repeat;
  std::vector<std::uint32_t> result_repeats;
  std::vector<std::uint32_t> broadcast_next;  // into closed_order
  std::vector<CellIndex> sets_from;           // sets of incomplete cells from here on to be sent

  LossLedger ledger;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_OP_STATE_H_
