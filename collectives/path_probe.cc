#include "collectives/path_probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "collectives/driver.h"
#include "transport/ubt/group.h"
#include "transport/ubt/pair_probe.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/keys.h"
#include "transport/wire/parse.h"
#include "transport/wire/seal.h"
#include "transport/wire/serialize.h"

namespace optireduce {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// All ranks are there: whoever has not answered by then cannot be reached.
constexpr Duration kProbeLimit = seconds(10);
// And then for what the others found, which may take them as long.
constexpr Duration kExchangeLimit = seconds(15);
constexpr Duration kSleepMax = milliseconds(50);
constexpr std::size_t kReportBytes = 5 * 4;
constexpr std::uint16_t kFirstEpoch = ubt::GroupSettings{}.epoch;

// What a probe is filled with; no port reads it after the program's end.
constexpr std::size_t kFillingBytesMax = 64 * 1024;
const std::array<std::byte, kFillingBytesMax> kFilling{};

// What all ranks found; outlives whoever waits for it.
struct Found {
  std::optional<Result<std::vector<control::Bytes>>> all;
  std::atomic<bool> there{false};
};

class Prober {
 public:
  Prober(const PathProbeParts& parts, BoundPort& bound)
      : parts_(parts),
        port_(bound.port()),
        ranks_(static_cast<std::uint32_t>(parts.membership->members.size())),
        probe_(parts.rank, ranks_, bound.probe_bytes()) {
    const wire::GroupKey key = wire::DeriveGroupKey(
        parts.membership->job_key, parts.membership->group_id, wire::kProbeEpoch);
    for (Rank peer = 0; peer < ranks_; ++peer) {
      for (const bool outgoing : {true, false}) {
        (outgoing ? seal_ : verify_)
            .emplace_back(wire::DerivePairKey(key, outgoing ? parts.rank : peer,
                                              outgoing ? peer : parts.rank),
                          wire::DeriveCookie(key), parts.tag, /*check=*/true);
      }
    }
    numbers_.assign(ranks_, 0);
  }

  bool Done() const { return probe_.Done(); }

  // Reads and sends what there is; sleeps until there may be more, at most until `limit`.
  void Turn(Instant limit) {
    Instant now = MonotonicNow();
    TakeAll(now);
    ubt::PairProbe::Order order;
    while (probe_.Next(now, &order)) Send(order);
    port_.Flush(now);
    now = MonotonicNow();
    const Instant wake = std::min(probe_.NextWake(), limit);
    port_.Wait(std::clamp<Duration>(wake - std::min(now, wake), Duration{0}, kSleepMax));
  }

  // Until nothing is queued any more, for a moment.
  bool Finish() {
    const Instant until = MonotonicNow() + seconds(1);
    for (Instant now = MonotonicNow(); !port_.Flush(now); now = MonotonicNow()) {
      if (now >= until) return false;
      port_.Wait(milliseconds(1));
    }
    TakeAll(MonotonicNow());
    return true;
  }

  PathReport Report() const {
    PathReport report;
    report.smallest = ~std::uint32_t{0};
    for (Rank peer = 0; peer < ranks_; ++peer) {
      if (peer == parts_.rank) continue;
      const std::uint32_t bytes = probe_.passed_bytes(peer);
      if (bytes == 0) {
        if (report.silent_peers++ == 0) report.silent_peer = peer;
        continue;
      }
      report.largest = std::max(report.largest, bytes);
      if (bytes < report.smallest) {
        report.smallest = bytes;
        report.smallest_peer = peer;
      }
    }
    if (report.largest == 0) report.smallest = 0;
    return report;
  }

 private:
  void TakeAll(Instant now) {
    for (int bursts = 0; bursts < 64; ++bursts) {
      const std::span<const RxPacket> packets = port_.Receive(now);
      if (packets.empty()) return;
      for (const RxPacket& packet : packets) {
        parts_.counters->Add(Take(packet.bytes, now));
        parts_.counters->Add(Counter::kPacketsReceived);
        parts_.counters->Add(Counter::kBytesReceived, packet.bytes.size());
      }
    }
  }

