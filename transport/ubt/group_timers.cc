// Deadlines of ops, repair of what was lost, and reports that are due by time.
#include <algorithm>

#include "lib/bounded.h"
#include "transport/ubt/group.h"

namespace optireduce::ubt {
namespace {

using std::chrono::milliseconds;

// While this rank waits for something, peers hear from it at least this often.
constexpr Duration kReportEvery = milliseconds(10);
constexpr Duration kAfterGoodbye = milliseconds(500);
// Asked so often without a full cell, though packets come: they may be too large for the path.
constexpr std::uint32_t kFullInVain = 8;

// How far a gap in the packet numbers makes ask: a burst further than what was seen, since the lost
// packets may be the flow's last; the sender knows which of the cells it has sent.
CellIndex AskEnd(CellIndex seen, CellIndex cells) {
  return static_cast<CellIndex>(std::min<std::size_t>(seen + kBurstCellsLimit, cells));
}

std::uint8_t NackFlags(const Link& link) {
  return link.full_in_vain > kFullInVain ? wire::kFlagInVain : std::uint8_t{0};
}

// Collects cells, in ascending order, into ranges of one NACK.
class RangeWriter {
 public:
  explicit RangeWriter(wire::Nack* nack) : nack_(nack) { nack_->range_count = 0; }
  // False: no room for another range.
  bool Add(CellIndex cell) {
    if (nack_->range_count > 0) {
      wire::CellRange& last = nack_->ranges[nack_->range_count - 1];
      if (cell == last.first + last.count) {
        ++last.count;
        return true;
      }
    }
    if (nack_->range_count == wire::kNackRangesMax) return false;
    nack_->ranges[nack_->range_count++] = {cell, 1};
    return true;
  }

