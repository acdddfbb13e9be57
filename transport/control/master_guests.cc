// The master's door: opening the port, and guests until they have a seat or are gone.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/control/endpoint.h"
#include "transport/control/master.h"
#include "transport/control/proof.h"

namespace optireduce::control {
namespace {

constexpr std::size_t kGuestsMax = 256;
constexpr std::chrono::seconds kGuestLimit{5};
constexpr std::chrono::seconds kRefusedLimit{2};
constexpr std::chrono::milliseconds kReopenAfter{200};
constexpr std::chrono::milliseconds kAcceptAfterError{100};

// The address of the accepted socket family of `fd`; nothing when it is no listening TCP socket.
std::optional<Tcp> ListeningProtocol(int fd) {
  int value = 0;
  socklen_t bytes = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &bytes) != 0 || value == 0) {
    return std::nullopt;
  }
  bytes = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &bytes) != 0) return std::nullopt;
  if (value == AF_INET) return Tcp::v4();
  if (value == AF_INET6) return Tcp::v6();
  return std::nullopt;
}

}  // namespace

void Master::Open() {
  if (phase_ != Phase::kOpening) return;
  const Launch& launch = parts_.launch;
  if (launch.listen_fd >= 0) {
    std::string address;
    const Status adopted = Adopt(address);
    if (!adopted.ok()) return Fail(adopted);
    if (!IsWildcard(address)) return Begin(address);
  }
  resolver_.Resolve(launch.master_address, parts_.info.family,
                    [this](const Result<Resolver::Addresses>& answer) { OnAddresses(answer); });
}

Status Master::Adopt(std::string& address) {
  const int fd = std::exchange(parts_.launch.listen_fd, -1);
  const std::optional<Tcp> protocol = ListeningProtocol(fd);
  ErrorCode error;
  if (protocol) {
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    acceptor_.assign(*protocol, fd, error);
    // What is accepted inherits it; else the connections' remains would block the port for a while.
    ErrorCode ignored;
    acceptor_.set_option(asio::socket_base::reuse_address(true), ignored);
  }
  if (!protocol || error) {
    close(fd);
    return {Code::kInvalidArgument, "the given file descriptor is no listening TCP socket"};
  }
  const Tcp::endpoint local = acceptor_.local_endpoint(error);
  address = AddressText(local.address());
  listening_at_ = JoinHostPort(address, local.port());
  return Status::Ok();
}

void Master::OnAddresses(const Result<Resolver::Addresses>& answer) {
  if (phase_ != Phase::kOpening) return;
  if (!answer.ok() && answer.status().code() == Code::kInvalidArgument) {
    return Fail(answer.status());
  }
  if (!answer.ok()) {
    // Its own name may not be known yet where names come with the pods.
    problem_ = answer.status().text();
    retry_timer_.expires_after(kReopenAfter);
    retry_timer_.async_wait([this](const ErrorCode& error) {
      if (!error) Open();
    });
    return;
  }
  std::string address;
  if (acceptor_.is_open()) {  // adopted, bound to every address
    for (const asio::ip::address& candidate : *answer) {
      if (!candidate.is_unspecified()) return Begin(AddressText(candidate));
    }
  } else {
    const Status listening = ListenAt(*answer, address);
    if (!listening.ok()) return Fail(listening);
    if (!IsWildcard(address)) return Begin(address);
  }
  if (parts_.info.bind_address.empty()) {
    return Fail({Code::kInvalidArgument,
                 "MASTER_ADDR " + Quoted(parts_.launch.master_address) +
                     " is no address that peers can use: name one of this host's addresses"});
  }
  Begin(address);
}

