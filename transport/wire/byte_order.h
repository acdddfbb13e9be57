// Unsigned integers in network byte order at any address: byte by byte, so alignment never matters.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_BYTE_ORDER_H_
#define OPTIREDUCE_TRANSPORT_WIRE_BYTE_ORDER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace optireduce::wire {

// Writes sizeof(T) bytes at `out`. Compilers turn the loop into one swapped store.
template <std::unsigned_integral T>
constexpr void StoreBig(T value, std::byte* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
  }
}

// Reads sizeof(T) bytes at `in`.
template <std::unsigned_integral T>
constexpr T LoadBig(const std::byte* in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = (value << 8) | std::to_integer<std::uint64_t>(in[i]);
  }
  return static_cast<T>(value);
}

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_BYTE_ORDER_H_
