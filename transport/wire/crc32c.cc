#include "transport/wire/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace optireduce::wire {

std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  // The library takes an int length, a pointer that it only reads through, and leaves the
  // inversions before and after to us.
  constexpr std::size_t kPieceBytesMax = std::size_t{1} << 30;
  std::uint32_t state = ~before;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytesMax));
    auto* const data =
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

}  // namespace optireduce::wire
