#include "transport/control/master.h"

#include <unistd.h>

#include <algorithm>

#include "transport/control/endpoint.h"
#include "transport/control/proof.h"

namespace optireduce::control {
namespace {

// How long those who have not come yet are waited for, to be told too, once ranks disagree.
constexpr std::chrono::seconds kDisagreedLimit{5};
constexpr std::chrono::milliseconds kDrainLimit{500};

std::string LengthText(Connection::Clock::duration length) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(length).count();
  return ms < 10'000 ? std::to_string(ms) + " ms" : std::to_string(ms / 1000) + " s";
}

}  // namespace

Master::Master(asio::io_context& io, RoleParts parts)
    : parts_(std::move(parts)),
      resolver_(io),
      acceptor_(io),
      tick_timer_(io),
      limit_timer_(io),
      retry_timer_(io),
      drain_timer_(io),
      roster_(parts_.launch.world_size),
      changeover_(parts_.launch.world_size),
      changeover_timer_(io) {}

Master::~Master() {
  if (parts_.launch.listen_fd >= 0) close(parts_.launch.listen_fd);
}

void Master::Start() {
  started_at_ = Clock::now();
  line_at_ = started_at_;
  if (parts_.launch.world_size == 1) {
    own_claim_ = ClaimOf(parts_.launch, parts_.info, "");
    roster_.Put(own_claim_);
    return WelcomeAll();
  }
  ArmLimit(parts_.limit);
  ArmTick();
  Open();
}

void Master::TakeSeat(GuestId id, const Claim& claim) {
  const auto guest = guests_.find(id);
  const Rank rank = claim.rank;
  Seat& seat = seats_[rank];
  seat.connection = guest->second.connection;
  seat.from_rank = guest->second.hello.nonce;
  seat.from_master = guest->second.nonce;
  guests_.erase(guest);
  roster_.Put(claim);
  refusals_.erase(rank);
  gone_again_.erase(rank);
  seat.connection->Listen([this, rank](const Frame& frame) { OnSeatFrame(rank, frame); },
                          [this, rank](const std::string& reason, bool) {
                            OnSeatEnd(rank, reason);
                          });
  if (roster_.Complete()) return Decide();
  const bool agrees = claim.world_size == own_claim_.world_size &&
                      claim.version == own_claim_.version &&
                      claim.config_hash == own_claim_.config_hash;
  if (!agrees && !disagreed_) {
    disagreed_ = true;
    ArmLimit(std::min(parts_.limit, Clock::now() + kDisagreedLimit));
  }
  // The last ones that come are worth telling all at once, the others at the next tick.
  const Waiting waiting = WhoIsMissing();
  const Bytes body = Serialize(waiting);
  if (waiting.missing <= kMissingListedMax) return Broadcast(FrameType::kWaiting, body);
  seat.connection->Send(FrameType::kWaiting, body);
}

void Master::OnSeatFrame(Rank rank, const Frame& frame) {
  const auto at = seats_.find(rank);
  if (at == seats_.end() || at->second.state != Seat::State::kIn) return;
  Seat& seat = at->second;
  const bool member = phase_ == Phase::kMember || phase_ == Phase::kLeaving;
  if (frame.type == FrameType::kPing && frame.body.empty()) return;
  if (frame.type == FrameType::kBye && frame.body.empty() && member) {
    seat.state = Seat::State::kLeft;
    seat.connection->Finish();
    Broadcast(FrameType::kLeft, Serialize(Left{rank}));
    parts_.sink->Emit({Event::Kind::kPeerLeft, rank, Status::Ok(), {}, {}});
    OnGoneFromChangeover(rank);
    return FinishDrainWhenEmpty();
  }
  if (frame.type == FrameType::kAbort && member) {
    if (const auto abort = ParseAbort(frame.body)) {
      return OnAbort({rank, abort->code, abort->text});
    }
  }
  if (frame.type == FrameType::kShare && member && OnShare(rank, frame.body)) return;
  if (member && OnChangeoverFrame(rank, frame)) return;
  seat.connection->Close();
  OnSeatEnd(rank, "it sent what does not belong here");
}

void Master::OnSeatEnd(Rank rank, const std::string& reason) {
  const auto at = seats_.find(rank);
  if (at == seats_.end()) return;
  Seat& seat = at->second;
  const std::string peer = seat.connection->peer_text();
  seat.connection = nullptr;
  if (phase_ == Phase::kGathering) {
    Log(LogLevel::kWarning, "control: " + RankList({&rank, 1}) + " at " + peer +
                                " went away while ranks gather: " + reason);
    seats_.erase(at);
    roster_.Remove(rank);
    gone_again_.insert(rank);
    return;
  }
  if (seat.state == Seat::State::kIn && phase_ != Phase::kFailing) {
    seat.state = Seat::State::kLost;
    const Claim* claim = roster_.Find(rank);
    const std::string text = RankList({&rank, 1}) + " (pid " + std::to_string(claim->pid) +
                             " on " + claim->host + ") is lost: " + reason;
    Broadcast(FrameType::kLost, Serialize(Lost{rank, text}));
    parts_.sink->Emit({Event::Kind::kPeerLost, rank, Status(Code::kPeerLost, text), {}, {}});
    OnGoneFromChangeover(rank);
  }
  FinishDrainWhenEmpty();
}

