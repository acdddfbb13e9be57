// The control plane of one group: finds the ranks, compares what must be equal, and from then on
// tells who is lost, who left, and who aborted. One TCP port at rank 0, the master, which relays;
// the connections stay open for the group's life.
//
// Threads: each ControlPlane has one thread of its own, on which `bind_data` and the event handler
// are called. All members may be called from any thread; SetEventHandler, Leave and the destructor
// wait for that thread and so must not be called from the handler. Nothing is process-global.
//
// A rank is lost when its connection breaks, which a killed process's does at once. A process that
// is silent is only warned of: whether to go on without it is not decided here.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_CONTROL_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_CONTROL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/ids.h"
#include "lib/settings.h"
#include "optireduce/status.h"
#include "optireduce/time.h"
#include "transport/control/frame.h"
#include "transport/control/guest_counts.h"
#include "transport/control/launch.h"
#include "transport/wire/keys.h"

namespace optireduce::control {

struct LocalInfo {
  std::string version;
  std::string wire_config_text;  // "path=value" lines of the options all ranks must share
  std::uint64_t wire_config_hash = 0;
  std::string host;
  std::string job_key_file;       // empty: the master draws a key and hands it out
  std::string bind_address;       // numeric or an interface's name; empty: towards the master
  std::string advertise_address;  // numeric; what peers are told instead of what was bound
  AddressFamily family = AddressFamily::kAny;
};

struct Membership {
  std::vector<Member> members;  // by rank
  wire::JobKey job_key;
  std::uint32_t group_id = 0;
};

struct Event {
  enum class Kind : std::uint8_t {
    kPeerLost,  // the connection of `rank` broke; `status` is kPeerLost and says how
    kPeerLeft,  // `rank` said bye; nothing is wrong
    kAborted,   // `rank` aborted the group, `status` is its cause; at most one per group
    kPrepare,   // a changeover begins: to be answered with Answer()
    kDecided,   // and ends
  };
  Kind kind = Kind::kPeerLost;
  Rank rank = 0;
  Status status;
  Prepare prepare;    // of kPrepare
  Decision decision;  // of kDecided
};

// Binds the datagram port at this local address; gives the endpoint, "ip:port".
using BindData = std::function<Result<std::string>(const std::string& address)>;

class ControlPlane {
 public:
  // Blocks until every rank is in, at most `limit`. Fails with the ranks that are missing, or, on
  // every rank, with those that disagree about version, world size or configuration. `bind_data`
  // is called once, as soon as the local address is known; with world size 1, which needs no
  // socket, it is not called. Owns launch.listen_fd from here on.
  static Result<std::unique_ptr<ControlPlane>> Join(const Launch& launch, const LocalInfo& info,
                                                    Duration limit, BindData bind_data);
  // Without Leave() before it, this rank counts as lost.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  const Membership& membership() const;
  const GuestCounts& guests() const;

  // Events that came before are delivered before this returns. Events come in one order; there is
  // one kPeerLost or kPeerLeft per rank, one kAborted in all, and changeovers one after another.
  // After the return the handler before this one is not called any more.
  void SetEventHandler(std::function<void(const Event&)> handler);

  // Gives `own`, at most kShareBytesMax bytes, to all ranks and takes what they give: `on_all` is
  // called once, on the control thread, with all of it by rank, or with who is gone. One at a
  // time, and the same number of times on every rank. Leave() ends it.
  void Exchange(Bytes own, std::function<void(Result<std::vector<Bytes>>)> on_all);

  // Asks for a change of all ranks (transport/control/changeover.h), which come to hear of it as
  // kPrepare. Where it does not come about it is tried again, by rank 0.
  void Propose(const Change& change);
  // The answer to kPrepare. From the handler or later.
  void Answer(const Ready& ready);

  // The first cause of all ranks reaches every rank, this one included, as kAborted. An ok cause
  // counts as kAborted.
  void Abort(const Status& cause);

  // Says bye. The master goes on relaying until the others have left too, for at most `at_most`;
  // the others wait only until their bye has arrived. No events come after it. Events that would
  // go through the master are lost for the others after it has left.
  void Leave(Duration at_most);

 private:
  class Impl;
  explicit ControlPlane(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_CONTROL_H_
