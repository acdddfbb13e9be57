#include "transport/ubt/pair_probe.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/check.h"

namespace optireduce::ubt {
namespace {

using std::chrono::milliseconds;

// Between two rounds: at least the first, and doubled up to the second while nothing comes back.
constexpr Duration kPauseMin = milliseconds(2);
constexpr Duration kPauseMax = milliseconds(64);
// The first rounds ask for the largest size alone; where it does not pass, more are tried at once.
constexpr std::uint32_t kNarrowRounds = 2;
constexpr int kSizesPerRound = 4;
// A peer that is silent that long is gone or stopped, whatever the size.
constexpr std::uint32_t kInVainMax = 24;
// More wait for being sent only where somebody floods us.
constexpr std::size_t kAnswersPerPeer = 16;

}  // namespace

PairProbe::PairProbe(Rank rank, std::uint32_t ranks, std::vector<std::uint32_t> sizes, Asks asks)
    : rank_(rank),
      sizes_(std::move(sizes)),
      peers_(ranks),
      answers_(std::size_t{ranks} * kAnswersPerPeer) {
  OR_CHECK(rank < ranks && !sizes_.empty() && sizes_.size() <= kSizesMax);
  OR_CHECK(std::is_sorted(sizes_.rbegin(), sizes_.rend()));
  if (asks == Asks::kWhenTold) return;
  for (Rank peer = 0; peer < ranks; ++peer) peers_[peer].open = peer != rank;
  open_peers_ = ranks - 1;
}

void PairProbe::Ask(Rank rank, Instant now) {
  Peer& peer = peers_[rank];
  if (rank == rank_ || peer.open) return;
  // Rounds count on, so that answers to older ones are told apart.
  const std::uint32_t round = peer.round;
  peer = Peer{};
  peer.open = true;
  peer.round = round;
  peer.next_round = now;
  peer.in_vain_max = kInVainMax;
  ++open_peers_;
}

void PairProbe::BeginRound(Peer& peer, Instant now) {
  if (peer.unanswered >= peer.in_vain_max) return Close(peer);
  ++peer.round;
  const int count = peer.round <= kNarrowRounds ? 1 : kSizesPerRound;
  std::uint32_t sizes = base_bit();
  int taken = 0;
  for (std::size_t i = 0; i + 1 < sizes_.size() && taken < count; ++i) {
    if ((peer.passed >> i & 1) != 0) break;  // smaller ones need not be asked
    if (peer.losses[i] >= kLossesMax) continue;
    sizes |= 1U << i;
    ++taken;
  }
  peer.to_send = sizes;
  peer.rounds[peer.round % kRoundsKept] = {peer.round, sizes, now, false};
  const std::uint32_t doublings = std::min(peer.unanswered++, std::uint32_t{5});
  peer.next_round = now + std::min<Duration>(kPauseMin * (1 << doublings), kPauseMax);
}

bool PairProbe::Next(Instant now, Order* order) {
  if (!answers_.empty()) {
    *order = answers_.Pop();
    return true;
  }
  for (std::size_t tried = 0; tried < peers_.size(); ++tried) {
    Peer& peer = peers_[next_peer_];
    if (peer.open && peer.to_send == 0 && now >= peer.next_round) BeginRound(peer, now);
    if (peer.to_send != 0) {
      // Falling: the smallest goes last, so that its answer tells of the others.
      const int index = std::countr_zero(peer.to_send);
      peer.to_send &= peer.to_send - 1;
      *order = {next_peer_, false, {peer.round, sizes_[static_cast<std::size_t>(index)]}};
      return true;
    }
    next_peer_ = (next_peer_ + 1) % static_cast<Rank>(peers_.size());
  }
  return false;
}

Instant PairProbe::NextWake() const {
  Instant wake = kNever;
  for (const Peer& peer : peers_) {
    if (peer.open) wake = std::min(wake, peer.next_round);
  }
  return wake;
}

void PairProbe::OnProbe(Rank from, bool answer, const wire::Probe& probe, Instant now) {
  if (from >= peers_.size() || from == rank_) return;
  if (answer) return OnAnswer(peers_[from], probe, now);
  // Full: whoever gets no answer asks again.
  [[maybe_unused]] const bool kept = answers_.Push({from, true, probe});
}

void PairProbe::OnAnswer(Peer& peer, const wire::Probe& probe, Instant now) {
  const auto size = std::find(sizes_.begin(), sizes_.end(), probe.packet_bytes);
  Round& round = peer.rounds[probe.round % kRoundsKept];
  const auto bit = size == sizes_.end() ? 0U : 1U << (size - sizes_.begin());
  if (probe.round == 0 || round.number != probe.round || (round.sent & bit) == 0) return;
  peer.passed |= bit;
  peer.unanswered = 0;
  const Duration round_trip = std::max<Duration>(now - round.at, Duration{1});
  if (peer.round_trip == Duration{0} || round_trip < peer.round_trip) {
    peer.round_trip = round_trip;
  }
  if (bit == base_bit() && !round.counted) {
    round.counted = true;
    const std::uint32_t lost = round.sent & ~peer.passed;
    for (std::size_t i = 0; i < sizes_.size(); ++i) peer.losses[i] += lost >> i & 1;
  }
  CloseIfKnown(peer);
}

void PairProbe::CloseIfKnown(Peer& peer) {
  if (!peer.open || peer.passed == 0) return;
  const auto largest = static_cast<std::size_t>(std::countr_zero(peer.passed));
  for (std::size_t i = 0; i < largest; ++i) {
    if (peer.losses[i] < kLossesMax) return;
  }
  Close(peer);
}

void PairProbe::Close(Peer& peer) {
  peer.open = false;
  peer.to_send = 0;
  --open_peers_;
}

std::uint32_t PairProbe::passed_bytes(Rank peer) const {
  const std::uint32_t passed = peers_[peer].passed;
  return passed == 0 ? 0 : sizes_[static_cast<std::size_t>(std::countr_zero(passed))];
}

}  // namespace optireduce::ubt
