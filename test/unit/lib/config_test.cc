#include "lib/config.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/config_table.h"
#include "lib/environment.h"

namespace optireduce {
namespace {

using testing::HasSubstr;
using testing::Not;
using Overrides = std::vector<std::pair<std::string, std::string>>;

Result<Config> Load(const std::vector<std::string>& environment, const Overrides& overrides = {}) {
  return Config::Load(environment, overrides, "flag");
}

const Config::Row& RowOf(const std::vector<Config::Row>& rows, std::string_view path) {
  return *std::find_if(rows.begin(), rows.end(),
                       [path](const Config::Row& row) { return row.path == path; });
}

TEST(Config, DefaultsAreTheStatedOnes) {
  const Settings s = Config::Defaults().settings();
  EXPECT_EQ(s.mode, Mode::kExact);
  EXPECT_EQ(s.op_timeout, std::chrono::minutes(5));
  EXPECT_EQ(s.op_warning, std::chrono::seconds(10));
  EXPECT_EQ(s.ops_behind_max, 8u);
  EXPECT_EQ(s.ops_in_flight_max, 8u);
  EXPECT_EQ(s.bucket_bytes_max, 64u << 20);
  EXPECT_EQ(s.bounded_bytes_min, 64u << 10);
  EXPECT_EQ(s.bounded_bound, std::chrono::milliseconds(500));
  EXPECT_EQ(s.bounded_scatter_share_pct, 75u);
  EXPECT_EQ(s.bounded_fetch_grace_pct, 100u);
  EXPECT_EQ(s.path_mtu, 0u);
  EXPECT_EQ(s.credit_bytes_total, 1u << 20);
  EXPECT_EQ(s.credit_bytes_start, 64u << 10);
  EXPECT_EQ(s.arena_bytes_max, 256u << 20);
  EXPECT_EQ(s.spin, std::chrono::microseconds(50));
  EXPECT_EQ(s.net_bind, "");
  EXPECT_EQ(s.net_advertise, "");
  EXPECT_EQ(s.net_family, AddressFamily::kAny);
  EXPECT_EQ(s.udp_socket_buffer_bytes, 8u << 20);
  EXPECT_EQ(s.udp_gso, Offload::kAuto);
  EXPECT_EQ(s.udp_gro, Offload::kAuto);
  EXPECT_EQ(s.rendezvous_timeout, std::chrono::seconds(120));
  EXPECT_EQ(s.security_tag, TagMode::kHeader);
  EXPECT_EQ(s.security_check, CheckMode::kAuto);
  EXPECT_EQ(s.job_key_file, "");
  EXPECT_EQ(s.fault_loss_pct, 0.0);
  EXPECT_EQ(s.fault_duplicate_pct, 0.0);
  EXPECT_EQ(s.fault_reorder_pct, 0.0);
  EXPECT_EQ(s.fault_corrupt_pct, 0.0);
  EXPECT_EQ(s.fault_delay, Duration{0});
  EXPECT_EQ(s.fault_burst_pct, 0.0);
  EXPECT_EQ(s.fault_burst_packets, 20u);
  EXPECT_EQ(s.fault_clog, Duration{0});
  EXPECT_EQ(s.fault_clog_every, std::chrono::seconds(1));
  EXPECT_EQ(s.fault_send_refused_pct, 0.0);
  EXPECT_EQ(s.fault_seed, 1u);
  EXPECT_EQ(s.log_level, LogLevel::kWarning);
  EXPECT_EQ(s.log_ops, Toggle::kOff);
  EXPECT_EQ(s.state_signal, StateSignalChoice::kOff);
  EXPECT_EQ(s.state_file, "");
  EXPECT_EQ(s.flight_record_file, "");
  EXPECT_EQ(Options().size(), 41u) << "a new option needs a line above";
}

TEST(Config, TableIsWellFormed) {
  std::set<std::string> variables;
  for (const Config::Row& row : Config::Defaults().Rows()) {
    SCOPED_TRACE(row.path);
    EXPECT_TRUE(variables.insert(EnvironmentName(row.path)).second) << "names must differ";
    EXPECT_EQ(row.value, row.default_value) << "defaults are written in their canonical form";
    EXPECT_EQ(row.origin, "default");
    EXPECT_FALSE(row.help.empty());
    EXPECT_EQ(row.help.back(), '.');
  }
  for (const std::string_view other : OtherEnvironmentNames()) {
    EXPECT_FALSE(variables.contains(std::string(other)));
  }
}

// A value of this option that is not its default.
std::string OtherValue(const Option& option) {
  if (option.kind == OptionKind::kText) return "text";
  if (option.kind == OptionKind::kChoice) {
    const auto choices = std::get<ChoiceMember>(option.member).choices;
    return std::string(choices[0].name == option.default_text ? choices[1].name : choices[0].name);
  }
  // The total is at its maximum in the test: else no larger start would be allowed.
  return std::string(option.max_text == option.default_text ? option.min_text : option.max_text);
}

TEST(Config, EachOptionSetsItsOwnMemberOnly) {
  for (const Option& option : Options()) {
    SCOPED_TRACE(option.path);
    const Overrides base = {{"credit.bytes_total", "1G"}};
    Overrides overrides = base;
    overrides.emplace_back(option.path, OtherValue(option));
    if (option.path == "credit.bytes_total") overrides.back().second = "2M";
    const auto before = Load({}, base);
    const auto after = Load({}, overrides);
    ASSERT_TRUE(after.ok()) << after.status().ToString();
    const auto rows_before = before->Rows();
    const auto rows_after = after->Rows();
    for (std::size_t i = 0; i < rows_after.size(); ++i) {
      EXPECT_EQ(rows_after[i].value != rows_before[i].value, rows_after[i].path == option.path)
          << rows_after[i].path;
    }
    EXPECT_EQ(after->WireHash() != before->WireHash(), option.wire);
  }
}

TEST(Config, LaterSourceWinsAndOriginsTell) {
  const auto config = Load(
      {"OPTIREDUCE_MODE=bounded", "OPTIREDUCE_OP_TIMEOUT=5s", "OPTIREDUCE_BOUNDED_BOUND=1m",
       "PATH=/bin", "OPTIREDUCED_X=1", "OPTIREDUCE_TEST_SEEDS=9"},
      {{"op_timeout", "7s"}, {"fault.loss_pct", "0.5"}, {"op_timeout", "9s"}});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->settings().mode, Mode::kBounded);
  EXPECT_EQ(config->settings().op_timeout, std::chrono::seconds(9));
  EXPECT_EQ(config->settings().bounded_bound, std::chrono::minutes(1));
  EXPECT_EQ(config->settings().fault_loss_pct, 0.5);
  const auto rows = config->Rows();
  EXPECT_EQ(RowOf(rows, "mode").origin, "environment OPTIREDUCE_MODE");
  EXPECT_EQ(RowOf(rows, "op_timeout").origin, "flag");
  EXPECT_EQ(RowOf(rows, "op_timeout").value, "9s");
  EXPECT_EQ(RowOf(rows, "spin").origin, "default");
}

TEST(Config, FirstOfTwoVariablesWins) {
  const auto config = Load({"OPTIREDUCE_MODE=bounded", "OPTIREDUCE_MODE=exact"});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->settings().mode, Mode::kBounded);
}

