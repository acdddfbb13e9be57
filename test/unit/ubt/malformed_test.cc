// Packets that no rank of ours sends change nothing but a counter; and results.
#include <gtest/gtest.h>

#include <vector>

#include "test/unit/ubt/solo.h"

namespace optireduce::ubt {
namespace {

constexpr Counter kBad = Counter::kMalformed;

std::vector<std::byte> Bytes(std::size_t n) { return std::vector<std::byte>(n, std::byte{1}); }

// 3 ranks; shards of 2 cells, of which the second has 8 of 16 elements.
struct ShortCells : ::testing::Test {
  ShortCells() : solo(3) {}
  void Begin(Mode mode) {
    spec = mode == Mode::kExact ? Exact(72) : Bounded(72);
    solo.net.Call(0, spec);
    solo.OpenAll(1, spec);
    solo.Turn();
    log = solo.actions().log;
  }
  // Nothing was added, placed or kept, and no answer goes out but reports.
  void ExpectNothingHappened() {
    EXPECT_EQ(solo.actions().log, log);
    EXPECT_TRUE(solo.actions().staged.empty());
    EXPECT_TRUE(solo.actions().placed.empty());
    EXPECT_TRUE(solo.group().failure().ok());
    const std::vector<Packet> answers = solo.Turn();
    EXPECT_EQ(Of(MessageType::kReport, answers).size(), answers.size());
  }
  Counter Raw(Rank from, MessageType type, Rank shard, CellIndex cell, std::size_t bytes,
              std::uint8_t flags = 0) {
    return solo.peer(from).Send(type, 1, shard, cell, flags, Bytes(bytes));
  }
  Solo solo;
  OpSpec spec;
  std::vector<std::string> log;
};

TEST_F(ShortCells, DataThatFitsNoCell) {
  Begin(Mode::kExact);
  EXPECT_EQ(Raw(1, MessageType::kData, 0, 2, 128), kBad);           // no such cell
  EXPECT_EQ(Raw(1, MessageType::kData, 0, 0xffffffff, 128), kBad);
  EXPECT_EQ(Raw(1, MessageType::kData, 1, 0, 128), kBad);           // the sender's own shard
  EXPECT_EQ(Raw(1, MessageType::kData, 2, 0, 128), kBad);           // a third rank's
  for (const std::size_t bytes : {0U, 1U, 64U, 120U, 127U, 129U, 136U, 1440U}) {
    EXPECT_EQ(Raw(1, MessageType::kData, 0, 0, bytes), kBad) << bytes;
  }
  for (const std::size_t bytes : {0U, 8U, 63U, 65U, 72U, 128U}) {
    EXPECT_EQ(Raw(1, MessageType::kData, 0, 1, bytes), kBad) << bytes;
  }
  ExpectNothingHappened();
  EXPECT_EQ(solo.peer(2).Data(1, 1), Counter::kAccepted);
  EXPECT_EQ(solo.peer(1).Data(1, 1), Counter::kAccepted);
  EXPECT_TRUE(solo.actions().Closed(1, 1));
}

TEST_F(ShortCells, ResultsThatFitNoCell) {
  Begin(Mode::kExact);
  const std::uint8_t complete = wire::kFlagComplete;
  EXPECT_EQ(Raw(1, MessageType::kResult, 1, 2, 128, complete), kBad);
  EXPECT_EQ(Raw(1, MessageType::kResult, 1, 0xffffffff, 128, complete), kBad);
  EXPECT_EQ(Raw(1, MessageType::kResult, 2, 0, 128, complete), kBad);  // not its owner
  EXPECT_EQ(Raw(1, MessageType::kResult, 0, 0, 128, complete), kBad);  // this rank's own
  EXPECT_EQ(Raw(1, MessageType::kResult, 1, 0, 64, complete), kBad);
  EXPECT_EQ(Raw(1, MessageType::kResult, 1, 1, 128, complete), kBad);
  ExpectNothingHappened();
  EXPECT_EQ(solo.peer(1).Result(1, 1), Counter::kAccepted);
}

TEST_F(ShortCells, IncompleteResultsOfAnExactOp) {
  Begin(Mode::kExact);
  EXPECT_EQ(solo.peer(1).Result(1, 0, 0b011), kBad);
  EXPECT_EQ(solo.peer(1).Sets(1, {{{0, 1}, 0b011}}), kBad);
  ExpectNothingHappened();
  EXPECT_EQ(solo.peer(1).Result(1, 0), Counter::kAccepted);
}

TEST_F(ShortCells, SetsOutsideOfTheShard) {
  Begin(Mode::kBounded);
  EXPECT_EQ(solo.peer(1).Sets(1, {{{2, 1}, 0b011}}), kBad);
  EXPECT_EQ(solo.peer(1).Sets(1, {{{0, 3}, 0b011}}), kBad);
  EXPECT_EQ(solo.peer(1).Sets(1, {{{0, 1}, 0b011}, {{7, 1}, 0b001}}), kBad);
  // A set of ranks that do not exist; the writer does not check what it is given.
  const std::vector<std::byte> body{std::byte{0}, std::byte{1}, std::byte{0}, std::byte{1},
                                    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
                                    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1},
                                    std::byte{0b1011}};
  EXPECT_EQ(solo.peer(1).Send(MessageType::kSets, 1, 1, 0, 0, body), kBad);
  ExpectNothingHappened();
  // Sets of another rank's shard.
  std::vector<std::byte> good = body;
  good[12] = std::byte{0b011};
  EXPECT_EQ(solo.peer(1).Send(MessageType::kSets, 1, 2, 0, 0, good), kBad);
  EXPECT_EQ(solo.peer(1).Send(MessageType::kSets, 1, 1, 0, 0, good), Counter::kAccepted);
  EXPECT_EQ(solo.peer(1).Send(MessageType::kSets, 1, 1, 0, 0, good), Counter::kDuplicate);
}

TEST_F(ShortCells, NacksOutsideOfTheShard) {
  Begin(Mode::kExact);
  solo.DataAll(1);
  solo.TurnAfter(milliseconds(1));
  log = solo.actions().log;
  solo.actions().placed.clear();
  solo.net.now += milliseconds(50);  // everything is old enough to be repeated
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kBroadcast, {{2, 1}}), kBad);
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kScatter, {{0, 3}}), kBad);
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kScatter, {{1, 0xfffffff0}}), kBad);
  // One good range before a bad one is no better.
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kBroadcast, {{0, 1}, {2, 1}}), kBad);
  EXPECT_EQ(solo.peer(1).Nack(1, Stage::kScatter, {{0, 1}, {9, 1}}), kBad);
  const std::vector<Packet> sent = To(1, solo.net.Sends(0));
  EXPECT_TRUE(Of(MessageType::kData, sent).empty());
  EXPECT_TRUE(Of(MessageType::kResult, sent).empty());
}