void Master::Abort(const Status& cause) {
  OnAbort({0, cause.ok() ? Code::kAborted : cause.code(), cause.text()});
}

void Master::OnAbort(const optireduce::control::Abort& abort) {
  if (aborted_ || (phase_ != Phase::kMember && phase_ != Phase::kLeaving)) return;
  aborted_ = true;
  Broadcast(FrameType::kAbort, Serialize(abort));
  parts_.sink->Emit({Event::Kind::kAborted, abort.origin, Status(abort.code, abort.text), {}, {}});
}

void Master::Share(Bytes own) { OnShare(0, std::move(own)); }

// False: not what this rank may send now.
bool Master::OnShare(Rank rank, Bytes share) {
  if (share.size() > kShareBytesMax || shares_.contains(rank)) return false;
  shares_.emplace(rank, std::move(share));
  if (shares_.size() < parts_.launch.world_size) return true;
  std::vector<Bytes> all;
  for (auto& [from, bytes] : shares_) all.push_back(std::move(bytes));
  shares_.clear();
  Broadcast(FrameType::kShared, SerializeShared(all));
  parts_.sink->Shared(std::move(all));
  return true;
}

void Master::Broadcast(FrameType type, const Bytes& body) {
  for (auto& [rank, seat] : seats_) {
    if (seat.state == Seat::State::kIn && seat.connection) seat.connection->Send(type, body);
  }
}

Waiting Master::WhoIsMissing() const {
  Waiting waiting;
  waiting.listed = roster_.Missing();
  waiting.missing = static_cast<std::uint32_t>(waiting.listed.size());
  waiting.listed.resize(std::min(waiting.listed.size(), kMissingListedMax));
  return waiting;
}

void Master::ArmLimit(Clock::time_point at) {
  limit_timer_.expires_at(at);
  limit_timer_.async_wait([this](const ErrorCode& error) {
    if (!error) OnLimit();
  });
}

void Master::OnLimit() {
  if (phase_ == Phase::kOpening) {
    return Fail({Code::kTimeout, "after " + LengthText(Clock::now() - started_at_) +
                                     " rank 0 still has no address to listen at: " + problem_});
  }
  if (phase_ != Phase::kGathering) return;
  const Status agreement = roster_.Agreement();
  if (!agreement.ok()) return FailAll(agreement);
  FailAll({Code::kTimeout, MissingText()});
}

std::string Master::MissingText() const {
  std::vector<Rank> never;
  std::vector<Rank> again;
  for (const Rank rank : roster_.Missing()) {
    (gone_again_.contains(rank) ? again : never).push_back(rank);
  }
  std::string text = "after " + LengthText(Clock::now() - started_at_) + " ";
  if (!never.empty()) text += RankList(never) + (never.size() == 1 ? " is" : " are") + " missing";
  if (!again.empty()) {
    text += (never.empty() ? "" : ", ") + RankList(again) + " came but went away again";
  }
  text += " (rank 0 listens at " + listening_at_;
  const Result<HostPort> split = SplitHostPort(listening_at_);
  if (split.ok() && IsLoopback(split->host)) text += ", which other hosts cannot reach";
  text += ")";
  for (const auto& [rank, refusal] : refusals_) text += "; refused: " + refusal;
  return text.substr(0, kReasonBytesMax);
}

void Master::Decide() {
  const Status agreement = roster_.Agreement();
  if (!agreement.ok()) return FailAll(agreement);
  const Status addresses = roster_.Addresses();
  if (!addresses.ok()) return FailAll(addresses);
  WelcomeAll();
}

void Master::WelcomeAll() {
  phase_ = Phase::kMember;
  limit_timer_.cancel();
  const wire::JobKey job_key = parts_.key ? *parts_.key : wire::MakeJobKey();
  Welcome welcome;
  welcome.group_id = MakeGroupId();
  if (!parts_.key) welcome.job_key.assign(job_key.bytes().begin(), job_key.bytes().end());
  welcome.members = roster_.Members();
  Bytes body = Serialize(welcome);
  wire::Wipe(welcome.job_key);
  for (auto& [rank, seat] : seats_) {
    Proof proof{};
    if (parts_.key) {
      proof = MakeProof(*parts_.key, Proves::kWelcome, seat.from_rank, seat.from_master, body);
    }
    Bytes whole = body;
    AppendProof(whole, proof);
    seat.connection->Send(FrameType::kWelcome, whole);
    wire::Wipe(whole);
  }
  wire::Wipe(body);
  parts_.sink->Joined(Membership{std::move(welcome.members), job_key, welcome.group_id});
}

