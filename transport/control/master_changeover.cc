// Rank 0's part in changeovers: carries questions and decisions, and watches the time.
#include <algorithm>

#include "transport/control/master.h"
#include "transport/control/roster.h"

namespace optireduce::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// While a changeover is under way no rank opens an op, so it must not take long.
constexpr milliseconds kAnswerLimit{1000};
// Between two tries, doubled with each in vain.
constexpr seconds kTryAgain{2};
constexpr std::uint32_t kDoublingsMax = 5;

}  // namespace

void Master::Propose(const Change& change) {
  changeover_.Propose(change);
  BeginChangeover();
}

void Master::Answer(const Ready& ready) { Tell(changeover_.OnReady(0, ready)); }

// False: not what this rank may send.
bool Master::OnChangeoverFrame(Rank rank, const Frame& frame) {
  if (frame.type == FrameType::kPropose) {
    const std::optional<Change> change = ParseChange(frame.body);
    if (change) Propose(*change);
    return change.has_value();
  }
  if (frame.type != FrameType::kReady) return false;
  const std::optional<Ready> ready = ParseReady(frame.body);
  if (ready) Tell(changeover_.OnReady(rank, *ready));
  return ready.has_value();
}

void Master::OnGoneFromChangeover(Rank rank) { Tell(changeover_.OnGone(rank)); }

void Master::BeginChangeover() {
  if (phase_ != Phase::kMember) return;
  const std::optional<Prepare> prepare = changeover_.Begin();
  if (!prepare) return;
  changeover_timer_.expires_after(kAnswerLimit);
  changeover_timer_.async_wait([this](const ErrorCode& error) {
    if (!error) OnChangeoverTimer();
  });
  Broadcast(FrameType::kPrepare, Serialize(*prepare));
  parts_.sink->Emit({Event::Kind::kPrepare, 0, {}, *prepare, {}});
}

// Either not all have answered in time, or it is time to try again.
void Master::OnChangeoverTimer() {
  if (phase_ != Phase::kMember) return;
  if (!changeover_.under_way()) return BeginChangeover();
  const std::vector<Rank> missing = changeover_.Missing();
  Log(LogLevel::kWarning, "control: " + RankList(missing) +
                              (missing.size() == 1 ? " does" : " do") +
                              " not answer; the packet size stays as it is for now");
  Tell(changeover_.GiveUp());
  const std::uint32_t doublings = std::min(changeovers_in_vain_++, kDoublingsMax);
  changeover_timer_.expires_after(kTryAgain * (1 << doublings));
  changeover_timer_.async_wait([this](const ErrorCode& error) {
    if (!error) OnChangeoverTimer();
  });
}

void Master::Tell(const std::optional<Decision>& decision) {
  if (!decision || (phase_ != Phase::kMember && phase_ != Phase::kLeaving)) return;
  Broadcast(FrameType::kDecision, Serialize(*decision));
  parts_.sink->Emit({Event::Kind::kDecided, 0, {}, {}, *decision});
  if (!decision->commit) return;
  changeover_timer_.cancel();
  changeovers_in_vain_ = 0;
  BeginChangeover();
}

}  // namespace optireduce::control
