// The command line: what it makes of right flags, and that it names what is wrong.
#include "examples/sim/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace optireduce::sim {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Result<ProgramOptions> Parse(const std::vector<std::string>& arguments) {
  return ParseFlags(arguments);
}

std::string FaultOf(const std::vector<std::string>& arguments) {
  const auto parsed = Parse(arguments);
  if (parsed.ok()) return "none";
  EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
  return parsed.status().text();
}

TEST(Flags, NoneAreFine) {
  const auto parsed = Parse({});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->scenario.job.ranks, 4u);
  ASSERT_EQ(parsed->scenario.calls.size(), 1u);
  EXPECT_EQ(parsed->scenario.calls[0].spec.count, 262'144u);
  EXPECT_EQ(parsed->scenario.calls[0].values, ValueKind::kSets);
}

TEST(Flags, BecomeAScenario) {
  const auto parsed = Parse(
      {"--ranks", "8",       "--seed=7",     "--loss",     "1.5",   "--bytes",    "4K",
       "--mode",  "bounded", "--ops",        "3",          "--type", "float16",   "--op",
       "avg",     "--bound", "20ms",         "--grace_pct", "50",   "--duplicate", "2",
       "--reorder", "3",     "--corrupt",    "4",          "--pause", "2:1ms:5ms", "--late",
       "3:200ms", "--rate",  "1",            "--mtu",      "9000",  "--json",     "--timeline",
       "--in_place"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  const Scenario& s = parsed->scenario;
  EXPECT_TRUE(parsed->json && parsed->timeline);
  EXPECT_EQ(s.job.ranks, 8u);
  EXPECT_EQ(s.job.seed, 7u);
  EXPECT_DOUBLE_EQ(s.job.network.conditions.loss, 0.015);
  EXPECT_DOUBLE_EQ(s.job.network.conditions.duplicate, 0.02);
  EXPECT_DOUBLE_EQ(s.job.network.conditions.reorder, 0.03);
  EXPECT_DOUBLE_EQ(s.job.network.conditions.corrupt, 0.04);
  EXPECT_EQ(s.job.network.node.uplink.rate_bits_per_s, 1'000'000'000u);
  EXPECT_EQ(s.job.network.packet_bytes_max, 8972u);
  EXPECT_EQ(s.job.settings.bounded_bound, milliseconds(20));
  EXPECT_EQ(s.job.settings.bounded_fetch_grace_pct, 50u);
  EXPECT_EQ(s.job.settings.security_check, CheckMode::kOn);
  ASSERT_EQ(s.calls.size(), 3u);
  EXPECT_EQ(s.calls[0].spec.count, 2048u);
  EXPECT_EQ(s.calls[0].spec.type, DataType::kFloat16);
  EXPECT_EQ(s.calls[0].spec.reduce, ReduceOp::kAvg);
  EXPECT_EQ(s.calls[0].spec.mode, Mode::kBounded);
  EXPECT_TRUE(s.calls[0].in_place);
  ASSERT_EQ(s.pauses.size(), 1u);
  EXPECT_EQ(s.pauses[0].rank, 2u);
  EXPECT_EQ(s.pauses[0].end, Instant{} + milliseconds(5));
  ASSERT_EQ(s.late_calls.size(), 1u);
  EXPECT_EQ(s.late_calls[0].by, milliseconds(200));
}

TEST(Flags, EveryFaultHasOne) {
  const auto parsed = Parse({"--ranks", "3", "--burst_loss", "1", "--burst_packets", "8",
                             "--corrupt_caught", "2", "--send_busy", "3", "--send_refused", "4",
                             "--way", "1:0:60", "--narrow", "0:2:5ms:1400", "--link",
                             "2:0.1:10", "--partition", "1:1ms:2ms", "--clog", "0:3ms:4ms",
                             "--never", "2:5", "--clock", "1:1h:-200", "--restart", "1:5ms",
                             "--ops_before", "4294967290", "--first_packet", "77"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  const Scenario& s = parsed->scenario;
  const PairConditions& c = s.job.network.conditions;
  EXPECT_DOUBLE_EQ(c.burst_begin, 0.01);
  EXPECT_DOUBLE_EQ(c.burst_end, 0.125);
  EXPECT_DOUBLE_EQ(c.corrupt_caught, 0.02);
  EXPECT_DOUBLE_EQ(c.send_busy, 0.03);
  EXPECT_DOUBLE_EQ(c.send_refused, 0.04);
  ASSERT_EQ(s.ways.size(), 1u);
  EXPECT_EQ(s.ways[0].pair.from, 1u);
  EXPECT_DOUBLE_EQ(s.ways[0].conditions.loss, 0.6);
  EXPECT_DOUBLE_EQ(s.ways[0].conditions.burst_begin, 0.01);
  ASSERT_EQ(s.narrows.size(), 1u);
  EXPECT_EQ(s.narrows[0].pair.to, 2u);
  EXPECT_EQ(s.narrows[0].at, Instant{} + milliseconds(5));
  EXPECT_EQ(s.narrows[0].packet_bytes_max, 1372u);
  ASSERT_EQ(s.links.size(), 1u);
  EXPECT_EQ(s.links[0].uplink.rate_bits_per_s, 100'000'000u);
  ASSERT_EQ(s.partitions.size(), 1u);
  EXPECT_EQ(s.partitions[0].pairs.size(), 4u);
  ASSERT_EQ(s.clogs.size(), 1u);
  EXPECT_EQ(s.clogs[0].end, Instant{} + milliseconds(4));
  ASSERT_EQ(s.never_calls.size(), 1u);
  EXPECT_EQ(s.never_calls[0].call, 5u);
  ASSERT_EQ(s.job.clocks.size(), 3u);
  EXPECT_EQ(s.job.clocks[1].ppm, -200);
  EXPECT_EQ(s.job.clocks[2].ppm, 0);
  ASSERT_TRUE(s.restart.has_value());
  EXPECT_EQ(s.restart->started_after.size(), 3u);
  EXPECT_EQ(s.job.ops_before, 4294967290u);
  EXPECT_EQ(s.job.first_number, 77u);
}

TEST(Flags, Swarm) {
  const auto range = Parse({"--swarm", "3:9"});
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->swarm->first, 3u);
  EXPECT_EQ(range->swarm->second, 9u);
  const auto one = Parse({"--swarm-seed", "17", "--json"});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->swarm_seed, 17u);
  EXPECT_THAT(FaultOf({"--swarm", "9:3"}), HasSubstr("--swarm"));
  EXPECT_THAT(FaultOf({"--swarm", "9"}), HasSubstr("FIRST:LAST"));
}

TEST(Flags, EachFaultIsNamed) {
  EXPECT_THAT(FaultOf({"--rank", "4"}), HasSubstr("'--rank' is not a flag"));
  EXPECT_THAT(FaultOf({"extra"}), HasSubstr("'extra' is not a flag"));
  EXPECT_THAT(FaultOf({"--ranks"}), HasSubstr("--ranks lacks its value"));
  EXPECT_THAT(FaultOf({"--json=1"}), HasSubstr("--json takes no value"));
  const std::vector<std::vector<std::string>> wrong = {
      {"--ranks", "0"},       {"--ranks", "1"},      {"--ranks", "65"},    {"--ranks", "x"},
      {"--seed", "-1"},       {"--loss", "101"},     {"--loss", "-1"},     {"--loss", "much"},
      {"--bytes", "1Q"},      {"--mode", "fast"},    {"--ops", "0"},       {"--type", "float"},
      {"--op", "plus"},       {"--bound", "20"},     {"--bound", "0"},     {"--pause", "1:2ms"},
      {"--pause", "1:5ms:2ms"}, {"--late", "1"},     {"--late", "x:1ms"},  {"--mtu", "100"},
      {"--share_pct", "99"},  {"--arena", "4K"},     {"--rate", "-1"},     {"--values", "few"},
      {"--burst_packets", "0"}, {"--send_busy", "100"}, {"--way", "1:1:5"}, {"--link", "1:2"},
      {"--clog", "1:2ms:1ms"}, {"--never", "1"},     {"--clock", "1:1h:9999"}, {"--restart", "1"},
      {"--narrow", "1:1:1ms:1400"}, {"--narrow", "0:1:1ms:10"}};
  for (const auto& arguments : wrong) {
    EXPECT_THAT(FaultOf(arguments), HasSubstr(arguments[0] + ": '" + arguments[1] + "'"));
  }
}

TEST(Flags, FaultsOfAllAreToldAtOnce) {
  const std::string fault = FaultOf({"--ranks", "0", "--mode", "fast", "--what"});
  for (const char* name : {"--ranks", "--mode", "--what"}) EXPECT_THAT(fault, HasSubstr(name));
  EXPECT_EQ(fault.find('\n'), std::string::npos);
}

TEST(Flags, MustFitTogether) {
  EXPECT_THAT(FaultOf({"--ranks", "4", "--pause", "4:1ms:2ms"}), HasSubstr("no rank 4"));
  EXPECT_THAT(FaultOf({"--ranks", "4", "--late", "9:1ms"}), HasSubstr("no rank 9"));
  for (const std::vector<std::string>& fault : std::vector<std::vector<std::string>>{
           {"--never", "9:1"}, {"--clog", "9:0s:1s"}, {"--narrow", "0:9:1ms:1400"},
           {"--partition", "9:0s:1s"},
           {"--link", "9:1:1"}, {"--clock", "9:0s:1"}, {"--way", "0:9:1"}, {"--restart", "9:1s"}}) {
    EXPECT_THAT(FaultOf({"--ranks", "4", fault[0], fault[1]}), HasSubstr("no rank 9"));
  }
  EXPECT_THAT(FaultOf({"--type", "bool", "--op", "avg"}), HasSubstr("no avg of bool"));
  EXPECT_THAT(FaultOf({"--mode", "bounded", "--op", "max"}), HasSubstr("--mode bounded"));
  EXPECT_THAT(FaultOf({"--bytes", "1001"}), HasSubstr("no whole float32"));
  EXPECT_THAT(FaultOf({"--ranks", "32", "--values", "sets"}), HasSubstr("32 ranks"));
  EXPECT_THAT(FaultOf({"--op", "min", "--values", "random"}), HasSubstr("--values random"));
}

TEST(Flags, HelpListsThem) {
  ASSERT_TRUE(Parse({"--help"}).ok());
  EXPECT_TRUE(Parse({"--help"})->help);
  for (const char* name : {"--ranks N", "--loss PERCENT", "--pause RANK:BEGIN:END", "--json\n"}) {
    EXPECT_THAT(HelpText(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace optireduce::sim
