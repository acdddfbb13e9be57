// Serial numbers that are 64 bits inside and fewer on the wire: widening by nearness.
#ifndef OPTIREDUCE_LIB_SERIAL_H_
#define OPTIREDUCE_LIB_SERIAL_H_

#include <cstdint>

namespace optireduce {

// The 64-bit number nearest to `reference` whose low 32 bits are `low` (never below 0).
constexpr std::uint64_t Widen(std::uint32_t low, std::uint64_t reference) {
  const auto delta = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(reference));
  if (delta < 0 && reference < static_cast<std::uint64_t>(-static_cast<std::int64_t>(delta))) {
    return low;
  }
  return reference + static_cast<std::uint64_t>(static_cast<std::int64_t>(delta));
}

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_SERIAL_H_