Status Master::ListenAt(const Resolver::Addresses& addresses, std::string& address) {
  Resolver::Addresses candidates = addresses;
  if (!parts_.info.bind_address.empty()) {
    // The master's name may stand for an address that some gateway translates into ours.
    const Result<std::string> local = LocalAddress(parts_.info.bind_address, parts_.info.family);
    if (!local.ok()) return local.status().Context("address to bind");
    ErrorCode error;
    const asio::ip::address parsed = asio::ip::make_address(*local, error);
    if (!error) candidates.push_back(parsed);
  }
  std::string tried;
  for (const asio::ip::address& candidate : candidates) {
    const Tcp::endpoint endpoint(candidate, parts_.launch.master_port);
    const std::string text = JoinHostPort(AddressText(candidate), endpoint.port());
    ErrorCode error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      // A job may start on the port of one that has just ended.
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
      (void)fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
      acceptor_.bind(endpoint, error);
    }
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) {
      address = AddressText(candidate);
      listening_at_ = text;
      return Status::Ok();
    }
    ErrorCode ignored;
    acceptor_.close(ignored);
    if (error == asio::error::address_in_use) {
      return {Code::kUnavailable,
              "port " + std::to_string(endpoint.port()) + " of " + AddressText(candidate) +
                  " is in use (ss -ltnp shows by whom): choose another MASTER_PORT"};
    }
    tried += (tried.empty() ? "" : "; ") + text + ": " + error.message();
  }
  return {Code::kUnavailable, "rank 0 cannot listen at MASTER_ADDR " +
                                  Quoted(parts_.launch.master_address) + " (" + tried +
                                  "): it must be an address of rank 0's host, or "
                                  "OPTIREDUCE_NET_BIND must say which one to use"};
}

void Master::Begin(const std::string& address) {
  const Result<std::string> endpoint = BindAndAdvertise(parts_.info, parts_.bind_data, address);
  if (!endpoint.ok()) return Fail(endpoint.status());
  own_claim_ = ClaimOf(parts_.launch, parts_.info, *endpoint);
  roster_.Put(own_claim_);
  phase_ = Phase::kGathering;
  Log(LogLevel::kInfo, "control: listening at " + listening_at_ + " for " +
                           std::to_string(parts_.launch.world_size - 1) + " ranks");
  Accept();
}

void Master::Accept() {
  acceptor_.async_accept([this](const ErrorCode& error, Tcp::socket socket) {
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!error) {
      Admit(std::move(socket));
      return Accept();
    }
    // Out of file descriptors, or the guest is gone already. The oldest guest makes room.
    if (error != asio::error::connection_aborted && !guests_.empty()) {
      Drop(guests_.begin()->first, &GuestCounts::crowded_out);
    }
    retry_timer_.expires_after(kAcceptAfterError);
    retry_timer_.async_wait([this](const ErrorCode& cancelled) {
      if (!cancelled && acceptor_.is_open()) Accept();
    });
  });
}

void Master::Admit(Tcp::socket socket) {
  if (guests_.size() >= kGuestsMax) Drop(guests_.begin()->first, &GuestCounts::crowded_out);
  const GuestId id = next_guest_++;
  Guest& guest = guests_[id];
  guest.connection = std::make_shared<Connection>(std::move(socket), 0);
  guest.until = Clock::now() + kGuestLimit;
  guest.connection->Listen([this, id](const Frame& frame) { OnGuestFrame(id, frame); },
                           [this, id](const std::string& reason, bool clean) {
                             OnGuestEnd(id, reason, clean);
                           });
}

void Master::OnGuestEnd(GuestId id, const std::string& reason, bool clean) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  const Connection& from = *at->second.connection;
  if (from.fault() != FrameReader::Fault::kVersion) {
    if (!clean) Log(LogLevel::kInfo, "control: dropped " + from.peer_text() + ": " + reason);
    return Drop(id, from.fault() == FrameReader::Fault::kNone ? &GuestCounts::left
                                                              : &GuestCounts::malformed);
  }
  Refuse(id, &GuestCounts::other_version, false, Code::kMismatch,
         "it speaks version " + std::to_string(from.foreign_version()) +
             " of the control protocol, rank 0 speaks version " + std::to_string(kControlVersion));
}

// Who was refused has been counted as that.
void Master::Drop(GuestId id, GuestCount why) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  if (at->second.step != Guest::Step::kRefused) ++(parts_.guests->*why);
  at->second.connection->Close();
  guests_.erase(at);
}

void Master::Refuse(GuestId id, GuestCount why, bool retry, Code code, const std::string& reason) {
  Guest& guest = guests_.at(id);
  ++(parts_.guests->*why);
  guest.step = Guest::Step::kRefused;
  guest.until = Clock::now() + kRefusedLimit;
  guest.connection->Send(FrameType::kRefused, Serialize(Refused{retry, code, reason}));
  guest.connection->Finish();
  Log(LogLevel::kWarning, "control: refused " + guest.connection->peer_text() + ": " + reason);
}

