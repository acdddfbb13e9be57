// Paths that carry less than they did when the group met: found, gone on with, and, for ops that no
// rank has opened yet, made up for by smaller cells.
//
// Who asks in vain for full cells says so. The sender of these asks the path, as all paths were
// asked before the first op: a size is given up when it is lost again and again and smaller packets
// pass. From then on it sends the cells of ops that are open in pieces.
#include <algorithm>
#include <utility>

#include "lib/check.h"
#include "transport/ubt/group.h"
#include "transport/wire/parse.h"
#include "transport/wire/serialize.h"

namespace optireduce::ubt {
namespace {

using wire::MessageType;

// A path that turned out to be sound is not suspected again at once.
constexpr Duration kSuspectAgain = std::chrono::seconds(1);

}  // namespace

std::uint32_t Group::CellBytesOf(OpNumber op) const {
  const auto after = std::find_if(cell_sizes_.begin() + 1, cell_sizes_.end(),
                                  [op](const CellSize& size) { return size.first > op; });
  return (after - 1)->bytes;
}

// ---- Finding ---------------------------------------------------------------------------------

void Group::Suspect(Rank peer, Instant now) {
  Link& link = links_[peer];
  const bool lately = link.suspected_at != Instant{} && now < link.suspected_at + kSuspectAgain;
  if (settings_.probe_bytes.empty() || watch_.asking(peer) || lately) return;
  // As long as an op of the old cell size is open, it is the old size that matters.
  const auto full = static_cast<std::uint32_t>(wire::kHeaderBytes) + CellBytesOf(oldest_);
  if (link.carries_bytes < full) return;
  if (full != watched_bytes_) {
    if (!watch_.Done()) return;
    std::vector<std::uint32_t> sizes{full};
    for (const std::uint32_t bytes : settings_.probe_bytes) {
      if (bytes < full && sizes.size() < PairProbe::kSizesMax) sizes.push_back(bytes);
    }
    if (sizes.size() < 2) return;
    watch_ = PairProbe(settings_.rank, settings_.ranks, std::move(sizes),
                       PairProbe::Asks::kWhenTold);
    watched_bytes_ = full;
  }
  link.suspected_at = now;
  Note(now, Event::kPathSuspected, called_, peer, full);
  counters_->Add(Counter::kPathsSuspected);
  watch_.Ask(peer, now);
  WakeBy(now);
}

bool Group::NextProbe(Instant now, SendOrder* out) {
  PairProbe::Order order;
  while (watch_.Next(now, &order)) {
    if (links_[order.peer].left) continue;
    BeginControl({.type = MessageType::kProbe, .peer = order.peer, .op = called_,
                  .flags = order.answer ? wire::kFlagAnswer : std::uint8_t{0}, .nack = {}},
                 now, out);
    out->control_bytes += wire::WriteProbe(
        order.probe, std::span<std::byte>(out->control).subspan(wire::kHeaderBytes));
    if (!order.answer) out->filling_bytes = order.probe.packet_bytes - out->control_bytes;
    counters_->Add(Counter::kProbesSent);
    return true;
  }
  return false;
}

Counter Group::OnProbe(Rank sender, const wire::Header& header, std::span<const std::byte> body,
                       Instant now) {
  const bool answer = (header.flags & wire::kFlagAnswer) != 0;
  wire::Probe probe;
  if (wire::ParseProbe(body, answer, &probe) != wire::ParseResult::kOk) return Counter::kMalformed;
  const bool asking = watch_.asking(sender);
  if (answer && !asking) return Counter::kUnexpected;
  watch_.OnProbe(sender, answer, probe, now);
  if (asking && !watch_.asking(sender)) OnPathKnown(sender, now);
  return Counter::kAccepted;
}

void Group::OnPathKnown(Rank peer, Instant now) {
  const std::uint32_t passed = watch_.passed_bytes(peer);
  if (passed == 0 || passed >= watched_bytes_) return;
  Link& link = links_[peer];
  link.carries_bytes = passed;
  Note(now, Event::kPathNarrowed, called_, peer, watched_bytes_, passed);
  counters_->Add(Counter::kPathsNarrowed);
  // Room for one of each peer, as many as there can be before they are read.
  [[maybe_unused]] const bool kept = narrowings_.Push({peer, watched_bytes_, passed});
  if (wire::kHeaderBytes + wire::PieceBytes(watched_bytes_ - wire::kHeaderBytes) > passed) {
    Fail({Code::kUnavailable,
          "the path MTU to " + settings_.rank_names[peer] + " has shrunk: packets of " +
              std::to_string(watched_bytes_) + " bytes are lost, only those of " +
              std::to_string(passed) +
              " pass; start again, so that all paths are probed, or set path_mtu"});
  }
}

std::optional<Narrowing> Group::NextNarrowing() {
  if (narrowings_.empty()) return std::nullopt;
  return narrowings_.Pop();
}

// ---- Going on --------------------------------------------------------------------------------

// Takes a payload that may be a piece of a cell. False: it is not as long as it should be. A piece
// leaves `payload` empty, or holding the whole cell when none is missing any more.
bool Group::TakePiece(const wire::Header& header, OpNumber op, Stage stage,
                      std::size_t cell_bytes, std::span<const std::byte>* payload) {
  const auto index = static_cast<std::uint32_t>(header.flags & wire::kPieceMask) >>
                     wire::kPieceShift;
  const PieceRange range = PieceAt(index, cell_bytes);
  if (range.bytes == 0 || payload->size() != range.bytes) return false;
  *payload = pieces_.Add({op, header.sender, stage, header.cell}, index, cell_bytes, *payload);
  return true;
}

// ---- Changing --------------------------------------------------------------------------------

OpNumber Group::HoldOpens() {
  opens_held_ = true;
  return newest_;
}

void Group::ReleaseOpens() { opens_held_ = false; }

void Group::ChangeCellBytes(OpNumber first, std::uint32_t cell_bytes) {
  if (first <= newest_ || first < cell_sizes_.back().first || cell_bytes > CellBytesOf(newest_)) {
    Fail({Code::kMismatch, "rank 0 wants cells of " + std::to_string(cell_bytes) +
                               " bytes from op " + std::to_string(first) +
                               " on, which does not fit what is known here"});
    return;
  }
  if (cell_sizes_.back().first == first) cell_sizes_.pop_back();
  cell_sizes_.push_back({first, cell_bytes});
  // Of those that begin at or before the oldest op only the last still matters.
  while (cell_sizes_.size() > 1 && cell_sizes_[1].first <= oldest_) {
    cell_sizes_.erase(cell_sizes_.begin());
  }
}

}  // namespace optireduce::ubt
