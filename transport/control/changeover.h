// Changeovers: how all ranks come to use one value that only some rank can measure, from one op on.
//
// Whoever measured it proposes. Rank 0 asks all ranks to prepare; each opens no further op from
// then on, and answers with the newest op that is open at it. When all have answered, rank 0
// decides that the value holds from the op on that follows the newest of all: no rank has opened
// it, so no op is cut in two ways. A rank goes on when it hears that. Where somebody does not
// answer in time, the decision is that all stays as it is, and rank 0 asks again later.
//
// Changeover is rank 0's part: pure, no clock and no connection; one thread.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_CHANGEOVER_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_CHANGEOVER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/ids.h"

namespace optireduce::control {

// What is agreed on: packets of at most so many bytes. It only falls. Below this they would hold
// little but headers.
inline constexpr std::uint32_t kPacketBytesLeast = 128;
struct Change {
  std::uint32_t packet_bytes = 0;
};
// Rank 0 to all: open no further op, and say which is your newest.
struct Prepare {
  std::uint32_t id = 0;
  Change change;
};
struct Ready {
  std::uint32_t id = 0;
  OpNumber newest = 0;
};
// Rank 0 to all: go on, from op `first` on with the change; or, where not `commit`, without it.
struct Decision {
  std::uint32_t id = 0;
  bool commit = false;
  OpNumber first = 0;
};

class Changeover {
 public:
  explicit Changeover(std::uint32_t ranks) : answers_(ranks) {}

  // Some rank's measurement. What changes nothing is forgotten.
  void Propose(const Change& change);
  // What to send to all ranks now, if something is wanted and nothing is under way.
  std::optional<Prepare> Begin();
  bool under_way() const { return under_way_; }
  std::uint32_t id() const { return id_; }  // of the last one that began

  // Each gives the decision to send to all ranks when that was the last answer that was missing.
  std::optional<Decision> OnReady(Rank rank, const Ready& ready);
  // This rank has left or is lost, and is asked nothing any more.
  std::optional<Decision> OnGone(Rank rank);
  // Not all have answered in time. What was wanted still is.
  std::optional<Decision> GiveUp();
  // Whom the answer is missing of.
  std::vector<Rank> Missing() const;

 private:
  struct Answer {
    bool gone = false;
    bool in = false;
    OpNumber newest = 0;
  };
  std::optional<Decision> DecideWhenAllAreIn();

  std::vector<Answer> answers_;  // by rank
  std::uint32_t id_ = 0;
  bool under_way_ = false;
  std::uint32_t wanted_ = 0;   // packet bytes; 0: nothing
  std::uint32_t asked_ = 0;    // by the changeover that is under way
  std::uint32_t settled_ = ~std::uint32_t{0};
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_CHANGEOVER_H_
