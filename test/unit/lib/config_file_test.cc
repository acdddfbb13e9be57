// The configuration file, from its bytes to the settings and their origins.
#include "lib/config_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/config.h"

namespace optireduce {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Overrides = std::vector<std::pair<std::string, std::string>>;

// A file that is there as long as the object.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "optireduce_conf." + std::to_string(getpid())) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~ConfigFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

Result<Config> LoadText(const std::string& text, const std::vector<std::string>& environment = {},
                        const Overrides& overrides = {}) {
  const ConfigFile file(text);
  return Config::Load(environment, overrides, "flag", file.path());
}

std::string FaultsOf(const std::string& text) {
  const auto config = LoadText(text);
  return config.ok() ? "" : config.status().text();
}

std::string OriginOf(const Config& config, std::string_view path) {
  for (const Config::Row& row : config.Rows()) {
    if (row.path == path) return row.origin;
  }
  return "no such row";
}

TEST(ConfigFile, LinesAreNamesAndValues) {
  const auto lines = SplitConfigText(
      "# head\n\n a = 1 # one\n\tb\t=\t x = y \nempty =\npath = /tmp/a#b\n   # end\nlast=1");
  ASSERT_EQ(lines.size(), 5u);
  const std::vector<std::pair<std::string_view, std::string_view>> want = {
      {"a", "1"}, {"b", "x = y"}, {"empty", ""}, {"path", "/tmp/a#b"}, {"last", "1"}};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].name, want[i].first);
    EXPECT_EQ(lines[i].value, want[i].second);
    EXPECT_EQ(lines[i].fault, "");
  }
  EXPECT_EQ(lines.front().number, 3u);
  EXPECT_EQ(lines.back().number, 8u);
}

TEST(ConfigFile, DefaultFileEnvironmentFlag) {
  const ConfigFile file("# ours\nmode = bounded\nspin = 1us\n\nop_timeout = 5s\n");
  const auto config =
      Config::Load(std::vector<std::string>{"OPTIREDUCE_SPIN=2us", "OPTIREDUCE_OP_TIMEOUT=6s",
                                            "OPTIREDUCE_CONFIG_FILE=" + file.path()},
                   Overrides{{"op_timeout", "7s"}}, "flag");
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config->settings().mode, Mode::kBounded);
  EXPECT_EQ(config->settings().spin, std::chrono::microseconds(2));
  EXPECT_EQ(config->settings().op_timeout, std::chrono::seconds(7));
  EXPECT_EQ(OriginOf(*config, "mode"), "file " + file.path() + ":2");
  EXPECT_EQ(OriginOf(*config, "spin"), "environment OPTIREDUCE_SPIN");
  EXPECT_EQ(OriginOf(*config, "op_timeout"), "flag");
  EXPECT_EQ(OriginOf(*config, "path_mtu"), "default");
}

TEST(ConfigFile, ANamedFileTakesThePlaceOfTheOneInTheEnvironment) {
  const auto config = LoadText("spin = 1us\n", {"OPTIREDUCE_CONFIG_FILE=/nonexistent"});
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config->settings().spin, std::chrono::microseconds(1));
}

TEST(ConfigFile, WhatIsPrintedIsAFile) {
  const auto config = LoadText("mode = bounded\nnet.bind = 127.0.0.1\n");
  ASSERT_TRUE(config.ok());
  const auto again = LoadText(config->Print());
  ASSERT_TRUE(again.ok()) << again.status().text();
  const auto rows = config->Rows();
  const auto rows_again = again->Rows();
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].value, rows_again[i].value);
}

TEST(ConfigFile, AllFaultsComeAtOnce) {
  const ConfigFile file("mode = bonded\nmoode = exact\nspin = 1us\nspin = 2us\nno equals\n = 3\n");
  const auto config = Config::Load(std::vector<std::string>{"OPTIREDUCE_SPIN=no"},
                                   Overrides{{"spinn", "1us"}}, "flag", file.path());
  ASSERT_FALSE(config.ok());
  const std::string at = "file " + file.path() + ":";
  EXPECT_EQ(config.status().text(),
            "configuration: 7 faults\n"
            "  mode = 'bonded' (" + at + "1): want one of exact, bounded\n"
            "  " + at + "2 'moode': no such option; did you mean mode?\n"
            "  " + at + "4: spin is there already, at line 3; leave out one of the two\n"
            "  " + at + "5: want name = value\n"
            "  " + at + "6: want name = value\n"
            "  spin = 'no' (environment OPTIREDUCE_SPIN): want a duration from 0 to 10ms, such as "
            "20ms or 5s\n"
            "  flag 'spinn': no such option; did you mean spin?");
}

TEST(ConfigFile, HostileBytesAreRefused) {
  EXPECT_THAT(FaultsOf("mode = exact\r\n"), HasSubstr(":1: the line ends in a carriage return"));
  EXPECT_THAT(FaultsOf(std::string("mode = exact\nspin = 1us\0\n", 25)),
              HasSubstr(":2: the line has a control character"));
  EXPECT_THAT(FaultsOf("# \x1b[2J\n"), HasSubstr(":1: the line has a control character"));
  EXPECT_THAT(FaultsOf("\xef\xbb\xbfmode = exact\n"), HasSubstr("'???mode': no such option"));
  EXPECT_THAT(FaultsOf("mode = " + std::string(kConfigLineBytesMax, 'x') + "\n"),
              HasSubstr(":1: the line has more than 4096 bytes"));
  EXPECT_EQ(FaultsOf("mode = exact"), "");  // the last line need not end
  EXPECT_EQ(FaultsOf(""), "");
}

TEST(ConfigFile, SizeHasALimit) {
  std::string text(kConfigFileBytesMax, '\n');
  EXPECT_EQ(FaultsOf(text), "");
  text += '\n';
  EXPECT_THAT(FaultsOf(text), HasSubstr("it has more than 65536 bytes"));
}

TEST(ConfigFile, AWrongFileIsNotExplainedLineByLine) {
  std::string text;
  while (text.size() + 2 <= kConfigFileBytesMax) text += "x\n";
  const std::string faults = FaultsOf(text);
  EXPECT_THAT(faults, AllOf(HasSubstr(":20: want name = value"),
                            HasSubstr(": 32748 more lines were not looked at")));
  EXPECT_THAT(faults, Not(HasSubstr(":21: ")));
}

TEST(ConfigFile, NoTextShowsAValueUnderAWrongName) {
  const std::string faults = FaultsOf("job_key = hunter2\n");
  EXPECT_THAT(faults, AllOf(HasSubstr("'job_key'"), HasSubstr("job_key_file"),
                            Not(HasSubstr("hunter2"))));
}

TEST(ConfigFile, OnlyRegularFilesAreRead) {
  const auto fault = [](const std::string& path) {
    const auto config = Config::Load({}, {}, "flag", path);
    return config.ok() ? "" : config.status().text();
  };
  EXPECT_THAT(fault("/nonexistent/conf"),
              HasSubstr("configuration file /nonexistent/conf: No such file or directory"));
  EXPECT_THAT(fault("/dev/zero"), HasSubstr("it is not a regular file"));
  EXPECT_THAT(fault(testing::TempDir()), HasSubstr("it is not a regular file"));
  const std::string pipe = testing::TempDir() + "optireduce_pipe." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(fault(pipe), HasSubstr("it is not a regular file"));  // and does not wait
  unlink(pipe.c_str());
  EXPECT_THAT(fault("/nonexistent/\x1b[2J\n"), AllOf(HasSubstr("/nonexistent/?[2J?:"),
                                                    Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace optireduce
