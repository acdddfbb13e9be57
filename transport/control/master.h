// Rank 0's part: listens, gathers the ranks, decides, and relays from then on. Lives on the control
// thread. Whoever connects is a guest until it has claimed a rank, and guests are limited in
// number, bytes and time: strangers can neither block nor fill it.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_MASTER_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_MASTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "transport/control/asio.h"
#include "transport/control/connection.h"
#include "transport/control/resolve.h"
#include "transport/control/role.h"
#include "transport/control/roster.h"

namespace optireduce::control {

class Master final : public Role {
 public:
  Master(asio::io_context& io, RoleParts parts);
  ~Master() override;

  void Start() override;
  void Abort(const Status& cause) override;
  void Share(Bytes own) override;
  void Propose(const Change& change) override;
  void Answer(const Ready& ready) override;
  void Leave(Duration at_most, std::function<void()> on_done) override;
  void Stop() override;

 private:
  using Clock = Connection::Clock;
  enum class Phase : std::uint8_t { kOpening, kGathering, kFailing, kMember, kLeaving, kStopped };

  struct Guest {
    enum class Step : std::uint8_t { kConnected, kChallenged, kRefused };
    std::shared_ptr<Connection> connection;
    Step step = Step::kConnected;
    Clock::time_point until;
    Hello hello;
    Nonce nonce{};
  };
  using GuestId = std::uint64_t;

  struct Seat {
    enum class State : std::uint8_t { kIn, kLeft, kLost };
    std::shared_ptr<Connection> connection;  // null once it has ended
    State state = State::kIn;
    Nonce from_rank{};
    Nonce from_master{};
    SilenceWatch watch;
  };

  // Opening the port.
  void Open();
  void OnAddresses(const Result<Resolver::Addresses>& answer);
  Status Adopt(std::string& address);
  Status ListenAt(const Resolver::Addresses& addresses, std::string& address);
  void Begin(const std::string& address);

  // Guests.
  void Accept();
  void Admit(Tcp::socket socket);
  void OnGuestFrame(GuestId id, const Frame& frame);
  void OnGuestEnd(GuestId id, const std::string& reason, bool clean);
  void OnHello(GuestId id, const Frame& frame);
  void OnClaim(GuestId id, const Frame& frame);
  // What speaks against giving this rank away; ok when nothing does.
  Refused Objection(const Claim& claim) const;
  using GuestCount = std::atomic<std::uint64_t> GuestCounts::*;
  void Refuse(GuestId id, GuestCount why, bool retry, Code code, const std::string& reason);
  void Drop(GuestId id, GuestCount why);

  // Seats.
  void TakeSeat(GuestId id, const Claim& claim);
  void OnSeatFrame(Rank rank, const Frame& frame);
  void OnSeatEnd(Rank rank, const std::string& reason);
  void OnAbort(const optireduce::control::Abort& abort);
  bool OnShare(Rank rank, Bytes share);
  void Broadcast(FrameType type, const Bytes& body);

  // Changeovers.
  bool OnChangeoverFrame(Rank rank, const Frame& frame);
  void BeginChangeover();
  void OnChangeoverTimer();
  void OnGoneFromChangeover(Rank rank);
  void Tell(const std::optional<Decision>& decision);

  Waiting WhoIsMissing() const;

  // Ends of the gathering.
  void ArmLimit(Clock::time_point at);
  void OnLimit();
  std::string MissingText() const;
  void Decide();
  void WelcomeAll();
  void FailAll(const Status& status);
  void Fail(const Status& status);

  void ArmTick();
  void OnTick();
  void FinishDrainWhenEmpty();

  RoleParts parts_;
  Phase phase_ = Phase::kOpening;
  Resolver resolver_;
  Tcp::acceptor acceptor_;
  asio::steady_timer tick_timer_;
  asio::steady_timer limit_timer_;
  asio::steady_timer retry_timer_;
  asio::steady_timer drain_timer_;
  Clock::time_point tick_at_;
  Clock::time_point line_at_;
  Clock::time_point started_at_;
  Roster roster_;
  Claim own_claim_;
  std::map<GuestId, Guest> guests_;  // oldest first
  GuestId next_guest_ = 1;
  std::map<Rank, Seat> seats_;
  std::map<Rank, Bytes> shares_;  // of the exchange that is on
  Changeover changeover_;
  asio::steady_timer changeover_timer_;
  std::uint32_t changeovers_in_vain_ = 0;
  std::set<Rank> gone_again_;             // had a seat while ranks gathered
  std::map<Rank, std::string> refusals_;  // the last one of each rank
  std::string listening_at_;
  std::string problem_;
  bool disagreed_ = false;
  bool aborted_ = false;
  std::function<void()> on_drained_;
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_MASTER_H_
