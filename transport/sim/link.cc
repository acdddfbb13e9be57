#include "transport/sim/link.h"

#include <algorithm>

#include "lib/check.h"

namespace optireduce::sim {
namespace {

constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;
// Keeps bits × kNanosPerSecond, and the fraction added to it, within 64 bits.
constexpr std::uint64_t kWireBytesMax = 1 << 20;
constexpr std::uint64_t kRateMax = 1'000'000'000'000'000;

}  // namespace

void Link::set_config(const LinkConfig& config) {
  config_ = config;
  fraction_ = 0;  // it was in units of the old rate
}

std::uint64_t Link::QueuedBytes(Instant now) {
  while (!queue_.empty() && queue_.front().at <= now) {
    queued_bytes_ -= queue_.front().wire_bytes;
    queue_.pop_front();
  }
  return queued_bytes_;
}

bool Link::Fits(Instant now, std::uint64_t wire_bytes) {
  const std::uint64_t queued = QueuedBytes(now);
  return queued == 0 || queued + wire_bytes <= config_.queue_bytes_max;
}

Instant Link::RoomAt(Instant now, std::uint64_t wire_bytes) {
  if (Fits(now, wire_bytes)) return now;
  std::uint64_t queued = queued_bytes_;
  for (const Departure& departure : queue_) {
    queued -= departure.wire_bytes;
    if (queued == 0 || queued + wire_bytes <= config_.queue_bytes_max) return departure.at;
  }
  return now;
}

Instant Link::Transmit(Instant now, std::uint64_t wire_bytes) {
  OR_CHECK(wire_bytes <= kWireBytesMax && config_.rate_bits_per_s <= kRateMax);
  if (now > free_at_) {
    free_at_ = now;
    fraction_ = 0;
  }
  if (config_.rate_bits_per_s != 0) {
    const std::uint64_t work = wire_bytes * 8 * kNanosPerSecond + fraction_;
    free_at_ += Duration{static_cast<std::int64_t>(work / config_.rate_bits_per_s)};
    fraction_ = work % config_.rate_bits_per_s;
  }
  const Instant departure = free_at_ + Duration{fraction_ > 0 ? 1 : 0};
  if (departure > now) {
    queue_.push_back(Departure{departure, wire_bytes});
    queued_bytes_ += wire_bytes;
  }
  return departure;
}

Instant Link::Arrival(Instant departure, Duration jitter) {
  last_arrival_ = std::max(last_arrival_, departure + config_.propagation + jitter);
  return last_arrival_;
}

}  // namespace optireduce::sim
