// What the master and the other ranks have in common: how they are told what to do and how they
// tell what happened. All of it on the control thread.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_ROLE_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_ROLE_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/log.h"
#include "transport/control/asio.h"
#include "transport/control/connection.h"
#include "transport/control/control.h"
#include "transport/control/guest_counts.h"
#include "transport/wire/keys.h"

namespace optireduce::control {

// Events of the control plane, to whoever owns the role.
class Sink {
 public:
  virtual ~Sink() = default;
  // Exactly one of these two ends the joining.
  virtual void Joined(Membership membership) = 0;
  virtual void Failed(const Status& status) = 0;
  // After Joined. Repeats of what is known already are for the sink to drop.
  virtual void Emit(const Event& event) = 0;
  // What all ranks shared, by rank.
  virtual void Shared(std::vector<Bytes> shares) = 0;
};

// What both roles are made from.
struct RoleParts {
  Launch launch;
  LocalInfo info;
  std::optional<wire::JobKey> key;  // from the job key file
  Connection::Clock::time_point limit;
  BindData bind_data;
  Sink* sink = nullptr;
  GuestCounts* guests = nullptr;
};

class Role {
 public:
  virtual ~Role() = default;
  virtual void Start() = 0;
  virtual void Abort(const Status& cause) = 0;
  // Gives `own` to all ranks; the sink gets what all gave once they all have. One at a time.
  virtual void Share(Bytes own) = 0;
  virtual void Propose(const Change& change) = 0;
  virtual void Answer(const Ready& ready) = 0;
  // Says bye; `on_done` once, at the latest after `at_most`.
  virtual void Leave(Duration at_most, std::function<void()> on_done) = 0;
  // Closes everything at once.
  virtual void Stop() = 0;
};

// Heartbeats, and how long a silence is worth a line in the log.
inline constexpr std::chrono::milliseconds kTick{500};
inline constexpr std::chrono::milliseconds kSilence{1000};
// How long a waiting rank says nothing more about it.
inline constexpr std::chrono::seconds kWaitingLine{10};

// Watches one connection for silence: says so once, and once when it is over. No verdict: a stopped
// process may go on, and one that died has its connection broken by the kernel.
class SilenceWatch {
 public:
  // `late` is how late this tick of ours is: who has just woken is no judge of others.
  void Check(Connection::Clock::time_point now, Connection::Clock::time_point heard_at,
             Connection::Clock::duration late, const std::string& who);

 private:
  bool silent_ = false;
  Connection::Clock::time_point silent_since_;
};

// Binds the data port at `address` and gives the endpoint for the peers: what was bound, with the
// advertised address in its place where there is one.
Result<std::string> BindAndAdvertise(const LocalInfo& info, const BindData& bind_data,
                                     const std::string& address);

Claim ClaimOf(const Launch& launch, const LocalInfo& info, const std::string& endpoint);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_ROLE_H_
