#include <algorithm>

#include "collectives/engine.h"
#include "collectives/tar/schedule.h"
#include "lib/check.h"
#include "transport/wire/message.h"

namespace optireduce {
namespace {

// One datagram of 64 KiB holds the packets of a super-packet.
constexpr std::size_t kSuperPacketBytesMax = 65507;
// A report rides as the last, short packet.
constexpr std::size_t kRidingReportBytes = wire::kHeaderBytes + wire::kReportBlockBytes;

}  // namespace

ubt::GroupSettings MakeGroupSettings(const Settings& settings, const PortLimits& limits,
                                     Rank rank, std::uint32_t ranks) {
  OR_CHECK(ranks >= 2 && rank < ranks && limits.segments_max >= 2);
  ubt::GroupSettings group;
  group.rank = rank;
  group.ranks = ranks;
  group.cell_bytes = ubt::CellBytes(limits.packet_bytes_max, wire::kHeaderBytes);
  OR_CHECK(group.cell_bytes >= 8);
  const std::size_t packet_bytes = wire::kHeaderBytes + group.cell_bytes;
  group.burst_cells_max = static_cast<std::uint32_t>(
      std::min({limits.segments_max - 1, (kSuperPacketBytesMax - kRidingReportBytes) / packet_bytes,
                ubt::kBurstCellsLimit}));
  group.op_bytes_max = settings.bucket_bytes_max;
  group.ops_behind_max = static_cast<std::uint32_t>(settings.ops_behind_max);
  group.ops_in_flight_max = static_cast<std::uint32_t>(settings.ops_in_flight_max);
  group.bound = settings.bounded_bound;
  group.scatter_share_pct = static_cast<std::uint32_t>(settings.bounded_scatter_share_pct);
  group.fetch_grace = settings.bounded_bound *
                      static_cast<Duration::rep>(settings.bounded_fetch_grace_pct) / 100;
  // All senders together get at most half of what the receive queue really holds.
  const std::uint64_t share =
      std::min<std::uint64_t>(settings.credit_bytes_total, limits.receive_bytes_held / 2) /
      (ranks - 1) / packet_bytes;
  group.credit_max_packets = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 1, 2048));
  group.credit_start_packets = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      settings.credit_bytes_start / packet_bytes, 1, group.credit_max_packets));
  group.serve_order = tar::ServeOrder(ranks, rank);
  group.sum_order = tar::SumOrder(ranks, rank);
  for (Rank r = 0; r < ranks; ++r) group.rank_names.push_back("rank " + std::to_string(r));
  return group;
}

}  // namespace optireduce
