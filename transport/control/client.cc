#include "transport/control/client.h"

#include <algorithm>

#include "transport/control/endpoint.h"
#include "transport/control/proof.h"
#include "transport/control/roster.h"

namespace optireduce::control {
namespace {

constexpr std::chrono::milliseconds kPauseMin{20};
constexpr std::chrono::milliseconds kPauseMax{1000};
constexpr std::chrono::seconds kConnectLimit{3};
constexpr std::chrono::seconds kGreetLimit{5};
// How long the master may take to pass an abort on before this rank believes its own.
constexpr std::chrono::seconds kAbortLimit{1};

}  // namespace

Client::Client(asio::io_context& io, RoleParts parts)
    : io_(io),
      parts_(std::move(parts)),
      resolver_(io),
      limit_timer_(io),
      step_timer_(io),
      tick_timer_(io),
      abort_timer_(io),
      pause_(kPauseMin),
      world_size_(parts_.launch.world_size) {}

void Client::Start() {
  line_at_ = Clock::now();
  limit_timer_.expires_at(parts_.limit);
  limit_timer_.async_wait([this](const ErrorCode& error) {
    if (!error) OnLimit();
  });
  ArmTick();
  Resolve();
}

std::string Client::Who() const {
  return JoinHostPort(parts_.launch.master_address, parts_.launch.master_port);
}

void Client::Resolve() {
  resolver_.Resolve(parts_.launch.master_address, parts_.info.family,
                    [this](const Result<Resolver::Addresses>& answer) {
                      if (phase_ != Phase::kSearching) return;
                      if (answer.ok()) {
                        addresses_ = *answer;
                        next_address_ = 0;
                        return TryNext();
                      }
                      if (answer.status().code() == Code::kInvalidArgument) {
                        return Fail(answer.status());
                      }
                      Again(answer.status().text());
                    });
}

void Client::TryNext() {
  if (next_address_ >= addresses_.size()) return Again(problem_);
  const Tcp::endpoint endpoint(addresses_[next_address_++], parts_.launch.master_port);
  const std::string text = JoinHostPort(AddressText(endpoint.address()), endpoint.port());
  const auto socket = std::make_shared<Tcp::socket>(io_);
  connecting_ = socket;
  step_timer_.expires_after(kConnectLimit);
  step_timer_.async_wait([this, socket](const ErrorCode& error) {
    if (error || connecting_ != socket) return;
    ErrorCode ignored;
    socket->close(ignored);  // the connect below ends with an error
  });
  socket->async_connect(endpoint, [this, socket, text](const ErrorCode& error) {
    if (connecting_ != socket) return;
    connecting_ = nullptr;
    step_timer_.cancel();
    if (error) {
      problem_ = text + (error == asio::error::operation_aborted ? " does not answer"
                                                                 : ": " + error.message());
      return TryNext();
    }
    ErrorCode ignored;
    // Without a listener, a port in the ephemeral range can connect to itself.
    if (socket->local_endpoint(ignored) == socket->remote_endpoint(ignored)) {
      problem_ = text + ": nobody listens there yet";
      return TryNext();
    }
    OnConnected(std::move(*socket));
  });
}

void Client::OnConnected(Tcp::socket socket) {
  phase_ = Phase::kGreeting;
  connection_ = std::make_shared<Connection>(std::move(socket), kListBytesMax);
  connection_->Listen([this](const Frame& frame) { OnFrame(frame); },
                      [this](const std::string& reason, bool) { OnEnd(reason); });
  nonce_ = MakeNonce();
  const Hello hello{nonce_, parts_.launch.rank, parts_.launch.world_size, parts_.key.has_value()};
  connection_->Send(FrameType::kHello, Serialize(hello));
  step_timer_.expires_after(kGreetLimit);
  step_timer_.async_wait([this](const ErrorCode& error) {
    if (error || phase_ != Phase::kGreeting) return;
    Again(connection_->peer_text() +
          " accepts the connection but does not answer (is it rank 0, or a proxy before it?)");
  });
}

void Client::Again(const std::string& problem) {
  problem_ = problem;
  phase_ = Phase::kSearching;
  if (connection_) connection_->Close();
  connection_ = nullptr;
  step_timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 3 / 2 + std::chrono::milliseconds(parts_.launch.rank % 16), kPauseMax);
  step_timer_.async_wait([this](const ErrorCode& error) {
    if (!error && phase_ == Phase::kSearching) Resolve();
  });
}

void Client::OnFrame(const Frame& frame) {
  if (phase_ == Phase::kMember || phase_ == Phase::kLeaving) return OnMemberFrame(frame);
  if (frame.type == FrameType::kRefused) {
    if (const auto refused = ParseRefused(frame.body)) return OnRefused(*refused);
  }
  if (phase_ == Phase::kGreeting && frame.type == FrameType::kChallenge) return OnChallenge(frame);
  if (phase_ == Phase::kWaiting && frame.type == FrameType::kWaiting) {
    if (const auto waiting = ParseWaiting(frame.body)) {
      missing_ = *waiting;
      return;
    }
  }
  if (phase_ == Phase::kWaiting && frame.type == FrameType::kWelcome) return OnWelcome(frame);
  Again(connection_->peer_text() + " sent what does not belong here");
}