TEST(Config, AllFaultsComeAtOnce) {
  const auto config = Load({"OPTIREDUCE_MODE=bonded", "OPTIREDUCE_OP_TIMEOUTS=5s",
                            "OPTIREDUCE_BUCKET_BYTES_MAX=2G"},
                           {{"op_timeout", "5"}, {"udp.gsso", "off"}, {"fault.loss_pct", "101"}});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(config.status().text(),
            "configuration: 6 faults\n"
            "  mode = 'bonded' (environment OPTIREDUCE_MODE): want one of exact, bounded\n"
            "  environment 'OPTIREDUCE_OP_TIMEOUTS': no such option; did you mean "
            "OPTIREDUCE_OP_TIMEOUT?\n"
            "  bucket_bytes_max = '2G' (environment OPTIREDUCE_BUCKET_BYTES_MAX): want a size in "
            "bytes from 64K to 1G, such as 1500, 64K or 25M\n"
            "  op_timeout = '5' (flag): want a duration from 1ms to 24h, such as 20ms or 5s\n"
            "  flag 'udp.gsso': no such option; did you mean udp.gso?\n"
            "  fault.loss_pct = '101' (flag): want a number from 0 to 100");
}

TEST(Config, RangesAreInclusiveAtBothEnds) {
  for (const Option& option : Options()) {
    if (option.min_text.empty()) continue;
    SCOPED_TRACE(option.path);
    Overrides at_min = {{"credit.bytes_start", "2K"}, {std::string(option.path),
                                                       std::string(option.min_text)}};
    EXPECT_TRUE(Load({}, at_min).ok());
    Overrides at_max = {{"credit.bytes_total", "1G"}, {std::string(option.path),
                                                       std::string(option.max_text)}};
    EXPECT_TRUE(Load({}, at_max).ok());
  }
  for (const auto& [path, value] :
       Overrides{{"op_timeout", "999us"}, {"op_timeout", "86400001ms"}, {"ops_behind_max", "0"},
                 {"ops_behind_max", "33"}, {"bucket_bytes_max", "65535"},
                 {"path_mtu", "65536"}, {"bounded.scatter_share_pct", "9"},
                 {"bounded.scatter_share_pct", "96"}, {"spin", "10001us"}, {"spin", "-1us"},
                 {"fault.loss_pct", "-0.1"}, {"fault.loss_pct", "nan"}, {"fault.loss_pct", ""},
                 {"fault.seed", "18446744073709551616"}, {"mode", ""}, {"mode", "Exact"},
                 {"net.bind", "a\nb"}}) {
    EXPECT_FALSE(Load({}, {{path, value}}).ok()) << path << "=" << value;
  }
}