void Master::OnGuestFrame(GuestId id, const Frame& frame) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  switch (at->second.step) {
    case Guest::Step::kConnected:
      return OnHello(id, frame);
    case Guest::Step::kChallenged:
      return OnClaim(id, frame);
    case Guest::Step::kRefused:
      return;
  }
}

void Master::OnHello(GuestId id, const Frame& frame) {
  Guest& guest = guests_.at(id);
  const std::optional<Hello> hello =
      frame.type == FrameType::kHello ? ParseHello(frame.body) : std::nullopt;
  if (!hello) return Drop(id, &GuestCounts::malformed);
  guest.hello = *hello;
  if (hello->has_key != parts_.key.has_value()) {
    const std::string who = RankList({&hello->rank, 1}) + " at " + guest.connection->peer_text();
    const std::string reason =
        hello->has_key ? who + " has a job key file, rank 0 has none"
                       : who + " has no job key file, rank 0 has one (OPTIREDUCE_JOB_KEY_FILE)";
    refusals_[hello->rank] = reason;
    return Refuse(id, &GuestCounts::wrong_key, false, Code::kMismatch, reason);
  }
  guest.nonce = MakeNonce();
  guest.step = Guest::Step::kChallenged;
  Challenge challenge{guest.nonce, parts_.key.has_value(), {}};
  if (parts_.key) {
    challenge.proof =
        MakeProof(*parts_.key, Proves::kChallenge, hello->nonce, guest.nonce, frame.body);
  }
  guest.connection->Send(FrameType::kChallenge, Serialize(challenge));
}

void Master::OnClaim(GuestId id, const Frame& frame) {
  Guest& guest = guests_.at(id);
  const std::optional<Proven> proven =
      frame.type == FrameType::kClaim ? SplitProof(frame.body) : std::nullopt;
  if (!proven) return Drop(id, &GuestCounts::malformed);
  if (parts_.key && !ProofHolds(*parts_.key, Proves::kClaim, guest.hello.nonce, guest.nonce,
                                proven->body, proven->proof)) {
    const std::string reason = RankList({&guest.hello.rank, 1}) + " at " +
                               guest.connection->peer_text() + " has another job key than rank 0";
    refusals_[guest.hello.rank] = reason;
    return Refuse(id, &GuestCounts::wrong_key, false, Code::kMismatch, reason);
  }
  const std::optional<Claim> claim = ParseClaim(proven->body);
  if (!claim || claim->rank != guest.hello.rank || claim->world_size != guest.hello.world_size) {
    return Drop(id, &GuestCounts::malformed);
  }
  // The same process again, after a break that has not been noticed at this end.
  const Claim* holder = roster_.Find(claim->rank);
  if (phase_ == Phase::kGathering && holder != nullptr && claim->rank != 0 &&
      holder->pid == claim->pid && holder->host == claim->host &&
      holder->endpoint == claim->endpoint) {
    seats_.at(claim->rank).connection->Close();
    OnSeatEnd(claim->rank, "it has connected again");
  }
  const Refused objection = Objection(*claim);
  if (!objection.reason.empty()) {
    return Refuse(id, &GuestCounts::refused, objection.retry, objection.code, objection.reason);
  }
  TakeSeat(id, *claim);
}

Refused Master::Objection(const Claim& claim) const {
  const bool living = phase_ == Phase::kGathering || phase_ == Phase::kMember;
  bool whole = !aborted_;
  for (const auto& [rank, seat] : seats_) whole = whole && seat.state == Seat::State::kIn;
  if (!living || !whole) {
    // Most likely the claim is for the job that comes after this one.
    return {true, Code::kUnavailable,
            "a group at " + listening_at_ + " has not quite ended (pid " +
                std::to_string(own_claim_.pid) + " on " + own_claim_.host + ")"};
  }
  if (const Claim* holder = roster_.Find(claim.rank)) {
    return {false, Code::kInvalidArgument,
            RankList({&claim.rank, 1}) + " is taken already by pid " +
                std::to_string(holder->pid) + " on " + holder->host + ", the claim of pid " +
                std::to_string(claim.pid) + " on " + claim.host +
                " is refused: was the rank started twice, or does another job use " +
                listening_at_ + "?"};
  }
  if (phase_ == Phase::kMember) {
    return {false, Code::kInvalidArgument,
            "the group at " + listening_at_ + " is complete with " +
                std::to_string(parts_.launch.world_size) + " ranks"};
  }
  return {};
}

}  // namespace optireduce::control
