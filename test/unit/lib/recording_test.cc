// Counters, flight recorder and log: what is kept about the past.
#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/counters.h"
#include "lib/flight_recorder.h"
#include "lib/log.h"

namespace optireduce {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(Counters, CountApart) {
  Counters counters;
  counters.Add(Counter::kLate);
  counters.Add(Counter::kLate, 4);
  counters.Set(Counter::kKernelReceiveDrops, 7);
  for (const CounterRow& row : kCounterRows) {
    const std::uint64_t want = row.counter == Counter::kLate                 ? 5
                               : row.counter == Counter::kKernelReceiveDrops ? 7
                                                                             : 0;
    EXPECT_EQ(counters.Get(row.counter), want) << row.name;
  }
}

TEST(Counters, NamesDifferAndVerdictsAddUp) {
  std::set<std::string_view> names;
  Counters counters;
  for (const CounterRow& row : kCounterRows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(Name(row.counter), row.name);
    counters.Add(row.counter);
  }
  std::uint64_t verdicts = 0;
  for (const CounterRow& row : kCounterRows) verdicts += row.help.starts_with("Verdict: ");
  EXPECT_EQ(verdicts, 12u);
  EXPECT_EQ(counters.Verdicts(), verdicts);
}

TEST(Counters, AnotherThreadSeesThemRise) {
  Counters counters;
  std::thread writer([&] {
    for (int i = 0; i < 10000; ++i) counters.Add(Counter::kTurns);
  });
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t seen = counters.Get(Counter::kTurns);
    ASSERT_GE(seen, last);
    last = seen;
  }
  writer.join();
  EXPECT_EQ(counters.Get(Counter::kTurns), 10000u);
}

TEST(FlightRecorder, KeepsTheLast) {
  FlightRecorder recorder(5);
  EXPECT_EQ(recorder.held(), 0u);
  for (std::uint64_t i = 0; i < 20; ++i) {
    recorder.Record(InstantFromNanos(static_cast<std::int64_t>(i)), Event::kRepeated, i);
    EXPECT_EQ(recorder.written(), i + 1);
    EXPECT_EQ(recorder.held(), i + 1 < 8 ? i + 1 : 8);
    EXPECT_EQ(recorder.At(recorder.held() - 1).op, i);
  }
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(recorder.At(i).op, 12 + i);
}

TEST(FlightRecorder, OfSizeZeroRecordsNothing) {
  FlightRecorder recorder(0);
  recorder.Record(Instant{}, Event::kOpCalled);
  EXPECT_EQ(recorder.written(), 0u);
  EXPECT_EQ(recorder.Dump("rank 0"), "flight recorder of rank 0: the last 0 of 0 events\n");
}

TEST(FlightRecorder, DumpNamesEverything) {
  FlightRecorder recorder(4);
  const Instant start{seconds(1000)};
  recorder.Record(start, Event::kOpCalled, 7, kNoRank, 1024, 4096);
  recorder.Record(start + microseconds(12), Event::kNackSent, 7, 3, 40, 2);
  recorder.Record(start + milliseconds(5), Event::kPeerLost, 0, 3);
  const std::string want =
      "flight recorder of rank 1: the last 3 of 3 events\n"
      "          +0.000 us  op_called              op=7 elements=1024\n"
      "         +12.000 us  nack_sent              op=7 peer=3 first_cell=40 cells=2\n"
      "       +5000.000 us  peer_lost              peer=3\n";
  EXPECT_EQ(recorder.Dump("rank 1"), want);

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  recorder.Dump("rank 1", file.get());
  std::rewind(file.get());
  std::string text(want.size() + 100, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  EXPECT_EQ(text, want);
}

TEST(FlightRecorder, DumpSurvivesAnythingInARecord) {
  FlightRecorder recorder(1);
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  recorder.Record(Instant::max(), static_cast<Event>(9999), kMost, 0, kMost, kMost);
  EXPECT_THAT(recorder.Dump(std::string(1000, 'w')), HasSubstr("event 9999\n"));
  for (const EventRow& row : kEventRows) {
    recorder.Record(Instant::min(), row.event, kMost, kNoRank - 1, kMost, kMost);
    const std::string text = recorder.Dump("r");
    EXPECT_THAT(text, HasSubstr(std::string(row.name)));
    EXPECT_EQ(text.back(), '\n') << "a line must fit: " << row.name;
  }
}

TEST(RateLimit, AllowsABurstThenOnePerInterval) {
  RateLimit limit(3, seconds(1));
  const Instant t{seconds(50)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Allow(t));
  EXPECT_FALSE(limit.Allow(t));
  EXPECT_FALSE(limit.Allow(t + milliseconds(999)));
  EXPECT_EQ(limit.TakeLeftOut(), 2u);
  EXPECT_EQ(limit.TakeLeftOut(), 0u);
  EXPECT_TRUE(limit.Allow(t + seconds(1)));
  EXPECT_FALSE(limit.Allow(t + milliseconds(1999)));
  // What is not used does not pile up beyond the burst.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Allow(t + seconds(100)));
  EXPECT_FALSE(limit.Allow(t + seconds(100)));
  // A clock that goes back is no reason to fail.
  EXPECT_FALSE(limit.Allow(t));
}

class LoggerTest : public testing::Test {
 protected:
  std::string Text() {
    std::rewind(file_.get());
    std::string text(100000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), std::fclose};
  Logger logger_{file_.get()};
  Instant now_{seconds(1)};
};

TEST_F(LoggerTest, PrefixLevelAndContinuation) {
  EXPECT_TRUE(logger_.Write(LogLevel::kWarning, "no rank yet", now_));
  logger_.SetRank(3);
  EXPECT_FALSE(logger_.Write(LogLevel::kInfo, "hidden", now_));
  logger_.SetLevel(LogLevel::kInfo);
  EXPECT_TRUE(logger_.Write(LogLevel::kInfo, "two\nlines", now_));
  EXPECT_TRUE(logger_.Write(LogLevel::kError, "bad", now_));
  EXPECT_EQ(Text(),
            "[optireduce] warning: no rank yet\n"
            "[optireduce r3] info: two\n    lines\n"
            "[optireduce r3] error: bad\n");
}

TEST_F(LoggerTest, AFloodOfOneLevelHidesNoOther) {
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += logger_.Write(LogLevel::kWarning, "flood", now_) ? 1 : 0;
  EXPECT_EQ(passed, 20);
  EXPECT_TRUE(logger_.Write(LogLevel::kError, "seen", now_));
  EXPECT_TRUE(logger_.Write(LogLevel::kWarning, "after", now_ + seconds(1)));
  EXPECT_THAT(Text(), HasSubstr("warning: after (80 lines of this level left out before)\n"));
}

TEST(Log, ProcessLogGoesToStandardError) {
  testing::internal::CaptureStderr();
  SetLogRank(5);
  SetLogLevel(LogLevel::kDebug);
  Log(LogLevel::kDebug, "hello");
  SetLogLevel(LogLevel::kError);
  Log(LogLevel::kWarning, "hidden");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[optireduce r5] debug: hello\n");
}

}  // namespace
}  // namespace optireduce