TEST(Config, StartCreditMayNotExceedTheTotal) {
  EXPECT_TRUE(Load({}, {{"credit.bytes_total", "64K"}}).ok());
  const auto config = Load({"OPTIREDUCE_CREDIT_BYTES_START=2M"});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().text(),
            "configuration: 1 fault\n"
            "  credit.bytes_start = 2M (environment OPTIREDUCE_CREDIT_BYTES_START): want at most "
            "credit.bytes_total = 1M (default)");
}

TEST(Config, NoTextShowsAValueThatMayBeASecret) {
  const auto unknown = Load({"OPTIREDUCE_JOB_KEY=hunter2"}, {{"job_key", "hunter2"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().text(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(unknown.status().text(), HasSubstr("OPTIREDUCE_JOB_KEY_FILE"));
  const auto pasted = Load({}, {{"job_key_file", "hunter2\n"}});
  ASSERT_FALSE(pasted.ok());
  EXPECT_THAT(pasted.status().text(), Not(HasSubstr("hunter2")));
}

TEST(Config, FaultsShowHostileTextSafely) {
  const auto config = Load({"OPTIREDUCE_" + std::string(5000, 'Z') + "=1"},
                           {{"mode", "a\x1b[2J\n" + std::string(5000, 'y')}});
  ASSERT_FALSE(config.ok());
  EXPECT_LT(config.status().text().size(), 500u);
  EXPECT_THAT(config.status().text(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(config.status().text(), HasSubstr("mode = 'a?[2J?yyy"));
}

TEST(Config, WireTextNamesWhatMustBeTheSame) {
  const auto config = Load({}, {{"mode", "bounded"}, {"bucket_bytes_max", "1024K"}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->WireText(),
            "mode=bounded\n"
            "ops_behind_max=8\n"
            "bucket_bytes_max=1M\n"
            "bounded.bytes_min=64K\n"
            "security.tag=header\n"
            "security.check=auto\n");
  // Two ways to write one value are no mismatch.
  const auto same = Load({"OPTIREDUCE_MODE=bounded"}, {{"bucket_bytes_max", "1m"}});
  EXPECT_EQ(config->WireHash(), same->WireHash());
  // Ranks of different builds compare this number.
  EXPECT_EQ(Config::Defaults().WireHash(), 5828986812398793905u);
}

TEST(Config, PrintShowsEachOptionWithItsOrigin) {
  const auto config = Load({"OPTIREDUCE_MODE=bounded"});
  ASSERT_TRUE(config.ok());
  const std::string text = config->Print();
  EXPECT_THAT(text, HasSubstr("mode                      = bounded  # environment "
                              "OPTIREDUCE_MODE\n"));
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')),
            Options().size());
}

TEST(Environment, FindsByWholeName) {
  const std::vector<std::string> environment = {"RANKS=9", "RANK=3", "RANK=4", "EMPTY=", "ODD"};
  EXPECT_EQ(FindVariable(environment, "RANK"), "3");
  EXPECT_EQ(FindVariable(environment, "RANKS"), "9");
  EXPECT_EQ(FindVariable(environment, "EMPTY"), "");
  EXPECT_EQ(FindVariable(environment, "ODD"), std::nullopt);
  EXPECT_EQ(FindVariable(environment, "RAN"), std::nullopt);
}

}  // namespace
}  // namespace optireduce
