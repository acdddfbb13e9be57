// CRC-32C (Castagnoli), as iSCSI has it: the check that guards payloads against corruption.
//
// A free function without state: any thread. It is no protection against an attacker.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_CRC32C_H_
#define OPTIREDUCE_TRANSPORT_WIRE_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace optireduce::wire {

// The CRC of `bytes` behind those whose CRC is `before`; 0 is the CRC of nothing.
std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_CRC32C_H_
