#include "collectives/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/collectives/fake_port.h"

namespace optireduce {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Values = std::vector<std::int64_t>;

Values Numbers(std::size_t count, std::int64_t first) {
  Values values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Engines joined by ports in memory.
struct Joined {
  explicit Joined(std::uint32_t ranks, const Settings& settings = TestSettings()) {
    for (Rank r = 0; r < ranks; ++r) ports.push_back(std::make_unique<FakePort>());
    for (Rank r = 0; r < ranks; ++r) {
      for (const auto& port : ports) ports[r]->peers.push_back(port.get());
      EngineOptions options = TestOptions(r, ranks, settings);
      options.on_call_end = [this, r](const std::shared_ptr<Call>& call) {
        ended.emplace_back(r, call);
      };
      options.on_failure = [this](const Status& cause, bool found_here) {
        (found_here ? failures : told).push_back(cause);
      };
      options.stall_after = settings.op_warning;
      options.on_stall = [this, r](const std::string& what) { stalls.emplace_back(r, what); };
      engines.push_back(std::make_unique<Engine>(std::move(options), ports[r].get()));
    }
  }
  void Run(Duration time) {
    const Instant until = now + time;
    for (; now < until; now += std::chrono::microseconds(100)) {
      for (const auto& engine : engines) engine->Turn(now);
    }
  }
  bool Ended(const TestCall& call) const {
    return std::any_of(ended.begin(), ended.end(),
                       [&](const auto& entry) { return entry.second == call.call; });
  }

  std::vector<std::unique_ptr<FakePort>> ports;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::pair<Rank, std::shared_ptr<Call>>> ended;
  std::vector<Status> failures;  // found here
  std::vector<Status> told;
  std::vector<std::pair<Rank, std::string>> stalls;
  Instant now = InstantFromNanos(1'000'000'000);
};

TEST(Engine, ReducesBetweenThree) {
  Joined job(3);
  std::vector<std::unique_ptr<TestCall>> calls;
  for (Rank r = 0; r < 3; ++r) {
    calls.push_back(std::make_unique<TestCall>(Numbers(5000, 100'000 * r)));
    ASSERT_TRUE(job.engines[r]->Submit(calls[r]->call));
  }
  job.Run(milliseconds(50));
  ASSERT_EQ(job.ended.size(), 3U);
  for (const auto& call : calls) {
    EXPECT_EQ(call->call->report.outcome, Report::Outcome::kAgreed);
    EXPECT_EQ(call->call->report.entries, 15'000U);
    for (std::size_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(call->tensor[i], 300'000 + 3 * static_cast<std::int64_t>(i));
    }
  }
  job.Run(seconds(1));
  for (const auto& engine : job.engines) {
    EXPECT_TRUE(engine->Settled());
    EXPECT_EQ(engine->cells_staged(), 0U);
    EXPECT_EQ(engine->counters().Verdicts(),
              engine->counters().Get(Counter::kPacketsReceived));
  }
}

TEST(Engine, ACallLargerThanABucketIsSeveralOpsAndOneEnd) {
  Settings settings = TestSettings();
  settings.bucket_bytes_max = 8 * 1000;
  settings.ops_in_flight_max = 2;
  Joined job(2, settings);
  TestCall a(Numbers(10'500, 0));
  TestCall b(Numbers(10'500, 7));
  job.engines[0]->Submit(a.call);
  job.engines[1]->Submit(b.call);
  job.Run(milliseconds(100));
  ASSERT_EQ(job.ended.size(), 2U);
  EXPECT_EQ(job.engines[0]->group().called(), 11U);
  EXPECT_EQ(a.call->report.entries, 21'000U);
  for (std::size_t i = 0; i < a.tensor.size(); ++i) {
    ASSERT_EQ(a.tensor[i], 7 + 2 * static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(a.tensor, b.tensor);
}

TEST(Engine, AtMostCallsQueuedMaxWait) {
  Joined job(2);
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 9; ++i) calls.push_back(std::make_unique<TestCall>(Values{1}));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(job.engines[0]->Submit(calls[i]->call));
  EXPECT_FALSE(job.engines[0]->Submit(calls[8]->call));
  job.engines[0]->Turn(job.now);
  EXPECT_TRUE(job.engines[0]->Submit(calls[8]->call));
}

TEST(Engine, AReceiveQueueThatOverflowsCostsCredit) {
  Joined job(2);
  job.ports[0]->counts.receive_queue_drops = 5;
  TestCall a(Numbers(5000, 0));
  TestCall b(Numbers(5000, 0));
  job.engines[0]->Submit(a.call);
  job.engines[1]->Submit(b.call);
  job.Run(milliseconds(20));
  EXPECT_EQ(job.engines[0]->counters().Get(Counter::kKernelReceiveDrops), 5U);
  EXPECT_EQ(job.engines[0]->counters().Get(Counter::kCreditOverflowEvents), 1U);
}

TEST(Engine, TellsOfAnOpThatDoesNotEnd) {
  Settings settings = TestSettings();
  settings.op_warning = milliseconds(100);
  Joined job(2, settings);
  TestCall a(Numbers(100, 0));
  TestCall b(Numbers(100, 0));
  job.Run(milliseconds(300));  // nothing is called, nothing is late
  job.engines[0]->Submit(a.call);
  job.Run(milliseconds(99));
  EXPECT_TRUE(job.stalls.empty());
  EXPECT_LE(job.engines[0]->NextWake(), job.now + milliseconds(1));
  job.Run(milliseconds(202));
  ASSERT_EQ(job.stalls.size(), 3U);
  for (const auto& [rank, what] : job.stalls) EXPECT_EQ(rank, 0U);
  EXPECT_EQ(job.stalls[1].second,
            "no op has ended for 200 ms, of 10000 ms (op_timeout); op 1 (all_reduce sum of 100 "
            "int64 (exact)) waits for rank 1: has not called it");
  job.engines[1]->Submit(b.call);
  job.Run(milliseconds(300));
  EXPECT_TRUE(job.Ended(a));
  EXPECT_EQ(job.stalls.size(), 3U);
}

// Many ops of one long call: what goes on is not stalled.
TEST(Engine, TellsOfNoStallWhileOpsEnd) {
  Settings settings = TestSettings();
  settings.op_warning = milliseconds(1);
  settings.bucket_bytes_max = 8 * 100;
  Joined job(2, settings);
  TestCall a(Numbers(20'000, 0));
  TestCall b(Numbers(20'000, 0));
  job.engines[0]->Submit(a.call);
  job.engines[1]->Submit(b.call);
  const Instant start = job.now;
  while (!job.Ended(a) && job.now < start + seconds(1)) job.Run(std::chrono::microseconds(100));
  ASSERT_TRUE(job.Ended(a));
  EXPECT_GT(job.now - start, 2 * settings.op_warning);
  EXPECT_TRUE(job.stalls.empty()) << job.stalls.front().second;
}

// ---- One engine and a made-up peer -------------------------------------------------------------

// An op of 2 * 176 elements: one cell of 1408 bytes for each of the two.
struct OneCell : ::testing::Test {
  static constexpr std::size_t kShard = 176;

  OneCell() : OneCell(std::size_t{8} << 20) {}
  explicit OneCell(std::size_t arena_bytes) : peer(&port), call(Numbers(2 * kShard, 0)) {
    EngineOptions options = TestOptions(0, 2, TestSettings());
    options.arena_bytes = arena_bytes;
    options.on_call_end = [this](const std::shared_ptr<Call>& ended_call) {
      EXPECT_EQ(port.queued(), 0U) << "a queued packet may point into the caller's memory";
      ended.push_back(ended_call);
    };
    options.on_failure = [this](const Status& cause, bool found_here) {
        (found_here ? failures : told).push_back(cause);
      };
    engine = std::make_unique<Engine>(std::move(options), &port);
  }
  void Turn(Duration pause = Duration{0}) {
    now += pause;
    for (int i = 0; i < 10 && engine->Turn(now); ++i) {
    }
  }
  Values Sums(std::size_t first) const {
    Values sums;
    for (std::size_t i = first; i < first + kShard; ++i) {
      sums.push_back(static_cast<std::int64_t>(i) + 1000);
    }
    return sums;
  }
  void PeerDoesItsPart(OpNumber op = 1) {
    peer.Open(op, 2 * kShard);
    peer.Data(op, 0, Values(kShard, 1000));
    peer.Result(op, 0, Sums(kShard));
  }
  std::uint64_t Count(Counter counter) const { return engine->counters().Get(counter); }

  FakePort port;
  SealedPeer peer;
  TestCall call;
  std::unique_ptr<Engine> engine;
  std::vector<std::shared_ptr<Call>> ended;
  std::vector<Status> failures;  // found here
  std::vector<Status> told;
  Instant now = InstantFromNanos(1'000'000'000);
};

TEST_F(OneCell, EndsWithTheMadeUpPeer) {
  engine->Submit(call.call);
  Turn();
  PeerDoesItsPart();
  Turn();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(call.tensor, Numbers(2 * kShard, 1000));
}

TEST_F(OneCell, PacketsThatAreNotOursHaveNoEffect) {
  engine->Submit(call.call);
  Turn();
  peer.Open(1, 2 * kShard);
  Turn();
  const Values wrong(kShard, 666);
  const auto bytes = std::as_bytes(std::span(wrong));
  const Bytes good = peer.Make(wire::MessageType::kData, 1, 0, 0, 0, bytes);
  const auto expect = [&](Counter verdict, const Bytes& packet) {
    const std::uint64_t before = Count(verdict);
    port.Deliver(packet);
    Turn();
    EXPECT_EQ(Count(verdict), before + 1) << Name(verdict);
  };
  const auto changed = [&](std::size_t offset, std::uint8_t value) {
    Bytes packet = good;
    packet[offset] = static_cast<std::byte>(value);
    return packet;
  };
  expect(Counter::kForeignGroup, changed(7, 78));
  expect(Counter::kStaleEpoch, changed(9, 2));
  expect(Counter::kUnknownSender, changed(3, 2));  // no such rank
  expect(Counter::kUnknownSender, changed(3, 0));  // this rank itself
  expect(Counter::kBadTag, changed(31, static_cast<std::uint8_t>(good[31]) ^ 1));
  expect(Counter::kBadTag, changed(15, 2));        // another op
  expect(Counter::kBadTag, changed(19, 1));        // another cell
  expect(Counter::kBadTag, changed(1, 2));         // another flag
  expect(Counter::kBadTag, changed(32, 1));        // another payload: `check` is on
  expect(Counter::kMalformed, changed(0, 0x22));   // another version
  expect(Counter::kMalformed, Bytes(good.begin(), good.begin() + 31));
  expect(Counter::kMalformed, Bytes());
  const Bytes to_another = SealedPeer(&port, 1, /*to=*/2).Make(wire::MessageType::kData, 1, 0, 0,
                                                                0, bytes);
  expect(Counter::kBadTag, to_another);            // of the same sender, to a third rank
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(Count(Counter::kPacketsReceived), engine->counters().Verdicts());
  PeerDoesItsPart();
  Turn();
  EXPECT_EQ(call.tensor, Numbers(2 * kShard, 1000));
  EXPECT_EQ(ended.size(), 1U);
}

TEST_F(OneCell, AReplayHasNoEffect) {
  engine->Submit(call.call);
  Turn();
  peer.Open(1, 2 * kShard);
  const Values values(kShard, 1000);
  const Bytes data =
      peer.Make(wire::MessageType::kData, 1, 0, 0, 0, std::as_bytes(std::span(values)));
  for (int i = 0; i < 3; ++i) port.Deliver(data);
  Turn();
  EXPECT_EQ(Count(Counter::kDuplicate), 2U);
  peer.Result(1, 0, Sums(kShard));
  Turn();
  EXPECT_EQ(call.tensor, Numbers(2 * kShard, 1000));
}

// ---- A busy network ----------------------------------------------------------------------------

TEST_F(OneCell, ACallEndsOnlyWhenNothingQueuedPointsIntoItsMemory) {
  engine->Submit(call.call);
  port.busy = true;
  Turn();
  EXPECT_GT(port.queued(), 1U);  // OPEN and DATA
  PeerDoesItsPart();
  for (int i = 0; i < 20; ++i) Turn(milliseconds(1));
  EXPECT_EQ(engine->group().done(), 1U);
  EXPECT_TRUE(ended.empty());
  port.busy = false;
  Turn();
  EXPECT_EQ(ended.size(), 1U);
}

// A deadline is about the caller, which has its memory only when the network has let go of it.
TEST_F(OneCell, AfterTheDeadlineCountsUntilTheMemoryIsGivenBack) {
  call.call->type = DataType::kFloat64;
  call.call->mode = Mode::kBounded;
  engine->Submit(call.call);
  port.busy = true;
  Turn();
  const Instant called_at = now;
  while (engine->group().done() == 0) Turn(milliseconds(1));
  EXPECT_EQ(now - called_at, milliseconds(40));  // bound and grace
  EXPECT_TRUE(ended.empty());
  Turn(milliseconds(60));
  port.busy = false;
  Turn();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0]->report.outcome, Report::Outcome::kDivergent);
  EXPECT_EQ(ended[0]->report.after_deadline, milliseconds(80));
}

// The peer has its contribution from an earlier packet, say; this one is a repeat, in place.
TEST_F(OneCell, AResultDoesNotOverwriteTheContributionThatIsStillQueued) {
  engine->Submit(call.call);
  port.busy = true;
  Turn();
  PeerDoesItsPart();
  Turn();
  ASSERT_EQ(engine->group().done(), 1U);
  port.busy = false;
  Turn();
  const auto data = std::find_if(port.sent.begin(), port.sent.end(), [](const auto& packet) {
    return (std::to_integer<int>(packet.second[0]) & 15) ==
           static_cast<int>(wire::MessageType::kData);
  });
  ASSERT_NE(data, port.sent.end());
  std::vector<std::int64_t> sent((data->second.size() - wire::kHeaderBytes) / 8);
  std::memcpy(sent.data(), data->second.data() + wire::kHeaderBytes, 8 * sent.size());
  EXPECT_EQ(sent, Numbers(kShard, kShard));
  EXPECT_EQ(call.tensor, Numbers(2 * kShard, 1000));
}

TEST_F(OneCell, ANetworkThatIsAlwaysBusyAfterwardsHoldsNoCallForEver) {
  engine->Submit(call.call);
  Turn();
  PeerDoesItsPart();
  // Every turn hands over what was queued, and queues something new.
  port.busy_every_second = true;
  for (int i = 0; i < 10 && ended.empty(); ++i) {
    peer.Report(wire::kFlagAnswer);
    port.flushes = port.queued() == 0 ? 1 : 0;  // so that the flush after sending is the busy one
    engine->Turn(now += milliseconds(1));
    ASSERT_GT(port.queued(), 0U);
  }
  EXPECT_EQ(ended.size(), 1U);
}

struct SmallArena : OneCell {
  // Three quarters hold shards: one of 1408 bytes, and not two.
  SmallArena() : OneCell(std::size_t{2048} * 4 / 3) {}
};

TEST_F(SmallArena, AShardIsNotUsedAgainWhileQueuedPacketsPointIntoIt) {
  engine->Submit(call.call);
  Turn();
  PeerDoesItsPart();
  Turn();
  ASSERT_EQ(ended.size(), 1U);
  // A repeat of the result is queued when the network is busy; meanwhile the peer has it.
  port.busy = true;
  peer.NackResults(1);
  Turn(milliseconds(50));
  ASSERT_GE(port.queued(), 1U);
  peer.report.done = peer.report.called = peer.report.opened = 1;
  peer.Report();
  TestCall next(Values(2 * kShard, 9));
  engine->Submit(next.call);
  Turn();
  EXPECT_EQ(engine->group().called(), 1U);
  port.sent.clear();
  port.busy = false;
  Turn();
  EXPECT_EQ(engine->group().called(), 2U);
  const auto result = std::find_if(port.sent.begin(), port.sent.end(), [](const auto& packet) {
    return (std::to_integer<int>(packet.second[0]) & 15) ==
           static_cast<int>(wire::MessageType::kResult);
  });
  ASSERT_NE(result, port.sent.end());
  std::int64_t first = 0;
  std::memcpy(&first, result->second.data() + wire::kHeaderBytes, sizeof first);
  EXPECT_EQ(first, 1000);
}

TEST_F(OneCell, AFullPortLosesPacketsAndRepairBringsThem) {
  Joined job(2);
  job.ports[0]->queue_max = 50;
  TestCall a(Numbers(20'000, 0));
  TestCall b(Numbers(20'000, 1));
  job.engines[0]->Submit(a.call);
  job.engines[1]->Submit(b.call);
  job.Run(milliseconds(100));
  ASSERT_EQ(job.ended.size(), 2U);
  EXPECT_EQ(a.tensor[19'999], 39'999);
}

// ---- Failure -----------------------------------------------------------------------------------

TEST_F(OneCell, AFailureEndsEveryCallWithItsCause) {
  TestCall second(Numbers(2 * kShard, 0));
  engine->Submit(call.call);
  Turn();
  engine->Submit(second.call);
  peer.Open(1, 2 * kShard + 1);  // another count
  Turn();
  ASSERT_EQ(ended.size(), 2U);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code(), Code::kMismatch);
  for (const auto& failed : ended) {
    EXPECT_EQ(failed->report.outcome, Report::Outcome::kFailed);
    EXPECT_EQ(failed->report.status.text(), failures[0].text());
  }
  // Later calls, too, and at once.
  TestCall third(Values{1});
  engine->Submit(third.call);
  Turn();
  EXPECT_EQ(ended.size(), 3U);
  EXPECT_EQ(failures.size(), 1U);
  EXPECT_EQ(Count(Counter::kOpsFailed), 3U);
}

TEST_F(OneCell, APostedFailureIsNotReportedBack) {
  engine->Submit(call.call);
  Turn();
  engine->PostFailure({Code::kAborted, "by a peer"});
  engine->PostFailure({Code::kAborted, "later"});
  Turn();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0]->report.status.text(), "by a peer");
  EXPECT_TRUE(failures.empty());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].text(), "by a peer");
}

TEST_F(OneCell, AFailureWaitsForTheBusyNetwork) {
  engine->Submit(call.call);
  port.busy = true;
  Turn();
  engine->PostFailure({Code::kAborted, "x"});
  Turn();
  EXPECT_TRUE(ended.empty());
  port.busy = false;
  Turn();
  EXPECT_EQ(ended.size(), 1U);
}

// Whoever settles meanwhile must not leave a wake-up behind that lies in the past for ever.
TEST_F(OneCell, AFailedGroupThatIsAskedToSettleLetsItsThreadSleep) {
  engine->Submit(call.call);
  port.busy = true;
  Turn();
  engine->PostFailure({Code::kAborted, "x"});
  Turn();
  ASSERT_FALSE(engine->Settled());
  engine->AskToSettle(now);
  port.busy = false;
  Turn(milliseconds(1));
  EXPECT_TRUE(engine->Settled());
  EXPECT_EQ(engine->NextWake(), kNever);
}

TEST_F(OneCell, AfterAFailurePacketsAreReadAndRefused) {
  engine->PostFailure({Code::kAborted, "x"});
  Turn();
  PeerDoesItsPart();
  Turn();
  EXPECT_TRUE(port.InboxEmpty());  // else its driver would find packets for ever
  EXPECT_EQ(Count(Counter::kUnexpected), 3U);
  EXPECT_EQ(engine->NextWake(), kNever);
}

TEST_F(OneCell, APeerThatLeftFailsTheOpItIsMissedIn) {
  engine->Submit(call.call);
  Turn();
  engine->PostPeerLeft(1);
  Turn();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0]->report.status.code(), Code::kPeerLost);
}

}  // namespace
}  // namespace optireduce