void Master::FailAll(const Status& status) {
  phase_ = Phase::kFailing;
  ErrorCode ignored;
  acceptor_.close(ignored);
  const Bytes body = Serialize(Refused{false, status.code(), status.text()});
  const auto tell = [&](Connection& connection) {
    connection.Send(FrameType::kRefused, body);
    connection.Finish();
  };
  for (auto& [id, guest] : guests_) {
    if (guest.step == Guest::Step::kChallenged) tell(*guest.connection);
  }
  for (auto& [rank, seat] : seats_) tell(*seat.connection);
  on_drained_ = [this, status] { Fail(status); };
  drain_timer_.expires_after(kDrainLimit);
  drain_timer_.async_wait([this](const ErrorCode& error) {
    if (!error && on_drained_) std::exchange(on_drained_, nullptr)();
  });
  FinishDrainWhenEmpty();
}

void Master::Fail(const Status& status) {
  phase_ = Phase::kFailing;
  parts_.sink->Failed(status);
}

void Master::FinishDrainWhenEmpty() {
  if (!on_drained_) return;
  for (const auto& [rank, seat] : seats_) {
    const bool waited_for = phase_ == Phase::kLeaving ? seat.state == Seat::State::kIn
                                                      : seat.connection != nullptr;
    if (waited_for) return;
  }
  drain_timer_.cancel();
  std::exchange(on_drained_, nullptr)();
}

void Master::Leave(Duration at_most, std::function<void()> on_done) {
  phase_ = Phase::kLeaving;
  ErrorCode ignored;
  acceptor_.close(ignored);
  while (!guests_.empty()) Drop(guests_.begin()->first, &GuestCounts::left);
  Broadcast(FrameType::kBye, {});
  on_drained_ = [this, call = std::move(on_done)] {
    for (auto& [rank, seat] : seats_) {
      if (seat.connection) seat.connection->Finish();
    }
    call();
  };
  drain_timer_.expires_after(at_most);
  drain_timer_.async_wait([this](const ErrorCode& error) {
    if (!error && on_drained_) std::exchange(on_drained_, nullptr)();
  });
  FinishDrainWhenEmpty();
}

void Master::Stop() {
  phase_ = Phase::kStopped;
  on_drained_ = nullptr;
  ErrorCode ignored;
  acceptor_.close(ignored);
  for (auto* timer :
       {&tick_timer_, &limit_timer_, &retry_timer_, &drain_timer_, &changeover_timer_}) {
    timer->cancel();
  }
  while (!guests_.empty()) Drop(guests_.begin()->first, &GuestCounts::left);
  for (auto& [rank, seat] : seats_) {
    if (seat.connection) seat.connection->Close();
  }
  seats_.clear();
}

void Master::ArmTick() {
  tick_at_ = Clock::now() + kTick;
  tick_timer_.expires_at(tick_at_);
  tick_timer_.async_wait([this](const ErrorCode& error) {
    if (error || phase_ == Phase::kStopped) return;
    OnTick();
    ArmTick();
  });
}

void Master::OnTick() {
  const Clock::time_point now = Clock::now();
  for (auto at = guests_.begin(); at != guests_.end();) {
    const GuestId id = at->first;
    const bool over = now >= at->second.until;
    ++at;
    if (over) Drop(id, &GuestCounts::silent);
  }
  if (phase_ == Phase::kGathering || phase_ == Phase::kOpening) {
    if (phase_ == Phase::kGathering) Broadcast(FrameType::kWaiting, Serialize(WhoIsMissing()));
    if (now - line_at_ < kWaitingLine) return;
    line_at_ = now;
    Log(LogLevel::kInfo, phase_ == Phase::kGathering
                             ? "control: waiting for " + RankList(roster_.Missing())
                             : "control: waiting for an address to listen at: " + problem_);
    return;
  }
  if (phase_ != Phase::kMember && phase_ != Phase::kLeaving) return;
  for (auto& [rank, seat] : seats_) {
    if (seat.state != Seat::State::kIn || !seat.connection) continue;
    // Not behind a queue: a peer that takes nothing must not make us keep more and more.
    if (!seat.connection->sending()) seat.connection->Send(FrameType::kPing);
    seat.watch.Check(now, seat.connection->heard_at(), now - tick_at_, RankList({&rank, 1}));
  }
}

}  // namespace optireduce::control
