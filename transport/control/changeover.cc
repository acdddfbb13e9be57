#include "transport/control/changeover.h"

#include <algorithm>
#include <utility>

namespace optireduce::control {

void Changeover::Propose(const Change& change) {
  const std::uint32_t least = std::min(settled_, wanted_ == 0 ? settled_ : wanted_);
  if (change.packet_bytes > 0 && change.packet_bytes < least) wanted_ = change.packet_bytes;
}

std::optional<Prepare> Changeover::Begin() {
  if (under_way_ || wanted_ == 0) return std::nullopt;
  under_way_ = true;
  asked_ = wanted_;
  for (Answer& answer : answers_) answer.in = false;
  return Prepare{++id_, {asked_}};
}

std::optional<Decision> Changeover::OnReady(Rank rank, const Ready& ready) {
  if (!under_way_ || ready.id != id_ || rank >= answers_.size()) return std::nullopt;
  answers_[rank].in = true;
  answers_[rank].newest = ready.newest;
  return DecideWhenAllAreIn();
}

std::optional<Decision> Changeover::OnGone(Rank rank) {
  if (rank >= answers_.size()) return std::nullopt;
  answers_[rank].gone = true;
  return DecideWhenAllAreIn();
}

std::optional<Decision> Changeover::DecideWhenAllAreIn() {
  if (!under_way_) return std::nullopt;
  OpNumber newest = 0;
  for (const Answer& answer : answers_) {
    if (!answer.in && !answer.gone) return std::nullopt;
    // An answer counts though its rank has gone since: others may have its op.
    if (answer.in) newest = std::max(newest, answer.newest);
  }
  under_way_ = false;
  settled_ = asked_;
  if (wanted_ >= settled_) wanted_ = 0;
  return Decision{id_, true, newest + 1};
}

std::optional<Decision> Changeover::GiveUp() {
  if (!std::exchange(under_way_, false)) return std::nullopt;
  return Decision{id_, false, 0};
}

std::vector<Rank> Changeover::Missing() const {
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < answers_.size(); ++rank) {
    if (!answers_[rank].in && !answers_[rank].gone) missing.push_back(rank);
  }
  return missing;
}

}  // namespace optireduce::control