  Counter Take(std::span<const std::byte> packet, Instant now) {
    wire::Header header;
    if (wire::ParseHeader(packet, &header) != wire::ParseResult::kOk) return Counter::kMalformed;
    if (header.group != parts_.membership->group_id) return Counter::kForeignGroup;
    if (header.epoch != wire::kProbeEpoch) {
      // A peer knows already what we are about to hear, and begins; it will repeat that.
      return header.epoch == kFirstEpoch ? Counter::kEarlyNoRoom : Counter::kStaleEpoch;
    }
    if (header.sender >= ranks_ || header.sender == parts_.rank) return Counter::kUnknownSender;
    if (!verify_[header.sender].Verify(packet, 0, header.number_low)) return Counter::kBadTag;
    if (header.type != wire::MessageType::kProbe) return Counter::kUnexpected;
    const bool answer = (header.flags & wire::kFlagAnswer) != 0;
    wire::Probe probe;
    if (wire::ParseProbe(packet.subspan(wire::kHeaderBytes), answer, &probe) !=
        wire::ParseResult::kOk) {
      return Counter::kMalformed;
    }
    probe_.OnProbe(header.sender, answer, probe, now);
    return Counter::kAccepted;
  }

  // A full port loses it, as a network may.
  void Send(const ubt::PairProbe::Order& order) {
    std::array<std::byte, wire::kHeaderBytes + wire::kProbeFixedBytes> packet;
    wire::Header header;
    header.type = wire::MessageType::kProbe;
    header.flags = order.answer ? wire::kFlagAnswer : 0;
    header.sender = static_cast<std::uint16_t>(parts_.rank);
    header.group = parts_.membership->group_id;
    header.epoch = wire::kProbeEpoch;
    header.number_low = ++numbers_[order.peer];
    const std::span<std::byte> whole(packet);
    const auto head = whole.first<wire::kHeaderBytes>();
    const std::span<std::byte> body = whole.subspan(wire::kHeaderBytes);
    wire::WriteHeader(header, head);
    wire::WriteProbe(order.probe, body);
    const std::span<const std::byte> filling =
        std::span(kFilling).first(order.answer ? 0 : order.probe.packet_bytes - packet.size());
    seal_[order.peer].Seal(head, body, filling, 0, header.number_low);
    const TxSegment segment{packet, filling};
    if (!port_.Send(order.peer, {&segment, 1})) {
      port_.Flush(MonotonicNow());
      if (!port_.Send(order.peer, {&segment, 1})) return;
    }
    parts_.counters->Add(Counter::kProbesSent);
    parts_.counters->Add(Counter::kPacketsSent);
    parts_.counters->Add(Counter::kBytesSent, segment.bytes());
  }

  const PathProbeParts& parts_;
  PacketPort& port_;
  const std::uint32_t ranks_;
  ubt::PairProbe probe_;
  std::vector<wire::Sealer> seal_;    // by peer
  std::vector<wire::Sealer> verify_;  // by peer
  std::vector<std::uint32_t> numbers_;
};

Result<std::vector<PathReport>> ParseAll(std::span<const control::Bytes> all) {
  std::vector<PathReport> reports;
  for (Rank rank = 0; rank < all.size(); ++rank) {
    const Result<PathReport> report =
        ParsePathReport(all[rank], static_cast<std::uint32_t>(all.size()));
    if (!report.ok()) return report.status().Context("rank " + std::to_string(rank));
    reports.push_back(*report);
  }
  return reports;
}

}  // namespace

std::vector<std::byte> Serialize(const PathReport& report) {
  std::vector<std::byte> out(kReportBytes);
  std::size_t at = 0;
  for (const std::uint32_t value : {report.smallest, report.smallest_peer, report.largest,
                                    report.silent_peers, report.silent_peer}) {
    wire::StoreBig(value, out.data() + at);
    at += sizeof value;
  }
  return out;
}

