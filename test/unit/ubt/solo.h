// One real rank, 0, among made-up peers.
#ifndef OPTIREDUCE_TEST_UNIT_UBT_SOLO_H_
#define OPTIREDUCE_TEST_UNIT_UBT_SOLO_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "test/unit/ubt/forger.h"
#include "test/unit/ubt/net.h"

namespace optireduce::ubt {

struct Solo {
  explicit Solo(std::uint32_t ranks) : Solo(Settings(ranks)) {}
  explicit Solo(const GroupSettings& settings) : net(settings, 1) {
    for (Rank r = 0; r < settings.ranks; ++r) peers.emplace_back(&net, r);
  }

  Node& node() { return net[0]; }
  Group& group() { return net[0].group; }
  FakeActions& actions() { return net[0].actions; }
  Forger& peer(Rank r) { return peers[r]; }

  void OpenAll(OpNumber op, const OpSpec& spec) {
    for (Rank r = 1; r < net.ranks(); ++r) {
      EXPECT_EQ(peers[r].Open(op, spec), Counter::kAccepted);
    }
  }
  void DataAll(OpNumber op) {
    for (Rank r = 1; r < net.ranks(); ++r) peers[r].DataAll(op);
  }
  void ResultAll(OpNumber op) {
    for (Rank r = 1; r < net.ranks(); ++r) {
      const CellIndex cells = peers[r].GridOf(op).Cells(r);
      for (CellIndex cell = 0; cell < cells; ++cell) peers[r].Result(op, cell);
    }
  }
  // Everybody says that it is done with all ops up to this one.
  void DoneAll(OpNumber op) {
    for (Rank r = 1; r < net.ranks(); ++r) {
      peers[r].report.done = peers[r].report.called = op;
      EXPECT_EQ(peers[r].Report(), Counter::kAccepted);
    }
  }
  // A whole op, from its call to its end here.
  void RunOp(const OpSpec& spec) {
    const OpNumber op = group().called() + 1;
    EXPECT_EQ(net.Call(0, spec), Admission::kAdmitted);
    OpenAll(op, spec);
    DataAll(op);
    ResultAll(op);
    Turn();
    EXPECT_EQ(group().done(), op);
  }

  // What rank 0 sends now; the peers see it.
  std::vector<Packet> Turn(bool idle = true) {
    std::vector<Packet> packets = net.Turn(0, idle);
    for (Forger& forger : peers) forger.See(packets);
    return packets;
  }
  std::vector<Packet> TurnAfter(Duration pause) {
    net.now += pause;
    return Turn();
  }

  Net net;
  std::vector<Forger> peers;
};

inline std::vector<Packet> Of(MessageType type, const std::vector<Packet>& packets) {
  std::vector<Packet> found;
  for (const Packet& packet : packets) {
    if (packet.type() == type) found.push_back(packet);
  }
  return found;
}
inline std::vector<Packet> To(Rank to, const std::vector<Packet>& packets) {
  std::vector<Packet> found;
  for (const Packet& packet : packets) {
    if (packet.to == to) found.push_back(packet);
  }
  return found;
}
inline wire::Nack NackIn(const Packet& packet) {
  wire::Nack nack;
  EXPECT_EQ(packet.type(), MessageType::kNack);
  EXPECT_EQ(wire::ParseNack(packet.body, &nack), wire::ParseResult::kOk);
  return nack;
}
inline wire::ReportBlock ReportIn(const Packet& packet) {
  wire::ReportBlock report;
  if (packet.type() == MessageType::kOpen) {
    wire::Open open;
    EXPECT_EQ(wire::ParseOpen(packet.body, &open), wire::ParseResult::kOk);
    return open.report;
  }
  EXPECT_EQ(wire::ParseReport(packet.body, &report), wire::ParseResult::kOk);
  return report;
}

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TEST_UNIT_UBT_SOLO_H_
