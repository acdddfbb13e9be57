// Before the first op: asks every path for the packet size it carries, and agrees with the other
// ranks on one that all of them do. A pair that cannot reach each other is named on every rank.
//
// Threads: the one that makes the communicator, before the engine has the port.
#ifndef OPTIREDUCE_COLLECTIVES_PATH_PROBE_H_
#define OPTIREDUCE_COLLECTIVES_PATH_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/counters.h"
#include "lib/ids.h"
#include "lib/settings.h"
#include "optireduce/status.h"
#include "transport/control/control.h"
#include "transport/ports.h"

namespace optireduce {

// What one rank found, as it tells the others.
struct PathReport {
  std::uint32_t smallest = 0;  // packet bytes, of the paths that carry anything
  Rank smallest_peer = 0;
  std::uint32_t largest = 0;
  std::uint32_t silent_peers = 0;
  Rank silent_peer = 0;  // the first of them
};

std::vector<std::byte> Serialize(const PathReport& report);
// Fails unless it is a report that a rank of a group of this size can make.
Result<PathReport> ParsePathReport(std::span<const std::byte> bytes, std::uint32_t ranks);

struct PathAgreement {
  std::uint32_t packet_bytes = 0;  // passes everywhere
  std::string odd;                 // who keeps it from being larger; empty where all are equal
};
// The same on every rank, from all reports by rank. `rank_names` is for messages.
Result<PathAgreement> AgreeOnPaths(std::span<const PathReport> reports,
                                   std::span<const std::string> rank_names);

struct PathProbeParts {
  const control::Membership* membership = nullptr;
  Rank rank = 0;
  std::span<const std::string> rank_names;
  TagMode tag = TagMode::kHeader;
  Counters* counters = nullptr;
};
// Probes, agrees, and sets the port's packet size. Takes a round trip and an exchange over the
// control plane where nothing is wrong, and some ten seconds at most.
Result<PathAgreement> ProbePaths(const PathProbeParts& parts, BoundPort& port,
                                 control::ControlPlane& control);

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_PATH_PROBE_H_
