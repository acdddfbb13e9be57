#include "transport/ubt/pieces.h"

#include <algorithm>
#include <cstring>

#include "lib/check.h"
#include "transport/wire/message.h"

namespace optireduce::ubt {

std::uint32_t PieceCount(std::size_t cell_bytes) {
  const std::size_t each = wire::PieceBytes(cell_bytes);
  return static_cast<std::uint32_t>((cell_bytes + each - 1) / each);
}

PieceRange PieceAt(std::uint32_t index, std::size_t cell_bytes) {
  const std::size_t each = wire::PieceBytes(cell_bytes);
  const std::size_t first = index * each;
  return first < cell_bytes ? PieceRange{first, std::min(each, cell_bytes - first)} : PieceRange{};
}

std::span<const std::byte> Pieces::Add(const PieceOf& of, std::uint32_t index,
                                       std::size_t cell_bytes, std::span<const std::byte> piece) {
  const PieceRange range = PieceAt(index, cell_bytes);
  OR_CHECK(cell_bytes <= cell_bytes_max_ && range.bytes > 0 && piece.size() == range.bytes);
  if (entries_.empty()) {
    entries_.resize(kCells);
    memory_.resize(kCells * cell_bytes_max_);
  }
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& e) { return e.in != 0 && e.of == of; });
  if (entry == entries_.end()) {
    entry = std::find_if(entries_.begin(), entries_.end(),
                         [](const Entry& e) { return e.in == 0; });
  }
  if (entry == entries_.end()) {
    entry = entries_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ = (next_ + 1) % kCells;
    entry->in = 0;
  }
  entry->of = of;
  entry->in |= 1U << index;
  std::byte* const cell =
      memory_.data() + static_cast<std::size_t>(entry - entries_.begin()) * cell_bytes_max_;
  std::memcpy(cell + range.first, piece.data(), piece.size());
  if (entry->in != (1U << PieceCount(cell_bytes)) - 1) return {};
  entry->in = 0;
  return {cell, cell_bytes};
}

}  // namespace optireduce::ubt
