// Reads and checks headers and bodies of messages (wire/message.h): everything that can be checked
// without protocol state.
//
// Free functions without state: any thread. Nothing allocates, nothing outside the given span is
// read, and no input is undefined. A body is refused unless its length is exact, its reserved
// bytes and bits are zero, its enumerators are known and its ranges do not wrap. Whether a range
// lies inside a shard, a peer is known or an op is open is for the caller to check; so are order
// and overlap of ranges. Where a function does not return kOk, the output is unspecified.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_PARSE_H_
#define OPTIREDUCE_TRANSPORT_WIRE_PARSE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/wire/message.h"

namespace optireduce::wire {

enum class ParseResult : std::uint8_t {
  kOk = 0,
  kShort,          // shorter than the fixed part
  kOtherVersion,   // another version of the protocol
  kType,           // no such message
  kFlags,          // a flag that is unknown, or has no meaning in this message
  kLength,         // not the length that the fixed part implies
  kReserved,       // a reserved byte or bit is not zero
  kRange,          // a value or enumerator out of range
};
inline constexpr std::size_t kParseResults = 8;

// `packet` is the whole datagram or segment.
ParseResult ParseHeader(std::span<const std::byte> packet, Header* header);

// `body` is everything behind the header. Views point into it.
ParseResult ParseReport(std::span<const std::byte> body, ReportBlock* report);
ParseResult ParseOpen(std::span<const std::byte> body, Open* open);
ParseResult ParseNack(std::span<const std::byte> body, Nack* nack);
ParseResult ParseNotYet(std::span<const std::byte> body, NotYet* not_yet);
ParseResult ParseSets(std::span<const std::byte> body, std::uint32_t ranks, SetsView* sets);
// Of an answer the body is the fixed part alone; of a probe the packet has the size it tells.
ParseResult ParseProbe(std::span<const std::byte> body, bool answer, Probe* probe);
ParseResult ParseStatement(std::span<const std::byte> body, StatementView* statement);

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_PARSE_H_
