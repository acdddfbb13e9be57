// Transpose AllReduce: who serves whom in which order. Shard k is owned by rank k; in the scatter
// stage each rank sends its part of shard k to k, in the broadcast stage k sends the result to all.
//
// Place p of every rank's serving order names peers that are p+1 ranks further, so that at equal
// speed no two ranks serve the same one at a time, and the contributions to a shard come in the
// order in which its owner adds them.
//
// Pure functions of their arguments. They give an order, never a barrier: what is sent when is for
// credit to say. Nothing here depends on weights; a shard of no elements just makes no packets.
#ifndef OPTIREDUCE_COLLECTIVES_TAR_SCHEDULE_H_
#define OPTIREDUCE_COLLECTIVES_TAR_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "lib/ids.h"

namespace optireduce::tar {

// The peers of `rank` in the order in which it serves them, in both stages: rank+1, …
std::vector<Rank> ServeOrder(std::uint32_t ranks, Rank rank);

// All ranks in the order in which `owner` adds their contributions to its shard: owner, owner-1, …
// The bits of a sum are a function of this order alone.
std::vector<Rank> SumOrder(std::uint32_t ranks, Rank owner);

// Where `to` is in the serving order of `from`; and, one further, where `from` is in the summing
// order of `to`. The two differ.
std::uint32_t ServePlace(std::uint32_t ranks, Rank from, Rank to);

// The order cut into rounds in which no rank has more than `incast` senders, nor more than `incast`
// receivers. Incast is from 1 to ranks-1, and 1 for a rank that is alone and has no round.
std::uint32_t Rounds(std::uint32_t ranks, std::uint32_t incast);

struct Places {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// The places of the serving order that a round takes; the same for all ranks and both stages.
Places PlacesOfRound(std::uint32_t ranks, std::uint32_t incast, std::uint32_t round);

}  // namespace optireduce::tar

#endif  // OPTIREDUCE_COLLECTIVES_TAR_SCHEDULE_H_