void Client::OnChallenge(const Frame& frame) {
  const std::optional<Challenge> challenge = ParseChallenge(frame.body);
  const std::string master = connection_->peer_text();
  if (!challenge) return Again(master + " sent a malformed challenge");
  // A master with another idea of keys has refused the hello; what answers here is something else.
  if (challenge->has_key != parts_.key.has_value()) {
    return Again(master + " has another idea of job keys than this rank");
  }
  const Hello hello{nonce_, parts_.launch.rank, parts_.launch.world_size, parts_.key.has_value()};
  if (parts_.key && !ProofHolds(*parts_.key, Proves::kChallenge, nonce_, challenge->nonce,
                                Serialize(hello), challenge->proof)) {
    return Fail({Code::kMismatch, "the master at " + master + " has another job key than " +
                                      RankList({&parts_.launch.rank, 1})});
  }
  master_nonce_ = challenge->nonce;
  if (endpoint_.empty()) {
    const Result<std::string> endpoint =
        BindAndAdvertise(parts_.info, parts_.bind_data, connection_->local_address());
    if (!endpoint.ok()) return Fail(endpoint.status());
    endpoint_ = *endpoint;
  }
  Bytes body = Serialize(ClaimOf(parts_.launch, parts_.info, endpoint_));
  AppendProof(body, parts_.key
                        ? MakeProof(*parts_.key, Proves::kClaim, nonce_, master_nonce_, body)
                        : Proof{});
  connection_->Send(FrameType::kClaim, body);
  phase_ = Phase::kWaiting;
  step_timer_.cancel();
}

void Client::OnWelcome(const Frame& frame) {
  const std::optional<Proven> proven = SplitProof(frame.body);
  std::optional<Welcome> welcome;
  if (proven) welcome = ParseWelcome(proven->body);
  const bool holds = welcome && (!parts_.key || ProofHolds(*parts_.key, Proves::kWelcome, nonce_,
                                                           master_nonce_, proven->body,
                                                           proven->proof));
  const std::size_t key_bytes = parts_.key ? 0 : wire::JobKey::kBytes;
  if (!holds || welcome->members.size() != world_size_ || welcome->job_key.size() != key_bytes) {
    return Again(connection_->peer_text() + " sent a malformed welcome");
  }
  phase_ = Phase::kMember;
  limit_timer_.cancel();
  const wire::JobKey key = parts_.key
                               ? *parts_.key
                               : wire::JobKey(std::span<const std::byte, wire::JobKey::kBytes>(
                                     welcome->job_key.data(), wire::JobKey::kBytes));
  wire::Wipe(welcome->job_key);
  parts_.sink->Joined(Membership{std::move(welcome->members), key, welcome->group_id});
}

void Client::OnRefused(const Refused& refused) {
  if (refused.retry) return Again(refused.reason);
  Fail({refused.code, refused.reason});
}

void Client::OnMemberFrame(const Frame& frame) {
  const auto emit = [&](Event::Kind kind, Rank rank, Status status) {
    if (rank < world_size_) parts_.sink->Emit({kind, rank, std::move(status), {}, {}});
  };
  switch (frame.type) {
    case FrameType::kPing:
      return;
    case FrameType::kBye:
      master_left_ = true;
      return emit(Event::Kind::kPeerLeft, 0, Status::Ok());
    case FrameType::kLost:
      if (const auto lost = ParseLost(frame.body)) {
        return emit(Event::Kind::kPeerLost, lost->rank, Status(Code::kPeerLost, lost->reason));
      }
      break;
    case FrameType::kLeft:
      if (const auto left = ParseLeft(frame.body)) {
        return emit(Event::Kind::kPeerLeft, left->rank, Status::Ok());
      }
      break;
    case FrameType::kShared:
      if (auto shares = ParseShared(frame.body); shares && shares->size() == world_size_) {
        return parts_.sink->Shared(*std::move(shares));
      }
      break;
    case FrameType::kPrepare:
      if (const auto prepare = ParsePrepare(frame.body)) {
        return parts_.sink->Emit({Event::Kind::kPrepare, 0, {}, *prepare, {}});
      }
      break;
    case FrameType::kDecision:
      if (const auto decision = ParseDecision(frame.body)) {
        return parts_.sink->Emit({Event::Kind::kDecided, 0, {}, {}, *decision});
      }
      break;
    case FrameType::kAbort:
      if (const auto abort = ParseAbort(frame.body)) {
        abort_timer_.cancel();
        return emit(Event::Kind::kAborted, abort->origin, Status(abort->code, abort->text));
      }
      break;
    default:
      break;
  }
  connection_->Close();
  LoseMaster("it sent what does not belong here");
}

void Client::Share(Bytes own) {
  if (phase_ == Phase::kMember) connection_->Send(FrameType::kShare, own);
}

