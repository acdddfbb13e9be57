#include "transport/sim/trace.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace optireduce::sim {
namespace {

// The finaliser of SplitMix64: a bijection in which every input bit moves every output bit.
constexpr std::uint64_t Scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

constexpr std::uint64_t Fold(std::uint64_t hash, std::uint64_t value) {
  return Scramble(hash + 0x9e3779b97f4a7c15ull + value);
}

}  // namespace

std::string_view Name(TraceKind kind) {
  switch (kind) {
    case TraceKind::kSend:
      return "send";
    case TraceKind::kDuplicate:
      return "duplicate";
    case TraceKind::kCorrupt:
      return "corrupt";
    case TraceKind::kDelay:
      return "delay";
    case TraceKind::kDeliver:
      return "deliver";
    case TraceKind::kDrop:
      return "drop";
    case TraceKind::kPause:
      return "pause";
    case TraceKind::kResume:
      return "resume";
    case TraceKind::kDown:
      return "down";
    case TraceKind::kUp:
      return "up";
    case TraceKind::kHeal:
      return "heal";
  }
  return "?";
}

std::string_view Name(DropReason reason) {
  switch (reason) {
    case DropReason::kLoss:
      return "loss";
    case DropReason::kBurstLoss:
      return "burst loss";
    case DropReason::kUplinkQueue:
      return "uplink queue";
    case DropReason::kPortQueue:
      return "port queue";
    case DropReason::kReceiveQueue:
      return "receive queue";
    case DropReason::kPartition:
      return "partition";
    case DropReason::kNodeDown:
      return "node down";
    case DropReason::kChecksum:
      return "checksum";
    case DropReason::kSendRefused:
      return "send refused";
    case DropReason::kTooLarge:
      return "too large";
  }
  return "?";
}

std::string ToString(const TraceRecord& record) {
  char line[128];
  const std::int64_t ns = Nanos(record.at);
  const std::string kind{Name(record.kind)};
  int size = std::snprintf(line, sizeof line, "%7lld.%03lld us  ",
                           static_cast<long long>(ns / 1000), static_cast<long long>(ns % 1000));
  std::string text(line, static_cast<std::size_t>(std::max(size, 0)));
  if (record.kind == TraceKind::kHeal) return text + kind;
  if (record.packet == 0) return text + "node " + std::to_string(record.from) + " " + kind;
  size = std::snprintf(line, sizeof line, "%u>%u  #%llu %s %zu B", record.from, record.to,
                       static_cast<unsigned long long>(record.packet), kind.c_str(),
                       record.bytes.size());
  text.append(line, static_cast<std::size_t>(std::max(size, 0)));
  if (record.kind == TraceKind::kDrop) text += " (" + std::string{Name(record.reason)} + ")";
  return text;
}

std::uint64_t ContentHash(std::span<const std::byte> bytes) {
  // Four lanes, so that the multiplications of a packet overlap.
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  std::size_t offset = 0;
  for (; offset + sizeof lanes <= bytes.size(); offset += sizeof lanes) {
    std::uint64_t words[4];
    std::memcpy(words, bytes.data() + offset, sizeof words);
    for (int i = 0; i < 4; ++i) {
      lanes[i] = ((lanes[i] ^ words[i]) * 0x9fb21c651e98df25ull);
      lanes[i] ^= lanes[i] >> 29;
    }
  }
  std::uint64_t hash = bytes.size();
  for (const std::uint64_t lane : lanes) hash = Fold(hash, lane);
  for (; offset < bytes.size(); offset += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, std::min(sizeof word, bytes.size() - offset));
    hash = Fold(hash, word);
  }
  return hash;
}

void TraceHash::Add(const TraceRecord& record) {
  std::uint64_t hash = Fold(value_, static_cast<std::uint64_t>(Nanos(record.at)));
  hash = Fold(hash, static_cast<std::uint64_t>(record.kind) << 8 |
                        static_cast<std::uint64_t>(record.reason));
  hash = Fold(hash, static_cast<std::uint64_t>(record.from) << 32 | record.to);
  hash = Fold(hash, record.bytes.size());
  value_ = Fold(hash, record.content_hash);
}

}  // namespace optireduce::sim
