// What a communicator tells people about itself: its state as text, a line per op, and the file
// that it leaves behind when it fails. Free functions: any thread.
#ifndef OPTIREDUCE_COLLECTIVES_STATE_H_
#define OPTIREDUCE_COLLECTIVES_STATE_H_

#include <string>
#include <string_view>

#include "collectives/call.h"
#include "lib/ids.h"
#include "optireduce/communicator.h"
#include "optireduce/status.h"
#include "optireduce/time.h"
#include "transport/ubt/group.h"

namespace optireduce {

PeerStats PeerStatsOf(const ubt::Link& link, const std::string& address, Instant now);

// Which ops are open and what the oldest waits for, in one line.
std::string OpsText(const ubt::Group& group);

// A few lines: `who`, the ops, each peer, and the counters that are not 0.
std::string StateText(std::string_view who, std::string_view ops, const Stats& stats);

// "op: sum of float32, 1000 elements, exact: agreed in 1.234 ms", and what was left out.
std::string CallText(const Call& call);

// "PATH.r3": the ranks of one host must not write over each other.
std::string RankPath(const std::string& path, Rank rank);

// Writes `text` to the end of the file, or in its place.
Status WriteText(const std::string& path, std::string_view text, bool append);

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_STATE_H_
