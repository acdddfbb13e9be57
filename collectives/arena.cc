#include "collectives/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "lib/check.h"

namespace optireduce {
namespace {

constexpr std::size_t kAlign = 64;

constexpr std::size_t RoundUp(std::size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

}  // namespace

Reservation::Reservation(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  OR_CHECK(at != MAP_FAILED);
  data_ = static_cast<std::byte*>(at);
}

Reservation::~Reservation() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

ShardRing::ShardRing(std::size_t bytes, std::size_t pieces_max)
    : memory_(bytes), pieces_(pieces_max) {}

std::byte* ShardRing::Take(std::size_t bytes) {
  if (pieces_.full()) return nullptr;
  const std::size_t need = std::max(RoundUp(bytes), kAlign);
  std::size_t begin = 0;
  std::size_t end = memory_.size();  // of the free stretch that is tried
  if (!pieces_.empty()) {
    const std::size_t oldest = pieces_.Front().begin;
    const bool wrapped = pieces_.Back().begin < oldest;
    begin = pieces_.Back().end;
    if (wrapped) {
      end = oldest;
    } else if (memory_.size() - begin < need) {
      begin = 0;
      end = oldest;
    }
  }
  if (end - begin < need) return nullptr;
  OR_CHECK(pieces_.Push({begin, begin + need}));
  return memory_.data() + begin;
}

void ShardRing::GiveBackOldest() { pieces_.Pop(); }

CellPool::CellPool(std::size_t bytes, std::size_t cell_bytes)
    : stride_(RoundUp(cell_bytes)),
      memory_(bytes / stride_ * stride_),
      capacity_(bytes / stride_),
      lengths_(capacity_) {
  free_.reserve(capacity_);
}

CellPool::Id CellPool::Take(std::span<const std::byte> payload) {
  OR_CHECK(payload.size() <= stride_);
  Id id = kNone;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else if (touched_ < capacity_) {
    id = static_cast<Id>(touched_++);
  } else {
    return kNone;
  }
  std::memcpy(memory_.data() + std::size_t{id} * stride_, payload.data(), payload.size());
  lengths_[id] = static_cast<std::uint32_t>(payload.size());
  return id;
}

}  // namespace optireduce
