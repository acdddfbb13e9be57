#include "collectives/state.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lib/values.h"

namespace optireduce {
namespace {

std::string MillisText(Duration duration) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(duration.count()) / 1e6);
  return text;
}

std::string PeerText(Rank rank, const PeerStats& peer) {
  const std::string heard =
      peer.heard ? "heard " + MillisText(peer.since_heard) + " ago" : "never heard";
  return "  rank " + std::to_string(rank) + " (" + peer.address + "): " + heard + ", rtt " +
         MillisText(peer.smoothed_rtt) + ", in flight " + std::to_string(peer.packets_in_flight) +
         " of " + std::to_string(peer.credit_packets) + ", sent " +
         std::to_string(peer.packets_sent) + ", repeated " +
         std::to_string(peer.packets_repeated) + ", received " +
         std::to_string(peer.packets_received) + ", missing " +
         std::to_string(peer.packets_missing) + (peer.left ? ", has left" : "") + "\n";
}

}  // namespace

PeerStats PeerStatsOf(const ubt::Link& link, const std::string& address, Instant now) {
  PeerStats peer;
  peer.address = address;
  peer.packets_sent = link.packets_sent;
  peer.packets_repeated = link.packets_repeated;
  peer.packets_received = link.rx.received();
  peer.packets_missing = link.rx.missing();
  peer.smoothed_rtt = link.rtt.smoothed();
  peer.packets_in_flight = link.tx.in_flight();
  peer.credit_packets = link.tx.credit();
  peer.heard = link.rx.received() > 0;
  if (peer.heard) peer.since_heard = now - link.rx.heard_at();
  peer.left = link.left;
  return peer;
}

std::string OpsText(const ubt::Group& group) {
  std::string text = "ops: called " + std::to_string(group.called()) + ", ended " +
                     std::to_string(group.done());
  if (group.called() > group.done()) {
    text += "; the oldest waits for " + group.DescribeWaiting(group.done() + 1);
  }
  if (!group.failure().ok()) text += "; failed: " + group.failure().ToString();
  return text;
}

std::string StateText(std::string_view who, std::string_view ops, const Stats& stats) {
  std::string text = "state of " + std::string(who) + "\n  " + std::string(ops) + "\n";
  for (Rank rank = 0; rank < stats.peers.size(); ++rank) {
    if (!stats.peers[rank].address.empty()) text += PeerText(rank, stats.peers[rank]);
  }
  std::string line = "  counters:";
  for (const auto& [name, value] : stats.counters) {
    if (value == 0) continue;
    std::string word = " " + name + "=" + std::to_string(value);
    if (line.size() + word.size() > 100) {
      text += line + "\n";
      line = "   ";
    }
    line += word;
  }
  return text + line + "\n";
}

std::string CallText(const Call& call) {
  const Report& report = call.report;
  std::string text = "op: " + std::string(Name(call.reduce)) + " of " +
                     std::string(Name(call.type)) + ", " + std::to_string(call.count) +
                     " elements, " + std::string(Name(call.mode)) + ": ";
  switch (report.outcome) {
    case Report::Outcome::kAgreed:
      text += "agreed";
      break;
    case Report::Outcome::kDivergent:
      text += "divergent, " + std::to_string(report.missing_elements) + " elements missing";
      break;
    case Report::Outcome::kFailed:
      return text + "failed after " + MillisText(report.elapsed) + ": " +
             report.status.ToString();
  }
  text += " in " + MillisText(report.elapsed);
  if (report.late_entries + report.lost_entries > 0) {
    text += ", " + std::to_string(report.late_entries) + " entries late, " +
            std::to_string(report.lost_entries) + " lost of " + std::to_string(report.entries);
  }
  if (report.after_deadline > Duration{0}) {
    text += ", " + MillisText(report.after_deadline) + " after the deadline";
  }
  return text;
}

std::string RankPath(const std::string& path, Rank rank) {
  return path + ".r" + std::to_string(rank);
}

Status WriteText(const std::string& path, std::string_view text, bool append) {
  const auto failed = [&path] {
    return Status(Code::kUnavailable, "write " + path + ": " + std::strerror(errno));
  };
  std::FILE* const file = std::fopen(path.c_str(), append ? "ae" : "we");
  if (file == nullptr) return failed();
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return written && closed ? Status::Ok() : failed();
}

}  // namespace optireduce
