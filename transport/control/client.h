// The part of every rank but 0: finds the master, proves itself, claims its rank, waits for the
// others, and from then on hears from the master. Lives on the control thread. Until its limit it
// tries again whatever a master that is not there yet can look like: no name, nobody listening,
// a port that closes or stays silent, another service.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_CLIENT_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "transport/control/asio.h"
#include "transport/control/connection.h"
#include "transport/control/resolve.h"
#include "transport/control/role.h"

namespace optireduce::control {

class Client final : public Role {
 public:
  Client(asio::io_context& io, RoleParts parts);

  void Start() override;
  void Abort(const Status& cause) override;
  void Share(Bytes own) override;
  void Propose(const Change& change) override;
  void Answer(const Ready& ready) override;
  void Leave(Duration at_most, std::function<void()> on_done) override;
  void Stop() override;

 private:
  using Clock = Connection::Clock;
  enum class Phase : std::uint8_t {
    kSearching,  // no answer yet: name, connection
    kGreeting,   // connected, HELLO sent
    kWaiting,    // claimed, others are missing
    kMember,
    kLeaving,
    kEnded,  // failed, or no master any more
  };

  void Resolve();
  void TryNext();
  void OnConnected(Tcp::socket socket);
  // Drops what was tried, notes why, tries again a little later.
  void Again(const std::string& problem);

  void OnFrame(const Frame& frame);
  void OnChallenge(const Frame& frame);
  void OnWelcome(const Frame& frame);
  void OnRefused(const Refused& refused);
  void OnMemberFrame(const Frame& frame);
  void OnEnd(const std::string& reason);
  void LoseMaster(const std::string& reason);

  void OnLimit();
  void Fail(const Status& status);
  void Finished();
  void ArmTick();
  void OnTick();
  std::string Who() const;

  asio::io_context& io_;
  RoleParts parts_;
  Phase phase_ = Phase::kSearching;
  Resolver resolver_;
  asio::steady_timer limit_timer_;
  asio::steady_timer step_timer_;  // of one try, and the pause between two
  asio::steady_timer tick_timer_;
  asio::steady_timer abort_timer_;
  Clock::time_point tick_at_;
  Clock::time_point line_at_;
  std::chrono::milliseconds pause_;
  Resolver::Addresses addresses_;
  std::size_t next_address_ = 0;
  std::shared_ptr<Tcp::socket> connecting_;
  std::shared_ptr<Connection> connection_;
  Nonce nonce_{};
  Nonce master_nonce_{};
  std::string endpoint_;  // of the data port, once bound
  std::string problem_ = "nothing was tried yet";
  Waiting missing_;
  std::uint32_t world_size_ = 0;
  SilenceWatch watch_;
  bool master_left_ = false;
  bool abort_sent_ = false;
  std::function<void()> on_left_;
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_CLIENT_H_
