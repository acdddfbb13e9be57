#include "transport/ubt/link.h"

#include <algorithm>
#include <bit>

#include "lib/check.h"

namespace optireduce::ubt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kRepairTimeStart = milliseconds(10);
constexpr Duration kRepairTimeMin = microseconds(500);
constexpr Duration kRepairTimeMax = milliseconds(200);
constexpr Duration kHoldMax{0xffffffff};  // saturated: how long is not known
constexpr Duration kIdle = std::chrono::seconds(1);
constexpr Duration kReorderGuardStart = microseconds(50);
constexpr Duration kReorderGuardMax = milliseconds(20);

std::size_t RecordsFor(std::uint32_t credit_max) {
  return std::bit_ceil(std::clamp<std::size_t>(std::size_t{16} * credit_max, 128, 4096));
}

}  // namespace

Duration BackedOff(Duration base, std::uint32_t tries) {
  const Duration most = std::max(base, std::clamp<Duration>(8 * base, milliseconds(4),
                                                            milliseconds(100)));
  return std::min(base * (1 << std::min(tries, 7U)), most);
}

void RoundTrip::Sample(Duration rtt) {
  if (!measured_) {
    measured_ = true;
    smoothed_ = rtt;
    variation_ = rtt / 2;
    return;
  }
  const Duration off = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
  variation_ += (off - variation_) / 4;
  smoothed_ += (rtt - smoothed_) / 8;
}

Duration RoundTrip::repair_time() const {
  if (!measured_) return kRepairTimeStart;
  return std::clamp<Duration>(smoothed_ + 4 * variation_ + kRepairTimeMin / 2, kRepairTimeMin,
                              kRepairTimeMax);
}

TxWindow::TxWindow(const LinkSettings& settings)
    : records_(RecordsFor(settings.credit_max_packets)),
      next_number_(settings.first_number),
      reported_highest_(settings.first_number - 1),
      credit_(settings.credit_start_packets),
      credit_start_(settings.credit_start_packets) {}

PacketNumber TxWindow::TakeNumber(bool credited, Instant now) {
  if (credited) {
    ++credited_total_;
    last_credited_at_ = now;
  }
  const PacketNumber number = next_number_++;
  Slot(number) = {number, credited_total_, now};
  return number;
}

void TxWindow::NoteIdle(Instant now) {
  if (now - last_credited_at_ > kIdle) credit_ = std::min(credit_, credit_start_);
}

std::uint32_t TxWindow::Room() const {
  const std::uint32_t used = in_flight();
  return used < credit_ ? credit_ - used : 0;
}

Duration TxWindow::OnReport(PacketNumber highest, std::uint32_t credit, Duration hold,
                            Instant now) {
  credit_ = std::min(credit, static_cast<std::uint32_t>(records_.size() / 2));
  if (highest >= next_number_ || highest < reported_highest_) return Duration{-1};
  const bool advanced = highest > reported_highest_;
  reported_highest_ = highest;
  const Record& record = Slot(highest);
  if (record.number != highest) return Duration{-1};
  settled_total_ = std::max(settled_total_, record.credited_total);
  if (!advanced || hold >= kHoldMax) return Duration{-1};
  return std::max(now - record.sent_at - hold, Duration{0});
}

bool TxWindow::SentBefore(PacketNumber number, Instant instant) const {
  const Record& record = Slot(number);
  return record.number != number || record.sent_at <= instant;
}

Instant TxWindow::AskedAt(PacketNumber highest, Duration hold, Instant now) const {
  const Record& record = Slot(highest);
  if (record.number != highest || hold >= kHoldMax) return now;
  return std::min(now, record.sent_at + hold);
}

RxWindow::RxWindow(const LinkSettings& settings)
    : seen_(kWindow / 64),
      before_first_(settings.first_number - 1),
      highest_(settings.first_number - 1),
      asked_to_(settings.first_number - 1),
      reorder_guard_(kReorderGuardStart) {}

bool RxWindow::Seen(PacketNumber number) const {
  return (seen_[number % kWindow / 64] >> (number % 64) & 1) != 0;
}

void RxWindow::Mark(PacketNumber number, bool seen) {
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  std::uint64_t& word = seen_[number % kWindow / 64];
  word = seen ? word | bit : word & ~bit;
}

bool RxWindow::Accept(PacketNumber number, bool credited, Instant now) {
  if (number + kWindow <= highest_) return false;
  if (number <= highest_) {
    if (Seen(number)) return false;
    Mark(number, true);
    if (number > asked_to_) {
      --holes_;
    } else {
      // Asked for although it was only late: wait that much longer the next time.
      const Duration late = (now - asked_at_) + reorder_guard_;
      reorder_guard_ = std::clamp(late + late / 4, reorder_guard_, kReorderGuardMax);
    }
  } else {
    const PacketNumber jump = number - highest_;
    if (jump > 1 && holes_ == 0) gap_since_ = now;
    holes_ += jump - 1;
    if (jump >= kWindow) {
      std::fill(seen_.begin(), seen_.end(), 0);
    } else {
      for (PacketNumber n = highest_ + 1; n < number; ++n) Mark(n, false);
    }
    Mark(number, true);
    highest_ = number;
    highest_at_ = now;
  }
  ++received_;
  heard_at_ = now;
  if (credited) {
    ++credited_received_;
    credited_at_ = now;
  }
  return true;
}

std::uint32_t RxWindow::HoldNanos(Instant now) const {
  return static_cast<std::uint32_t>(
      std::clamp<Duration::rep>((now - highest_at_).count(), 0, kHoldMax.count()));
}

Instant RxWindow::GapDue() const {
  const Instant gap = holes_ > 0 ? gap_since_ + reorder_guard_ : kNever;
  return std::min(gap, refused_due_);
}

void RxWindow::Asked(Instant now) {
  asked_to_ = highest_;
  asked_at_ = now;
  holes_ = 0;
  refused_due_ = kNever;
  reorder_guard_ = std::max(kReorderGuardStart, reorder_guard_ - reorder_guard_ / 64);
}

}  // namespace optireduce::ubt