TEST_F(ShortCells, NacksForAThirdRanksShard) {
  Begin(Mode::kExact);
  std::array<std::byte, 64> body;
  wire::Nack nack;
  nack.range_count = 1;
  nack.ranges[0] = {0, 1};
  nack.stage = Stage::kScatter;
  const std::size_t bytes = wire::WriteNack(nack, body);
  for (const Rank shard : {0U, 2U}) {  // DATA is asked for by its owner, 1
    EXPECT_EQ(solo.peer(1).Send(MessageType::kNack, 1, shard, 0, 0, std::span(body).first(bytes)),
              kBad);
  }
  nack.stage = Stage::kBroadcast;
  wire::WriteNack(nack, body);
  for (const Rank shard : {1U, 2U}) {  // RESULT from its owner, 0
    EXPECT_EQ(solo.peer(1).Send(MessageType::kNack, 1, shard, 0, 0, std::span(body).first(bytes)),
              kBad);
  }
  ExpectNothingHappened();
}

TEST_F(ShortCells, BodiesThatDoNotParse) {
  Begin(Mode::kBounded);
  for (const MessageType type : {MessageType::kOpen, MessageType::kSets, MessageType::kNack,
                                 MessageType::kReport, MessageType::kNotYet}) {
    const Rank shard = type == MessageType::kSets ? 1 : 0;
    for (const std::size_t bytes : {0U, 3U, 17U, 200U}) {
      EXPECT_EQ(Raw(1, type, shard, 0, bytes), kBad) << static_cast<int>(type) << " " << bytes;
    }
  }
  ExpectNothingHappened();
}