void Client::Propose(const Change& change) {
  if (phase_ == Phase::kMember) connection_->Send(FrameType::kPropose, Serialize(change));
}

void Client::Answer(const Ready& ready) {
  if (phase_ == Phase::kMember) connection_->Send(FrameType::kReady, Serialize(ready));
}

void Client::OnEnd(const std::string& reason) {
  if (phase_ == Phase::kMember || phase_ == Phase::kLeaving) return LoseMaster(reason);
  Again("the master at " + connection_->peer_text() + " is not ready: " + reason);
}

void Client::LoseMaster(const std::string& reason) {
  const std::string peer = connection_->peer_text();
  connection_ = nullptr;
  const bool leaving = phase_ == Phase::kLeaving;
  phase_ = Phase::kEnded;
  if (leaving) return Finished();
  if (master_left_) return;
  parts_.sink->Emit({Event::Kind::kPeerLost, 0,
                     Status(Code::kPeerLost, "rank 0 at " + peer + " is lost: " + reason),
                     {}, {}});
}

void Client::Abort(const Status& cause) {
  if (phase_ != Phase::kMember && phase_ != Phase::kEnded) return;
  const Code code = cause.ok() ? Code::kAborted : cause.code();
  const Event own{Event::Kind::kAborted, parts_.launch.rank, Status(code, cause.text()), {}, {}};
  if (!connection_) return parts_.sink->Emit(own);
  if (abort_sent_) return;
  abort_sent_ = true;
  connection_->Send(FrameType::kAbort, Serialize(control::Abort{own.rank, code, cause.text()}));
  // The master says whose cause was the first; but it may be gone or stopped.
  abort_timer_.expires_after(kAbortLimit);
  abort_timer_.async_wait([this, own](const ErrorCode& error) {
    if (!error) parts_.sink->Emit(own);
  });
}

void Client::Leave(Duration at_most, std::function<void()> on_done) {
  on_left_ = std::move(on_done);
  if (!connection_) return Finished();
  phase_ = Phase::kLeaving;
  connection_->Send(FrameType::kBye);
  connection_->Finish();
  step_timer_.expires_after(at_most);
  step_timer_.async_wait([this](const ErrorCode& error) {
    if (!error) Finished();
  });
}

void Client::Finished() {
  step_timer_.cancel();
  if (on_left_) std::exchange(on_left_, nullptr)();
}

void Client::Stop() {
  phase_ = Phase::kEnded;
  for (auto* timer : {&limit_timer_, &step_timer_, &tick_timer_, &abort_timer_}) timer->cancel();
  if (connecting_) {
    ErrorCode ignored;
    connecting_->close(ignored);
    connecting_ = nullptr;
  }
  if (connection_) connection_->Close();
  connection_ = nullptr;
}

void Client::OnLimit() {
  switch (phase_) {
    case Phase::kSearching:
      return Fail({Code::kTimeout, "rank 0 is missing: " + problem_});
    case Phase::kGreeting:
      return Fail({Code::kTimeout, "rank 0 is missing: " + connection_->peer_text() +
                                       " accepts the connection but does not answer (is it rank 0, "
                                       "or a proxy before it?); before: " + problem_});
    case Phase::kWaiting: {
      std::string text = "the master is reached, but ";
      if (missing_.listed.empty()) {
        text += "it does not say who is missing";
      } else {
        text += RankList(missing_.listed) + (missing_.missing == 1 ? " is" : " are") + " missing";
        if (missing_.missing > missing_.listed.size()) {
          text += " (" + std::to_string(missing_.missing) + " in all)";
        }
      }
      return Fail({Code::kTimeout, text});
    }
    case Phase::kMember:
    case Phase::kLeaving:
    case Phase::kEnded:
      return;
  }
}

void Client::Fail(const Status& status) {
  Stop();
  parts_.sink->Failed(status);
}

void Client::ArmTick() {
  tick_at_ = Clock::now() + kTick;
  tick_timer_.expires_at(tick_at_);
  tick_timer_.async_wait([this](const ErrorCode& error) {
    if (error || phase_ == Phase::kEnded) return;
    OnTick();
    ArmTick();
  });
}

void Client::OnTick() {
  const Clock::time_point now = Clock::now();
  if (phase_ == Phase::kMember) {
    if (!connection_->sending()) connection_->Send(FrameType::kPing);
    watch_.Check(now, connection_->heard_at(), now - tick_at_, "rank 0");
    return;
  }
  if (phase_ == Phase::kLeaving || now - line_at_ < kWaitingLine) return;
  line_at_ = now;
  const std::string rank = RankList({&parts_.launch.rank, 1});
  Log(LogLevel::kInfo, phase_ == Phase::kWaiting && !missing_.listed.empty()
                           ? "control: " + rank + " waits for " + RankList(missing_.listed)
                           : "control: " + rank + " waits for the master at " + Who() + ": " +
                                 problem_);
}

}  // namespace optireduce::control