Result<PathReport> ParsePathReport(std::span<const std::byte> bytes, std::uint32_t ranks) {
  PathReport report;
  if (bytes.size() == kReportBytes) {
    std::size_t at = 0;
    for (std::uint32_t* const value : {&report.smallest, &report.smallest_peer, &report.largest,
                                       &report.silent_peers, &report.silent_peer}) {
      *value = wire::LoadBig<std::uint32_t>(bytes.data() + at);
      at += sizeof *value;
    }
    const bool fits = report.smallest <= report.largest &&
                      report.largest <= kFillingBytesMax && report.smallest_peer < ranks &&
                      report.silent_peers < ranks && report.silent_peer < ranks &&
                      (report.smallest > wire::kHeaderBytes + wire::kProbeFixedBytes ||
                       report.silent_peers + 1 == ranks);
    if (fits) return report;
  }
  return Status(Code::kMismatch, "what it found about its paths cannot be read");
}

Result<PathAgreement> AgreeOnPaths(std::span<const PathReport> reports,
                                   std::span<const std::string> rank_names) {
  std::uint32_t silent = 0;
  for (const PathReport& report : reports) silent += report.silent_peers;
  for (Rank rank = 0; silent > 0 && rank < reports.size(); ++rank) {
    if (reports[rank].silent_peers == 0) continue;
    return Status(Code::kUnavailable,
                  rank_names[rank] + " gets no answer over UDP from " +
                      rank_names[reports[rank].silent_peer] +
                      (silent > 1 ? ", and " + std::to_string(silent - 1) +
                                        " more of such pairs and directions are silent"
                                  : "") +
                      "; let UDP between these addresses pass, or choose others with net.bind "
                      "and net.advertise");
  }
  PathAgreement agreement;
  agreement.packet_bytes = ~std::uint32_t{0};
  std::uint32_t largest = 0;
  Rank narrowest = 0;
  for (Rank rank = 0; rank < reports.size(); ++rank) {
    largest = std::max(largest, reports[rank].largest);
    if (reports[rank].smallest < agreement.packet_bytes) {
      agreement.packet_bytes = reports[rank].smallest;
      narrowest = rank;
    }
  }
  if (agreement.packet_bytes == largest) return agreement;
  // A rank that sends nothing larger to anybody is the odd one itself; else it is one path.
  for (Rank rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank].largest == agreement.packet_bytes) {
      agreement.odd = rank_names[rank];
      return agreement;
    }
  }
  agreement.odd = "the path from " + rank_names[narrowest] + " to " +
                  rank_names[reports[narrowest].smallest_peer];
  return agreement;
}

Result<PathAgreement> ProbePaths(const PathProbeParts& parts, BoundPort& port,
                                 control::ControlPlane& control) {
  Prober prober(parts, port);
  const Instant begin = MonotonicNow();
  while (!prober.Done() && MonotonicNow() < begin + kProbeLimit) prober.Turn(begin + kProbeLimit);

  // Whoever is not done yet still needs our answers.
  const auto found = std::make_shared<Found>();
  control.Exchange(Serialize(prober.Report()),
                   [found, &io = port.port()](Result<std::vector<control::Bytes>> all) {
                     found->all = std::move(all);
                     found->there.store(true, std::memory_order_release);
                     io.Wake();
                   });
  const Instant limit = MonotonicNow() + kExchangeLimit;
  while (!found->there.load(std::memory_order_acquire)) {
    if (MonotonicNow() >= limit) {
      return Status(Code::kTimeout, "not all ranks told within " +
                                        std::to_string(kExchangeLimit / seconds(1)) +
                                        " s what their paths carry");
    }
    prober.Turn(limit);
  }
  if (!found->all->ok()) return found->all->status();
  if (!prober.Finish()) return Status(Code::kUnavailable, "the network takes no packets");
  const Result<std::vector<PathReport>> reports = ParseAll(**found->all);
  if (!reports.ok()) return reports.status();
  Result<PathAgreement> agreement = AgreeOnPaths(*reports, parts.rank_names);
  if (agreement.ok()) port.SetPacketBytes(agreement->packet_bytes);
  return agreement;
}

}  // namespace optireduce