 private:
  wire::Nack* nack_;
};

}  // namespace

void Group::OnTime(bool idle, Instant now) {
  if (last_turn_ != Instant{} && now - last_turn_ > kPause && called_ != done_) {
    last_wake_ = now;
    counters_->Add(Counter::kLongTurns);
    Note(now, Event::kLongTurn, called_, kNoRank,
         static_cast<std::uint64_t>((now - last_turn_).count()));
  }
  last_turn_ = now;
  if (!failure_.ok()) {
    next_wake_ = kNever;
    return;
  }
  // Who was away reads what came meanwhile before it judges who is late.
  if (!idle && last_wake_ == now) {
    next_wake_ = now;
    return;
  }
  next_wake_ = kNever;
  RunOpClocks(now);
  if (!failure_.ok()) return;
  // A rank that was not scheduled would ask for what lies in its own queue.
  if (idle) RunRepair(now);
  if (room_wanted_) AskForRoom(now);
  WakeBy(watch_.NextWake());
  RunReportTimers(now);
}

// The next call waits for memory that peers hold by not being done, as far as this rank knows: the
// reports that would tell may all have been lost.
void Group::AskForRoom(Instant now) {
  if (now >= ask_room_at_) {
    ask_room_at_ = now + kReportEvery;
    AskToSettle(now);
  }
  WakeBy(ask_room_at_);
}

// ---- Deadlines -------------------------------------------------------------------------------

Instant Group::ScatterDeadline(const OpState& op) const {
  if (op.base == kNever) return kNever;
  return op.base + settings_.bound * settings_.scatter_share_pct / 100;
}

Instant Group::Deadline(const OpState& op) const {
  return op.base == kNever ? kNever : op.base + settings_.bound;
}

Instant Group::GraceEnd(const OpState& op) const {
  const Instant deadline = Deadline(op);
  if (deadline == kNever) return kNever;
  return std::max({deadline, op.called_at, last_wake_, op.last_held}) + settings_.fetch_grace;
}

// The bound runs from the later of the anchor and the end of the op before.
void Group::UpdateClock(OpState& op, Instant now) {
  if (op.anchor == kNever) return;
  const Instant before =
      op.number > oldest_ ? At(op.number - 1).ended_at : retired_ended_at_;
  if (before == kNever) return;
  op.base = std::max(op.anchor, before);
  if (op.ended_at != kNever) return;
  if (op.own_cells == 0) {
    op.ended_at = op.base;
  } else if (op.spec.mode == Mode::kExact) {
    // An exact op holds up the clocks no longer than a bounded one.
    if (now >= op.base + settings_.bound) {
      op.ended_at = op.base + settings_.bound;
    } else {
      WakeBy(op.base + settings_.bound);
    }
  }
}

void Group::RunOpClocks(Instant now) {
  for (OpNumber number = oldest_; number <= newest_; ++number) {
    OpState& op = At(number);
    if (op.finished && op.OwnShardClosed()) continue;
    UpdateClock(op, now);
    if (op.spec.mode == Mode::kBounded && !op.OwnShardClosed()) {
      const Instant close_at = ScatterDeadline(op);
      if (close_at <= now) {
        CloseAllOpen(op, now);
      } else {
        WakeBy(close_at);
      }
    }
    if (!op.called || op.finished) continue;
    if (FailWithoutLeft(op, now)) return;
    const Instant give_up = op.called_at + op.timeout;
    const Instant grace_end = op.spec.mode == Mode::kBounded ? GraceEnd(op) : kNever;
    if (grace_end <= now) {
      Note(now, Event::kDeadline, number, kNoRank, op.lacking_total,
           static_cast<std::uint64_t>((now - Deadline(op)).count()));
      for (Rank k = 0; k < settings_.ranks; ++k) {
        if (k == settings_.rank) continue;
        for (CellIndex cell = 0; cell < op.grid.Cells(k) && op.lacking[k] > 0; ++cell) {
          if (!op.held.Test(op.grid.Flat(k) + cell)) actions_->PlaceZero(number, k, cell);
        }
      }
      Finish(op, OpEnd::Outcome::kDivergent, now);
    } else if (give_up <= now) {
      Fail({Code::kTimeout, DescribeOp(number) + " did not end within " +
                                std::to_string(op.timeout / milliseconds(1)) +
                                " ms (op_timeout); waiting for " + DescribeWaiting(number)});
      return;
    } else {
      WakeBy(std::min(give_up, grace_end));
    }
  }
}

// A peer that has left sends nothing more; its last packets get a moment to come in.
bool Group::FailWithoutLeft(const OpState& op, Instant now) {
  if (op.spec.mode == Mode::kBounded) return false;
  for (Rank r = 0; r < settings_.ranks; ++r) {
    const Link& link = links_[r];
    if (!link.left || (op.lacking[r] == 0 && !WantsData(op, r))) continue;
    if (now >= link.left_at + kAfterGoodbye) {
      Fail({Code::kPeerLost, settings_.rank_names[r] + " has left the group before op " +
                                 std::to_string(op.number) + " had all it needs of it"});
      return true;
    }
    WakeBy(link.left_at + kAfterGoodbye);
  }
  return false;
}

// ---- Repair ----------------------------------------------------------------------------------

bool Group::WantsResults(const OpState& op, Rank peer, Instant now) const {
  if (!op.called || op.finished || op.lacking[peer] == 0) return false;
  // Before everybody has called there can be no complete result, and before the deadline no other.
  return op.AllOpened() || (op.spec.mode == Mode::kBounded && now >= ScatterDeadline(op)) ||
         op.result_seen[peer] > 0;
}

bool Group::WantsData(const OpState& op, Rank peer) const {
  if (op.waits_for_call && !op.called) return false;
  return op.opened_from.Test(peer) && op.data_lacking[peer] > 0 && !op.OwnShardClosed();
}

// From when on the peer may be asked for the tail of what is wanted of it; kNever: nothing is.
Instant Group::TailAskFrom(Rank peer, Instant now) const {
  Instant from = kNever;
  for (OpNumber number = oldest_; number <= newest_; ++number) {
    const OpState& op = At(number);
    if (WantsData(op, peer)) return Instant{};
    if (WantsResults(op, peer, now)) from = std::min(from, op.not_yet_after[peer]);
  }
  return from;
}

// From when on the peer may be asked for what a gap shows to be missing. At once the first few
// times; when nothing comes of that, as where a path drops all packets of full size, every further
// packet would show a gap, and the question itself is one: then as seldom as for a tail.
Instant Group::GapAskFrom(const Link& link) const {
  constexpr std::uint32_t kAtOnce = 8;
  if (link.gaps_in_vain < kAtOnce) return Instant{};
  return link.asked_at + BackedOff(link.rtt.repair_time(), link.gaps_in_vain - kAtOnce);
}

void Group::RunRepair(Instant now) {
  for (Rank peer = 0; peer < settings_.ranks; ++peer) {
    Link& link = links_[peer];
    if (peer == settings_.rank || link.left) continue;
    RepeatOpens(peer, now);
    const Duration repair = link.rtt.repair_time();

    const Instant ask_from = TailAskFrom(peer, now);
    if (ask_from == kNever) {
      link.want_since = kNever;
      link.ask_backoff = 0;
      link.gaps_in_vain = 0;
    } else {
      if (link.want_since == kNever) link.want_since = now;
      const Instant gap_due = std::max(link.rx.GapDue(), GapAskFrom(link));
      if (gap_due <= now) {
        Ask(peer, /*tail=*/false, now);
        link.rx.Asked(now);
        ++link.gaps_in_vain;
      } else {
        WakeBy(gap_due);
      }
      const Instant quiet_since = std::max({link.want_since, link.rx.credited_at(), link.asked_at});
      const Instant due =
          std::max(quiet_since + BackedOff(repair, link.ask_backoff), ask_from);
      if (due <= now) {
        Ask(peer, /*tail=*/true, now);
        link.rx.Asked(now);
        ++link.ask_backoff;
        WakeBy(now + BackedOff(repair, link.ask_backoff));
      } else {
        WakeBy(due);
      }
    }

    if (link.tx.in_flight() > 0 && link.tx.Room() < std::max(link.tx.credit() / 2, 1U)) {
      const Instant due = std::max(link.tx.last_credited_at(), link.report_at) +
                          BackedOff(2 * repair, link.release_backoff);
      if (due <= now) {
        Note(now, Event::kSilenceReleased, called_, peer, link.tx.in_flight());
        link.tx.ReleaseAll();
        ++link.release_backoff;
        counters_->Add(Counter::kSilenceReleases);
      } else {
        WakeBy(due);
      }
    }
  }
}

void Group::RepeatOpens(Rank peer, Instant now) {
  Link& link = links_[peer];
  if (link.open_due == kNever) return;
  bool any = false;
  const bool due = link.open_due <= now;
  for (OpNumber number = std::max(oldest_, link.opened + 1); number <= called_; ++number) {
    if (At(number).open_covered.Test(peer)) continue;
    any = true;
    if (due) PushOpen(peer, number);
  }
  if (!any) {
    link.open_due = kNever;
    return;
  }
  if (due) {
    link.open_due = now + BackedOff(link.rtt.repair_time(), ++link.open_backoff);
  }
  WakeBy(link.open_due);
}

// Asks the peer for what is missing: below the highest cell seen, or, for the tail, for all of it.
void Group::Ask(Rank peer, bool tail, Instant now) {
  Link& link = links_[peer];
  link.asked_at = now;
  ++link.full_in_vain;
  // The oldest ops are what others wait for; a few at once are enough.
  std::uint32_t asked = 0;
  for (OpNumber number = oldest_; number <= newest_ && asked < 4; ++number) {
    const OpState& op = At(number);
    const bool results =
        WantsResults(op, peer, now) && (!tail || op.not_yet_after[peer] <= now);
    const bool data = WantsData(op, peer);
    if (results) AskForResults(op, peer, tail, now);
    if (data) AskForData(op, peer, tail, now);
    asked += (results ? 1U : 0U) + (data ? 1U : 0U);
  }
}

void Group::AskForData(const OpState& op, Rank peer, bool tail, Instant now) {
  ControlItem item{.type = wire::MessageType::kNack, .peer = peer, .op = op.number,
                   .shard = settings_.rank, .flags = NackFlags(links_[peer]), .nack = {}};
  item.nack.stage = Stage::kScatter;
  item.nack.highest_low = static_cast<std::uint32_t>(links_[peer].rx.highest());
  item.nack.hold_ns = links_[peer].rx.HoldNanos(now);
  RangeWriter ranges(&item.nack);
  const CellIndex end = tail ? op.own_cells : AskEnd(op.data_seen[peer], op.own_cells);
  for (std::size_t cell = op.received.NextUnset(peer); cell < end;
       cell = op.received.NextUnset(peer, cell + 1)) {
    if (op.closed.Test(cell)) continue;
    if (!ranges.Add(static_cast<CellIndex>(cell))) break;
  }
  if (item.nack.range_count > 0) Push(item);
}

void Group::AskForResults(const OpState& op, Rank peer, bool tail, Instant now) {
  ControlItem item{.type = wire::MessageType::kNack, .peer = peer, .op = op.number, .shard = peer,
                   .flags = NackFlags(links_[peer]), .nack = {}};
  item.nack.stage = Stage::kBroadcast;
  item.nack.highest_low = static_cast<std::uint32_t>(links_[peer].rx.highest());
  item.nack.hold_ns = links_[peer].rx.HoldNanos(now);
  ControlItem sets = item;
  sets.nack.sets_only = true;
  RangeWriter ranges(&item.nack);
  RangeWriter set_ranges(&sets.nack);
  const std::size_t first = op.grid.Flat(peer);
  const CellIndex cells = op.grid.Cells(peer);
  const std::size_t end = first + (tail ? cells : AskEnd(op.result_seen[peer], cells));
  for (std::size_t flat = op.held.NextUnset(first); flat < end;
       flat = op.held.NextUnset(flat + 1)) {
    const auto cell = static_cast<CellIndex>(flat - first);
    const bool staged = op.result_staged[flat] != kNotStaged;
    if (!(staged ? set_ranges : ranges).Add(cell)) break;
  }
  if (item.nack.range_count > 0) Push(item);
  if (sets.nack.range_count > 0) Push(sets);
}

// ---- Reports ---------------------------------------------------------------------------------

void Group::RunReportTimers(Instant now) {
  for (const Rank peer : settings_.serve_order) {
    Link& link = links_[peer];
    if (link.left) continue;
    if (done_ != called_ && link.report_due == kNever) {
      link.report_due = std::max(link.reported_at, called_at_) + kReportEvery;
    }
    if (link.report_due > now) WakeBy(link.report_due);
  }
}

}  // namespace optireduce::ubt
