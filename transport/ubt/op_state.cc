#include "transport/ubt/op_state.h"

namespace optireduce::ubt {

void OpState::Reset(OpNumber new_number, const OpSpec& new_spec, const Grid& new_grid, Rank self,
                    std::uint32_t ranks) {
  number = new_number;
  spec = new_spec;
  grid = new_grid;
  called = false;
  finished = false;

  called_at = {};
  starts.assign(ranks, kNever);
  opened_from.Reset(ranks);
  open_covered.Reset(ranks);
  open_number.assign(ranks, 0);
  all_opened_at = kNever;
  anchor = kNever;
  base = kNever;
  ended_at = kNever;
  last_held = {};

  const std::size_t flat = grid.FlatCells();
  data_number_low.resize(flat);
  data_repeat.Reset(flat);
  data_repeats.assign(ranks, 0);
  scatter_next.assign(ranks, 0);

  held.Reset(flat);
  set_wanted.Reset(flat);
  set_known.Reset(flat);
  result_staged.assign(flat, kNotStaged);
  result_seen.assign(ranks, 0);
  lacking.assign(ranks, 0);
  lacking_total = 0;
  not_yet_after.assign(ranks, Instant{});
  for (Rank k = 0; k < ranks; ++k) {
    if (k == self) continue;
    lacking[k] = grid.Cells(k);
    lacking_total += lacking[k];
  }

  own_cells = grid.Cells(self);
  const std::size_t own_entries = std::size_t{ranks} * own_cells;
  received.Reset(ranks, own_cells);
  data_staged.assign(own_entries, kNotStaged);
  next.assign(own_cells, 0);
  in.assign(own_cells, 0);
  data_lacking.assign(ranks, own_cells);
  data_lacking[self] = 0;
  data_seen.assign(ranks, 0);
  early_count = 0;
  waits_for_call = false;
  excluded.Reset(ranks);

  closed.Reset(own_cells);
  complete.Reset(own_cells);
  closed_order.clear();
  closed_order.reserve(own_cells);
  result_number_low.resize(own_entries);
  result_sent.Reset(ranks, own_cells);
  result_repeat.Reset(ranks, own_cells);
  result_repeats.assign(ranks, 0);
  broadcast_next.assign(ranks, 0);
  sets_from.assign(ranks, own_cells);
  ledger = {};
}

}  // namespace optireduce::ubt
