// What is printed about a run: the numbers, one JSON object, and the timeline.
#include "examples/sim/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "examples/sim/flags.h"
#include "examples/sim/run.h"
#include "examples/sim/swarm.h"
#include "examples/sim/timeline.h"

namespace optireduce::sim {
namespace {

using testing::HasSubstr;

Scenario Make(const std::vector<std::string>& arguments) {
  auto parsed = ParseFlags(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.status().text();
  return parsed->scenario;
}

// True for one JSON object with nothing behind it. Numbers and names are looked at as words.
class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}
  bool IsOneObject() {
    Space();
    const bool object = at_ < text_.size() && text_[at_] == '{' && Value();
    Space();
    return object && at_ == text_.size();
  }

 private:
  void Space() { at_ = std::min(text_.find_first_not_of(" \n", at_), text_.size()); }
  bool Take(char c) {
    Space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Text() {
    if (!Take('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    return Take('"');
  }
  bool List(char end, bool named) {
    if (Take(end)) return true;
    do {
      if (named && (!Text() || !Take(':'))) return false;
      if (!Value()) return false;
    } while (Take(','));
    return Take(end);
  }
  bool Value() {
    Space();
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '"') return Text();
    if (Take('{')) return List('}', true);
    if (Take('[')) return List(']', false);
    const std::size_t end = text_.find_first_of(",]} \n", at_);
    const std::string word = text_.substr(at_, end - at_);
    at_ = std::min(end, text_.size());
    return word == "true" || word == "false" || word == "null" ||
           (!word.empty() && word.find_first_not_of("0123456789.eE+-") == std::string::npos);
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

TEST(Output, JsonIsOneObjectWithTheNumbers) {
  const Scenario scenario =
      Make({"--ranks", "3", "--bytes", "64K", "--mode", "bounded", "--bound", "3ms", "--late",
            "1:20ms", "--loss", "10"});
  const Evidence evidence = RunScenario(scenario);
  const std::string json = JsonOf(scenario, evidence, {"a \"finding\"\nof two lines"});
  EXPECT_TRUE(JsonReader(json).IsOneObject()) << json;
  const Summary s = Summarize(evidence);
  EXPECT_GT(s.lost_entries, 16'000u);
  EXPECT_GT(s.max_rel_error, 0.1);
  for (const std::string& part :
       {std::string("\"ranks\": 3"), std::string("\"same_bits\": true"),
        "\"lost_entries\": " + std::to_string(s.lost_entries),
        std::string("\"late_entries\": 0"), "\"divergent\": " + std::to_string(s.divergent),
        std::string("\"trace_hash\": \""), std::string("\"max_rel_err\": "),
        std::string("\"elapsed_us\": ")}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

TEST(Output, AReaderOfJsonThatCanSayNo) {
  for (const char* text : {"{}", "{\"a\": [1, 2.5e-7, {\"b\": null}], \"c\": \"\\\"\"}\n"}) {
    EXPECT_TRUE(JsonReader(text).IsOneObject()) << text;
  }
  for (const char* text : {"", "[]", "{} {}", "{\"a\": }", "{\"a\": 1,}", "{\"a\": nan}", "{"}) {
    EXPECT_FALSE(JsonReader(text).IsOneObject()) << text;
  }
}

TEST(Output, TheErrorIsAgainstTheExactSum) {
  const Evidence random = RunScenario(Make({"--bytes", "64K", "--values", "random"}));
  const Summary rounded = Summarize(random);
  EXPECT_GT(rounded.max_abs_error, 0);
  EXPECT_LT(rounded.max_abs_error, 1e-6);
  const Summary exact = Summarize(RunScenario(Make({"--bytes", "64K"})));
  EXPECT_EQ(exact.max_abs_error, 0);
  EXPECT_TRUE(exact.same_bits);
}

TEST(Output, TextTellsFindings) {
  const Scenario scenario = Make({"--bytes", "4K"});
  const Evidence evidence = RunScenario(scenario);
  EXPECT_THAT(TextOf(scenario, evidence, {}), HasSubstr("all checkers are content"));
  EXPECT_THAT(TextOf(scenario, evidence, {"alas"}), HasSubstr("WRONG: alas"));
}

TEST(Output, SwarmJsonHasTheReplayCommand) {
  const std::string json = JsonOfSwarm(1, 9, {{4, {"alas"}}});
  EXPECT_TRUE(JsonReader(json).IsOneObject()) << json;
  EXPECT_THAT(json, HasSubstr("\"replay\": \"optireduce-sim --swarm-seed 4\""));
  EXPECT_TRUE(JsonReader(JsonOfSwarm(1, 9, {})).IsOneObject());
}

std::vector<std::string> TimelineOf(const Scenario& scenario, std::uint64_t lines_max) {
  std::vector<std::string> lines;
  Timeline timeline(scenario, lines_max, [&](const std::string& line) { lines.push_back(line); });
  Watch watch;
  watch.on_packet = [&](const TraceRecord& record) { timeline.OnPacket(record); };
  watch.on_call = [&](Instant now, Rank rank, const JobCall& call) {
    timeline.OnCall(now, rank, call);
  };
  RunScenario(scenario, watch);
  timeline.End();
  return lines;
}

TEST(Timeline, DecodesMessages) {
  const auto lines = TimelineOf(
      Make({"--ranks", "2", "--bytes", "64K", "--mode", "bounded", "--bound", "5ms", "--loss",
            "25", "--duplicate", "5", "--corrupt", "5", "--late", "1:10ms", "--pause",
            "0:1ms:2ms"}),
      ~std::uint64_t{0});
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  for (const char* part :
       {"rank 0  call 0 made", "OPEN op 1: 16384 float32 sum bounded", "DATA op 1 shard 1 cells ",
        "RESULT op 1 shard 0 incomplete cell", "REPORT op 1: credit ", "NACK op 1 wants ",
        "SETS op 1: cells 0-", "without 1", "drop (loss) ", "duplicate ", "corrupt ",
        "rank 0  pause", "rank 0  resume", "rank 1  call 0 ended "}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(Timeline, IsCutWhereAsked) {
  const Scenario scenario = Make({"--bytes", "1M"});
  const auto lines = TimelineOf(scenario, 12);
  ASSERT_EQ(lines.size(), 13u);
  EXPECT_THAT(lines.back(), HasSubstr("more lines"));
}

TEST(Timeline, ChangesNothing) {
  const Scenario scenario = Make({"--bytes", "64K", "--loss", "5"});
  Timeline timeline(scenario, 1, [](const std::string&) {});
  Watch watch;
  watch.on_packet = [&](const TraceRecord& record) { timeline.OnPacket(record); };
  EXPECT_EQ(CheckEqualRuns(RunScenario(scenario), RunScenario(scenario, watch)), Findings{});
}

}  // namespace
}  // namespace optireduce::sim
