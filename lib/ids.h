// The numbers that name things on the wire and inside.
#ifndef OPTIREDUCE_LIB_IDS_H_
#define OPTIREDUCE_LIB_IDS_H_

#include <cstdint>

namespace optireduce {

// A process's place in its group, 0 … ranks-1.
using Rank = std::uint32_t;
inline constexpr Rank kNoRank = ~Rank{0};
inline constexpr Rank kRanksMax = 1024;

// Counts the ops of a group; the first op has number 1 past the group's first number. 64 bits
// inside and under the tag, 32 on the wire (lib/serial.h).
using OpNumber = std::uint64_t;

// Counts the packets of an ordered pair of ranks; new for every repeat. 64 bits inside, 32 on the
// wire.
using PacketNumber = std::uint64_t;

// A position in the grid of cells of one shard.
using CellIndex = std::uint32_t;

enum class Stage : std::uint8_t { kScatter = 0, kBroadcast = 1 };

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_IDS_H_