TEST_F(ShortCells, StatementsAndAnswersToNoProbeAreUnexpected) {
  Begin(Mode::kBounded);
  EXPECT_EQ(Raw(1, MessageType::kProbe, 0, 0, 12), kBad);
  EXPECT_EQ(Raw(1, MessageType::kProbe, 0, 0, 12, wire::kFlagAnswer), kBad);
  EXPECT_EQ(Raw(1, MessageType::kProbe, 0, 0, 8, wire::kFlagAnswer), Counter::kUnexpected);
  EXPECT_EQ(Raw(1, MessageType::kStatement, 0, 0, 12), Counter::kUnexpected);
  ExpectNothingHappened();
}

TEST(Malformed, OpensOfOpsThatCannotBe) {
  GroupSettings settings = Settings(3);
  settings.op_bytes_max = 1000;
  Solo solo(settings);
  const auto open = [&](OpSpec spec) { return solo.peer(1).Open(1, spec); };
  EXPECT_EQ(open(Exact(126)), kBad);  // 1008 bytes
  EXPECT_EQ(open(Exact(~std::uint64_t{0})), kBad);
  EXPECT_EQ(open(Exact(std::uint64_t{1} << 61)), kBad);  // times 8 it wraps
  EXPECT_EQ(open({9, DataType::kFloat32, ReduceOp::kBitAnd, Mode::kExact, 0}), kBad);
  EXPECT_EQ(open({9, DataType::kBool, ReduceOp::kAvg, Mode::kExact, 0}), kBad);
  EXPECT_EQ(open({9, DataType::kInt64, ReduceOp::kSum, Mode::kBounded, 0}), kBad);
  EXPECT_EQ(open({9, DataType::kFloat32, ReduceOp::kMax, Mode::kBounded, 0}), kBad);
  EXPECT_TRUE(solo.actions().log.empty());
  EXPECT_EQ(open(Exact(125)), Counter::kAccepted);
}

TEST(Malformed, EveryPacketOfAnOldNumberIsADuplicate) {
  Solo solo(2);
  const OpSpec spec = Exact(Count(2, 1));
  solo.net.Call(0, spec);
  solo.peer(1).Open(1, spec);
  solo.peer(1).next_number = 5000;
  solo.peer(1).Data(1, 0);
  solo.peer(1).next_number = 5000 - 4096;
  EXPECT_EQ(solo.peer(1).Result(1, 0), Counter::kDuplicate);
  EXPECT_TRUE(solo.actions().placed[1].size() <= 1);  // the own cell at most
}

// ---- Results -----------------------------------------------------------------------------------

TEST(Result, EachCellIsPlacedOnceAndEndsTheOp) {
  Solo solo(3);
  const OpSpec spec = Exact(72);
  solo.net.Call(0, spec);
  solo.OpenAll(1, spec);
  solo.DataAll(1);
  for (CellIndex cell = 0; cell < 2; ++cell) {
    EXPECT_EQ(solo.peer(1).Result(1, cell), Counter::kAccepted);
    EXPECT_EQ(solo.peer(1).Result(1, cell), Counter::kDuplicate);
  }
  EXPECT_EQ(solo.peer(2).Result(1, 1), Counter::kAccepted);
  EXPECT_TRUE(solo.node().ended.empty());
  EXPECT_EQ(solo.peer(2).Result(1, 0), Counter::kAccepted);
  ASSERT_TRUE(solo.node().ended.contains(1));
  EXPECT_EQ(solo.node().ended[1].tensor, Sum(0b111, 1, 72));
  EXPECT_EQ(solo.node().ended[1].end.outcome, OpEnd::Outcome::kAgreed);
  EXPECT_EQ(solo.node().ended[1].end.ledger.lost_entries, 0U);
  EXPECT_EQ(solo.peer(2).Result(1, 0), Counter::kDuplicate);
}

TEST(Result, BeforeTheCallWaitsForIt) {
  Solo solo(3);
  const OpSpec spec = Exact(72);
  solo.OpenAll(1, spec);
  solo.DataAll(1);
  // Results of others can be complete only after the own call; but a forged or a confused peer
  // must not make a tensor change that nobody has given.
  EXPECT_EQ(solo.peer(1).Result(1, 0), Counter::kWaited);
  EXPECT_EQ(solo.peer(1).Result(1, 0), Counter::kDuplicate);
  EXPECT_TRUE(solo.actions().placed.empty());
  solo.net.Call(0, spec);
  EXPECT_EQ(solo.actions().placed[1].count({1, 0}), 1U);
}

}  // namespace
}  // namespace optireduce::ubt
