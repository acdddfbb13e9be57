// The benchmark as its users start it: what it prints, writes and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "test/loopback/bench/process.h"

namespace optireduce::bench {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr seconds kLong(120);  // for a sanitizer on a loaded machine

Finished RunBench(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  return Process(Bench(std::move(arguments)), std::move(environment)).Wait(kLong);
}

// Empty when the file is what the documentation promises.
std::string JsonFaults(const std::string& path, std::vector<std::string> percentiles) {
  std::vector<std::string> arguments = {"python3", "-B",
                                        OPTIREDUCE_TEST_SOURCE_DIR "/check_json.py", path};
  arguments.insert(arguments.end(), percentiles.begin(), percentiles.end());
  const Finished finished = Process(arguments).Wait(kLong);
  return finished.exit_code == 0 ? "" : "not right: " + finished.out + finished.err;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class File {
 public:
  explicit File(const std::string& name) : path_(TemporaryPath(name)) {}
  ~File() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  std::string text() const { return ReadFile(path_); }

 private:
  const std::string path_;
};

TEST(Bench, ASweepIsRightAndCanBeRecomputed) {
  const File json("json");
  const File csv("csv");
  const Finished run = RunBench({"--np", "4", "-b", "4K", "-e64K", "--stepfactor=16", "-n", "12",
                                 "-w", "1", "--percentiles", "50,99.9", "--json", json.path(),
                                 "--csv", csv.path(), "--samples"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("4 ranks on "), HasSubstr("    p99.9"),
                             HasSubstr("# wrong elements: 0 OK"), HasSubstr("# samples: ")));
  EXPECT_EQ(JsonFaults(json.path(), {"50", "90", "99", "99.9"}), "");
  EXPECT_THAT(json.text(), HasSubstr("\"complete\": true"));
  const std::string rows = csv.text();
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 5);
  EXPECT_THAT(rows, AllOf(HasSubstr("p99.9_us,max_us"), HasSubstr("65536,16384,float32,sum,true")));
}

// Empty when the file is a trace of these ranks with these names; see the script.
std::string TraceFaults(const std::string& path, std::vector<std::string> ranks_and_names) {
  std::vector<std::string> arguments = {
      "python3", "-B", OPTIREDUCE_TEST_SOURCE_DIR "/../../support/check_trace.py", path};
  arguments.insert(arguments.end(), ranks_and_names.begin(), ranks_and_names.end());
  const Finished finished = Process(arguments).Wait(kLong);
  return finished.exit_code == 0 ? "" : "not right: " + finished.out + finished.err;
}

TEST(Bench, ATraceHasEveryRanksIterations) {
  const File trace("trace");
  const Finished run = RunBench({"--np", "3", "-b", "4K", "-e", "8K", "-f", "2", "-n", "4", "-w",
                                 "2", "--trace", trace.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(TraceFaults(trace.path(), {"3", "4 KiB float32 sum out of place",
                                       "8 KiB float32 sum in place", "iteration>check"}),
            "");
  // Each rank warms up before each size and place.
  const std::string text = trace.text();
  std::size_t warm_ups = 0;
  for (std::size_t at = text.find("\"warm-up\""); at != std::string::npos;
       at = text.find("\"warm-up\"", at + 1)) {
    ++warm_ups;
  }
  EXPECT_EQ(warm_ups, 3U * 4U);
  // The script can object: the warm-up has ops of its own, and so has the other size.
  EXPECT_EQ(TraceFaults(trace.path(), {"3", "iteration>all_reduce", "8 KiB>iteration", "fetch"}),
            "not right: all_reduce outside of iteration\niteration outside of 8 KiB\n"
            "no event fetch\n");
  EXPECT_NE(TraceFaults(trace.path(), {"4", "iteration"}), "");
}

TEST(Simulator, ATraceHasEveryRanksCalls) {
  const File trace("trace");
  const Finished run =
      Process({OPTIREDUCE_TEST_BIN_DIR "/optireduce-sim", "--ranks", "4", "--ops", "5", "--loss",
               "10", "--trace", trace.path()})
          .Wait(kLong);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(TraceFaults(trace.path(), {"4", "call 4", "call>reduce", "drop to rank"}), "");
  EXPECT_EQ(Process({OPTIREDUCE_TEST_BIN_DIR "/optireduce-sim", "--ranks", "2", "--trace",
                     "/nonexistent/trace"})
                .Wait(kLong)
                .exit_code,
            2);
}

TEST(Bench, JsonMayGoToStandardOutput) {
  const File json("json");
  const Finished run =
      Process({"sh", "-c", Bench({})[0] + " --np 2 -b 1K -e 1K -n 3 --json - >" + json.path()})
          .Wait(kLong);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(JsonFaults(json.path(), {"50"}), "");
}

TEST(Bench, AJobKeyIsInNoOutput) {
  const File key("key");
  const File trace("trace");
  const File csv("csv");
  const std::string secret(64, 'a');
  WriteFile(key.path(), secret);
  const Finished run =
      RunBench({"--np", "2", "-b", "4K", "-e", "4K", "-n", "3", "--json", "-", "--csv", csv.path(),
                "--trace", trace.path(), "--set", "log.level=debug,job_key_file=" + key.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"job_key_file\": \"" + key.path()));
  EXPECT_THAT(run.out + run.err + csv.text() + trace.text(),
              AllOf(Not(HasSubstr("aaaaaaaa")), Not(HasSubstr("qqqqqqqq"))));
}

TEST(Bench, EveryTypeAndOperatorIsRight) {
  const Finished run = RunBench({"--np", "3", "-b", "1000", "-e", "1000", "-n", "1", "-w", "0",
                                 "-d", "all", "-o", "all"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("bfloat16  avg"), HasSubstr("int64 bxor")));
}

TEST(Bench, RandomValuesHaveARoundingError) {
  const Finished run = RunBench({"--np", "3", "-b", "64K", "-e", "64K", "-n", "2", "--values",
                                 "random", "-d", "float32", "--json", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"wrong\": 0"), Not(HasSubstr("\"max_rel_err\": 0,"))));
}

TEST(Bench, ExactModeRepairsLoss) {
  const Finished run = RunBench({"--np", "4", "-b", "256K", "-e", "256K", "-n", "10", "--loss",
                                 "1%"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("fault.loss_pct=1\n"), HasSubstr("# wrong elements: 0 OK")));
}

TEST(Bench, BoundedModeEndsWhateverIsLost) {
  const File json("json");
  const Finished run =
      RunBench({"--np", "4", "-b", "256K", "-e", "256K", "-n", "5", "-w", "1", "--mode", "bounded",
                "--loss", "30", "--deadline", "50ms", "--json", json.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(JsonFaults(json.path(), {"50", "90", "99"}), "");
}

TEST(Bench, UncheckedResultsAreNotCalledRight) {
  const Finished run = RunBench({"--np", "2", "-b", "1K", "-e", "1K", "-n", "3", "-c", "0",
                                 "--json", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"wrong\": null"), HasSubstr("\"max_rel_err\": null")));
}

TEST(Bench, WrongElementsAreInTheExitCode) {
  // Without the check over payloads nobody but the benchmark notices a flipped bit.
  const Finished run = RunBench({"--np", "2", "-b", "1M", "-e", "1M", "-n", "1", "-w", "0",
                                 "--corrupt", "5", "--set", "security.check=off"});
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("FAILED"));
}

TEST(Bench, ALongWarmUpIsBoundedAndSaysThatItIsAtWork) {
  const Finished run = RunBench({"--np", "2", "-b", "4K", "-e", "4K", "-n", "1", "-w", "10000000",
                                 "--time_cap", "9s"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("optireduce-bench: 4 KiB float32 sum out of place: warm-up\n"));
}

TEST(Bench, ATimeCapEndsARowOnAllRanksAtOnce) {
  const File json("json");
  const Finished run = RunBench({"--np", "3", "-b", "4K", "-e", "4K", "-n", "10000000", "-w",
                                 "10000000", "--time_cap", "200ms", "--json", json.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  // The statistics are those of a row of so many iterations.
  EXPECT_EQ(JsonFaults(json.path(), {"50", "90", "99"}), "");
  EXPECT_THAT(json.text(), HasSubstr("\"complete\": true"));
}

TEST(Bench, NamesAllFaultsOfACommandLine) {
  const Finished run = RunBench({"-np", "0", "-b", "4X", "-d", "float32,complex", "-n", "none",
                                 "--bogus", "stray", "--percentiles", "0", "--loss", "200",
                                 "--set", "nonsense", "-e"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  for (const char* const fault : {"-np: '0'", "-b: '4X'", "'complex'", "-n: 'none'", "--bogus",
                                  "'stray'", "--percentiles: '0'", "fault.loss_pct = '200'",
                                  "'nonsense'", "-e lacks"}) {
    EXPECT_THAT(run.err, HasSubstr(fault));
  }
}

TEST(Bench, RefusesWhatCannotBeMeasured) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--np", "2", "-d", "float32", "-o", "bor"},
           {"--np", "2", "-b", "1M", "-e", "1K"},
           {"--np", "2", "-b", "0", "-e", "4K"},
           {"--np", "2", "-e", "100T", "-b", "100T"},
           {"--np", "2", "--json", "/nonexistent/result.json"},
           {"--np", "2", "--set", "no.such.option=1"},
           {"--np", "129"}}) {
    const Finished run = RunBench(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments.back();
    EXPECT_THAT(run.err, HasSubstr("optireduce-bench: "));
  }
}

TEST(Bench, RefusesToRunAlone) {
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE=4", "SLURM_NTASKS=2", "PMI_SIZE=2"}) {
    const Finished run = RunBench({"-b", "1K", "-e", "1K"}, {variable});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr(variable));
  }
  EXPECT_EQ(RunBench({}).exit_code, 2);
  EXPECT_EQ(RunBench({}, {"RANK=0", "WORLD_SIZE=0"}).exit_code, 2);
  EXPECT_EQ(RunBench({}, {"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"})
                .exit_code,
            2);
  EXPECT_EQ(RunBench({"--np", "2"}, {"OPTIREDUCE_MOOD=good"}).exit_code, 2);
}

TEST(Bench, PrintsTheConfigurationWithOrigins) {
  const Finished run = RunBench({"--print-config", "--deadline", "50ms"}, {"OPTIREDUCE_SPIN=1us"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("bounded.bound = 50ms"),
                             HasSubstr("mode = exact  # default"),
                             HasSubstr("spin = 1us  # environment OPTIREDUCE_SPIN")));
}

TEST(Bench, AConfigurationFileGivesWayToEnvironmentAndFlags) {
  const File config("conf");
  const File other("other");
  WriteFile(config.path(), "mode = bounded\nspin = 3us\nbounded.bound = 40ms\n");
  WriteFile(other.path(), "op_timeout = 7s\n");
  const Finished run = RunBench({"--print-config", "--deadline", "50ms"},
                                {"OPTIREDUCE_SPIN=1us", "OPTIREDUCE_CONFIG_FILE=" + config.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("mode = bounded  # file " + config.path() + ":1\n"),
                             HasSubstr("spin = 1us  # environment OPTIREDUCE_SPIN\n"),
                             HasSubstr("bounded.bound = 50ms  # the program\n")));
  const Finished flag = RunBench({"--print-config", "--config", other.path()},
                                 {"OPTIREDUCE_CONFIG_FILE=" + config.path()});
  EXPECT_THAT(flag.out, AllOf(HasSubstr("mode = exact  # default\n"),
                              HasSubstr("op_timeout = 7s  # file " + other.path() + ":1\n")));
  const Finished missing = RunBench({"--np", "2", "--config", "/nonexistent/conf"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("file /nonexistent/conf: No such file or directory"));
}

TEST(Bench, HelpListsTheFlags) {
  const Finished run = RunBench({"--help"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("-b, --minbytes"), HasSubstr("--time_cap"),
                             HasSubstr("A sample is one iteration: the longest of the ranks' own "
                                       "durations")));
  EXPECT_THAT(RunBench({"--version"}).out, HasSubstr("optireduce-bench 0."));
}

}  // namespace
}  // namespace optireduce::bench
