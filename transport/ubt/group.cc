#include "transport/ubt/group.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/check.h"
#include "lib/serial.h"

namespace optireduce::ubt {
namespace {

using std::chrono::milliseconds;

// Ops that may exist here at once: back to the slowest rank's `done`, which back-pressure keeps
// within 2 * ops_behind_max of our last call, and ahead to what the fastest rank may have called.
std::size_t SlotCount(const GroupSettings& settings) {
  return std::bit_ceil(std::size_t{3} * settings.ops_behind_max + 2);
}

std::uint32_t PacketBytes(std::uint32_t cell_bytes) {
  return static_cast<std::uint32_t>(wire::kHeaderBytes) + cell_bytes;
}

LinkSettings ForLink(const GroupSettings& settings) {
  return {settings.first_number, settings.credit_start_packets, settings.credit_max_packets};
}

}  // namespace

Group::Group(GroupSettings settings, PayloadActions* actions, Counters* counters,
             FlightRecorder* recorder)
    : settings_(std::move(settings)),
      actions_(actions),
      counters_(counters),
      recorder_(recorder),
      place_in_sum_(settings_.ranks),
      links_(settings_.ranks, Link(ForLink(settings_))),
      slots_(SlotCount(settings_)),
      late_(settings_.ranks, 0),
      control_(std::size_t{settings_.ranks} * 16 + 64),
      ends_(slots_.size()),
      watch_(settings_.rank, settings_.ranks, {PacketBytes(settings_.cell_bytes)},
             PairProbe::Asks::kWhenTold),
      watched_bytes_(0),
      narrowings_(settings_.ranks),
      pieces_(settings_.cell_bytes),
      cell_sizes_{{0, settings_.cell_bytes}},
      called_(settings_.ops_before),
      done_(settings_.ops_before),
      oldest_(settings_.ops_before + 1),
      newest_(settings_.ops_before) {
  OR_CHECK(settings_.sum_order.size() == settings_.ranks);
  OR_CHECK(settings_.serve_order.size() == peers());
  OR_CHECK(settings_.rank_names.size() == settings_.ranks);
  OR_CHECK(settings_.burst_cells_max >= 1 && settings_.burst_cells_max <= kBurstCellsLimit);
  for (std::uint32_t i = 0; i < settings_.ranks; ++i) place_in_sum_[settings_.sum_order[i]] = i;
  for (Link& link : links_) {
    link.opened = link.called = link.done = link.opens_in = settings_.ops_before;
    link.credited_at_report = link.rx.highest();
  }
}

Admission Group::Call(const OpSpec& spec, Duration timeout, Instant now, OpNumber* op_out) {
  OR_CHECK(failure_.ok());
  const OpNumber number = called_ + 1;
  const OpNumber behind = settings_.ops_behind_max;
  if (number > done_ + settings_.ops_in_flight_max || number > done_ + behind) {
    return Admission::kNoRoomYet;
  }
  for (Rank p = 0; p < settings_.ranks; ++p) {
    if (p == settings_.rank) continue;
    if (links_[p].left && (!IsOpen(number) || !At(number).opened_from.Test(p))) {
      Fail(LeftBefore(p, number));
      return Admission::kAdmitted;
    }
    if (!links_[p].left && number > links_[p].called + behind) return Admission::kNoRoomYet;
  }
  if (!IsOpen(number) && !EnsureOpen(number, settings_.rank, spec, now)) {
    room_wanted_ = true;
    return Admission::kNoRoomYet;
  }
  room_wanted_ = false;
  *op_out = called_ = number;
  called_at_ = now;
  counters_->Add(Counter::kOpsCalled);
  Note(now, Event::kOpCalled, number, kNoRank, spec.count);

  OpState& op = At(number);
  if (!(op.spec == spec)) {
    // A peer's OPEN came first and differs: the caller of either is wrong.
    Fail(Mismatch(number, settings_.rank, spec, op.opened_by, op.spec));
    return Admission::kAdmitted;
  }
  op.called = true;
  op.called_at = now;
  op.timeout = timeout;
  NoteStart(op, settings_.rank, now, now);
  for (const Rank p : settings_.serve_order) {
    PushOpen(p, number);
    Link& link = links_[p];
    link.open_backoff = 0;
    if (link.open_due == kNever) link.open_due = now + link.rtt.repair_time();
  }
  TakeOwnContribution(op, now);
  PlaceStagedResults(op);
  MaybeFinish(op, now);
  next_wake_ = now;
  return Admission::kAdmitted;
}

std::optional<OpEnd> Group::NextEnd() {
  if (ends_.empty()) return std::nullopt;
  return ends_.Pop();
}

void Group::Fail(const Status& cause) {
  OR_CHECK(!cause.ok());
  if (failure_.ok()) failure_ = cause;
  control_.Clear();
  next_wake_ = kNever;
}

void Group::OnPeerLeft(Rank peer, Instant now) {
  Link& link = links_[peer];
  link.left = true;
  link.left_at = now;
  for (OpNumber number = oldest_; number <= called_; ++number) {
    const OpState& op = At(number);
    if (!op.finished && !op.opened_from.Test(peer)) {
      Fail(LeftBefore(peer, number));
      return;
    }
  }
  Retire(now);
}

Status Group::LeftBefore(Rank peer, OpNumber op) const {
  return {Code::kPeerLost, settings_.rank_names[peer] + " has left the group and does not take " +
                               "part in op " + std::to_string(op) +
                               "; all ranks must make the same calls"};
}

bool Group::Settled() const {
  if (!failure_.ok()) return true;
  if (done_ != called_) return false;
  for (Rank p = 0; p < settings_.ranks; ++p) {
    if (p != settings_.rank && !links_[p].left && links_[p].done < called_) return false;
  }
  return true;
}

void Group::AskToSettle(Instant now) {
  if (!failure_.ok()) return;  // nobody answers any more, and no timer runs
  for (Rank p = 0; p < settings_.ranks; ++p) {
    if (p == settings_.rank || links_[p].left || links_[p].done >= called_) continue;
    Push({.type = wire::MessageType::kReport, .peer = p, .flags = wire::kFlagAnswer, .nack = {}});
  }
  next_wake_ = now;
}

// Opens the next op in order. Ops are opened one after the other so that memory is handed out in
// the order in which it comes back, and the oldest op can always go on.
bool Group::EnsureOpen(OpNumber number, Rank by, const OpSpec& spec, Instant now) {
  if (number != newest_ + 1 || number - oldest_ >= slots_.size()) return false;
  if (opens_held_) return false;
  const Grid grid(spec.count, static_cast<std::uint32_t>(ElementBytes(spec.type)),
                  settings_.ranks, CellBytesOf(number));
  if (!actions_->OpenShard(number, spec, grid)) {
    counters_->Add(Counter::kArenaFull);
    Note(now, Event::kArenaFull, number, by);
    return false;
  }
  OpState& op = At(number);
  op.Reset(number, spec, grid, settings_.rank, settings_.ranks);
  op.opened_by = by;
  newest_ = number;
  if (by != settings_.rank) Note(now, Event::kOpServed, number, by, spec.count);
  if (spec.mode == Mode::kBounded) {
    for (Rank r = 0; r < settings_.ranks; ++r) {
      if (late_[r] != 0) op.excluded.Set(r);
    }
  }
  return true;
}

// A rank has called the op: dates it, and moves the anchor, the median of the starts known.
void Group::NoteStart(OpState& op, Rank rank, Instant start, Instant now) {
  if (!op.opened_from.Set(rank)) return;
  op.starts[rank] = start;
  if (op.opened_from.All()) op.all_opened_at = now;
  if (op.closed.None()) {
    late_[rank] = 0;
    op.excluded.Clear(rank);
  }
  const std::size_t quorum = (settings_.ranks + 1) / 2;
  if (op.opened_from.count() < quorum) return;
  std::vector<Instant>& sorted = sort_space_;
  sorted.assign(op.starts.begin(), op.starts.end());
  const auto median = sorted.begin() + static_cast<std::ptrdiff_t>(quorum - 1);
  std::nth_element(sorted.begin(), median, sorted.end());
  op.anchor = *median;
}

// The own contribution is in for every cell that is not closed yet; it is added when the first
// payload for the cell is (or when the cell closes), while the cell is in the cache anyway.
void Group::TakeOwnContribution(OpState& op, Instant now) {
  const Rank self = settings_.rank;
  for (CellIndex cell = 0; cell < op.own_cells; ++cell) {
    if (op.closed.Test(cell)) {
      actions_->PlaceOwn(op.number, cell);
      continue;
    }
    op.received.Set(self, cell);
    ++op.in[cell];
    if (op.in[cell] > 1 || settings_.ranks == 1 || op.excluded.count() > 0) {
      Advance(op, cell, now);
    }
  }
}

void Group::PlaceStagedResults(OpState& op) {
  if (!op.called || op.finished) return;
  for (Rank k = 0; k < settings_.ranks; ++k) {
    if (k == settings_.rank || op.result_seen[k] == 0) continue;
    for (CellIndex cell = 0; cell < op.result_seen[k]; ++cell) {
      const std::size_t flat = op.grid.Flat(k) + cell;
      const StagedId id = op.result_staged[flat];
      // A complete result waits only for the call, an incomplete one also for its set.
      if (id == kNotStaged || (op.set_wanted.Test(flat) && !op.set_known.Test(flat))) continue;
      op.result_staged[flat] = kNotStaged;
      actions_->PlaceStaged(op.number, k, cell, id);
      MarkHeld(op, k, cell);
    }
  }
}

// Adds whatever is next in the order of the sum and there; closes the cell when all awaited are in.
void Group::Advance(OpState& op, CellIndex cell, Instant now) {
  std::uint16_t& next = op.next[cell];
  while (next < settings_.ranks) {
    const Rank rank = settings_.sum_order[next];
    if (!op.received.Test(rank, cell)) break;
    if (rank == settings_.rank) {
      actions_->AddOwn(op.number, cell, next == 0);
    } else {
      StagedId& id = op.data_staged[op.OwnIndex(rank, cell)];
      OR_CHECK(id != kNotStaged);
      actions_->AddStaged(op.number, cell, id, next == 0);
      id = kNotStaged;
    }
    ++next;
  }
  if (AllAwaitedIn(op, cell)) Close(op, cell, now);
}

bool Group::AllAwaitedIn(const OpState& op, CellIndex cell) const {
  if (op.in[cell] == settings_.ranks) return true;
  if (op.excluded.None() || op.in[cell] + op.excluded.count() < settings_.ranks) return false;
  for (Rank r = 0; r < settings_.ranks; ++r) {
    if (!op.received.Test(r, cell) && !op.excluded.Test(r)) return false;
  }
  return true;
}

// Decides a cell, once: adds what waits, in order, missing ranks skipped; rounds; notes the set.
void Group::Close(OpState& op, CellIndex cell, Instant now) {
  const bool complete = op.in[cell] == settings_.ranks;
  bool first = op.next[cell] == 0;
  for (std::uint32_t place = op.next[cell]; place < settings_.ranks; ++place) {
    const Rank rank = settings_.sum_order[place];
    if (!op.received.Test(rank, cell)) continue;
    if (rank == settings_.rank) {
      actions_->AddOwn(op.number, cell, first);
    } else {
      StagedId& id = op.data_staged[op.OwnIndex(rank, cell)];
      actions_->AddStaged(op.number, cell, id, first);
      id = kNotStaged;
    }
    first = false;
  }
  op.next[cell] = static_cast<std::uint16_t>(settings_.ranks);
  actions_->CloseCell(op.number, cell, op.in[cell]);
  op.closed.Set(cell);
  op.closed_order.push_back(cell);
  if (complete) {
    op.complete.Set(cell);
    counters_->Add(Counter::kCellsClosedComplete);
  } else {
    NoteOwnSet(op, cell);
    counters_->Add(Counter::kCellsClosedIncomplete);
  }
  if (op.called && !op.finished) actions_->PlaceOwn(op.number, cell);
  if (op.OwnShardClosed()) OnOwnShardClosed(op, now);
}

void Group::CloseAllOpen(OpState& op, Instant now) {
  Note(now, Event::kScatterDeadline, op.number, kNoRank, op.own_cells - op.closed.count(),
       static_cast<std::uint64_t>((now - ScatterDeadline(op)).count()));
  // Who has not called by the deadline is not waited for again until it calls in time.
  for (Rank r = 0; r < settings_.ranks; ++r) {
    if (!op.opened_from.Test(r)) late_[r] = 1;
  }
  for (std::size_t cell = op.closed.NextUnset(); cell != kNoBit;
       cell = op.closed.NextUnset(cell + 1)) {
    Close(op, static_cast<CellIndex>(cell), now);
  }
}

// The ledger of a cell that closed without somebody, and SETS for the others.
void Group::NoteOwnSet(OpState& op, CellIndex cell) {
  const std::uint64_t elements = op.grid.CellElements(settings_.rank, cell);
  op.ledger.lost_entries += (settings_.ranks - op.in[cell]) * elements;
  if (!op.received.Test(settings_.rank, cell)) op.ledger.own_left_out_entries += elements;
  for (Rank p = 0; p < settings_.ranks; ++p) {
    if (p != settings_.rank && !links_[p].left) PushSets(op, p, cell);
  }
}

void Group::OnOwnShardClosed(OpState& op, Instant now) {
  // What came before its sender's OPEN and is decided without it.
  for (Rank r = 0; r < settings_.ranks && op.early_count > 0; ++r) {
    if (!op.opened_from.Test(r)) TakeEarlyData(op, r, now);
  }
  if (op.ended_at == kNever) op.ended_at = now;
  MaybeFinish(op, now);
}

void Group::MarkHeld(OpState& op, Rank shard, CellIndex cell) {
  OR_CHECK(op.held.Set(op.grid.Flat(shard) + cell));
  --op.lacking[shard];
  --op.lacking_total;
}

void Group::MaybeFinish(OpState& op, Instant now) {
  if (!op.called || op.finished || op.lacking_total > 0 || !op.OwnShardClosed()) return;
  // An op without elements ends when everybody has called it.
  if (op.spec.count == 0 && !op.AllOpened()) return;
  Finish(op, OpEnd::Outcome::kAgreed, now);
}

void Group::Finish(OpState& op, OpEnd::Outcome outcome, Instant now) {
  op.finished = true;
  for (StagedId& id : op.result_staged) {
    if (id != kNotStaged) actions_->Unstage(std::exchange(id, kNotStaged));
  }
  if (op.ended_at == kNever) op.ended_at = now;
  if (outcome == OpEnd::Outcome::kDivergent) divergent_ = op.number;
  const Instant deadline = op.spec.mode == Mode::kBounded ? Deadline(op) : kNever;
  const bool agreed = outcome == OpEnd::Outcome::kAgreed;
  Note(now, agreed ? Event::kOpAgreed : Event::kOpDivergent, op.number, kNoRank,
       static_cast<std::uint64_t>((now - op.called_at).count()),
       agreed ? op.ledger.lost_entries : op.lacking_total);
  OR_CHECK(ends_.Push({op.number, outcome, op.spec.count, op.ledger, deadline, now}));
  while (done_ < called_ && At(done_ + 1).finished) ++done_;
  for (Link& link : links_) {
    // Told soon, unless the next op's OPEN tells it first; repeated, as it may be lost.
    link.report_due = std::min(link.report_due, now + milliseconds(2));
    link.reports_left = 4;
    link.report_gap = milliseconds(8);
  }
  WakeBy(now + milliseconds(2));
  Retire(now);
}

// Frees ops that every live rank is done with.
void Group::Retire(Instant now) {
  OpNumber all_done = done_;
  for (Rank p = 0; p < settings_.ranks; ++p) {
    if (p != settings_.rank && !links_[p].left) all_done = std::min(all_done, links_[p].done);
  }
  for (; oldest_ <= all_done && oldest_ <= newest_; ++oldest_) {
    actions_->RetireShard(oldest_);
    retired_ended_at_ = At(oldest_).ended_at;
    Note(now, Event::kOpReleased, oldest_);
  }
}

// A full queue loses the message like a network would; timers repair it.
bool Group::Push(const ControlItem& item) {
  if (control_.Push(item)) return true;
  counters_->Add(Counter::kControlQueueFull);
  return false;
}

// Sets of incomplete cells from this one on are to go out; one item is queued for all of them.
void Group::PushSets(OpState& op, Rank peer, CellIndex from) {
  if (op.sets_from[peer] == op.own_cells &&
      !Push({.type = wire::MessageType::kSets, .peer = peer, .op = op.number, .nack = {}})) {
    return;
  }
  op.sets_from[peer] = std::min(op.sets_from[peer], from);
}

void Group::PushOpen(Rank peer, OpNumber op) {
  Push({.type = wire::MessageType::kOpen, .peer = peer, .op = op, .nack = {}});
}

OpNumber Group::WidenOp(std::uint32_t low) const { return Widen(low, called_); }

PacketNumber Group::WidenNumber(Rank sender, std::uint32_t low) const {
  return Widen(low, links_[sender].rx.highest());
}

void Group::OnReceiveOverflow(std::uint64_t drops, Instant now) {
  counters_->Add(Counter::kCreditOverflowEvents);
  Note(now, Event::kReceiveOverflow, called_, kNoRank, drops);
  for (Link& link : links_) link.grant.OnOverflow();
}

std::string Group::DescribeRoom() const {
  if (opens_held_) return "rank 0, to decide on the packet size";
  std::string text;
  const OpNumber number = called_ + 1;
  for (Rank r = 0; r < settings_.ranks; ++r) {
    if (r == settings_.rank || links_[r].left) continue;
    const Link& link = links_[r];
    if (number <= link.called + settings_.ops_behind_max && link.done >= done_) continue;
    if (!text.empty()) text += ", ";
    text += settings_.rank_names[r] + ": has called up to op " + std::to_string(link.called) +
            " and is done up to op " + std::to_string(link.done);
  }
  // Nobody is behind: this rank's own earlier op has not ended.
  if (text.empty() && done_ < called_) {
    text = "op " + std::to_string(done_ + 1) + ", which waits for " + DescribeWaiting(done_ + 1);
  }
  return text.empty() ? "room in the arena" : text;
}

std::string Group::DescribeOp(OpNumber number) const {
  return "op " + std::to_string(number) + " (" + Describe(At(number).spec) + ")";
}

std::string Group::DescribeWaiting(OpNumber number) const {
  std::string text;
  const auto add = [this, &text](Rank r, const std::string& what) {
    if (!text.empty()) text += ", ";
    text += settings_.rank_names[r] + ": " + what;
  };
  if (!IsOpen(number)) return text;
  const OpState& op = At(number);
  for (Rank r = 0; r < settings_.ranks; ++r) {
    if (r == settings_.rank) continue;
    if (!op.opened_from.Test(r)) {
      add(r, "has not called it");
      continue;
    }
    const CellIndex cells = op.grid.Cells(r);
    if (op.data_lacking[r] > 0 && !op.OwnShardClosed()) {
      add(r, "sent " + std::to_string(op.own_cells - op.data_lacking[r]) + " of " +
                 std::to_string(op.own_cells) + " contributions of " +
                 std::to_string(CellBytesOf(number)) + " bytes");
    } else if (op.lacking[r] > 0) {
      add(r, "sent " + std::to_string(cells - op.lacking[r]) + " of " + std::to_string(cells) +
                 " results of " + std::to_string(CellBytesOf(number)) + " bytes");
    }
  }
  return text;
}

}  // namespace optireduce::ubt
