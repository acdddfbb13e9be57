// Where a container gives little: no capabilities, one CPU, small socket queues, no offloads, no
// IPv6. The benchmark runs, is right, and says what it could not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "test/loopback/bench/process.h"

namespace optireduce::bench {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr seconds kLong(120);
constexpr int kRanks = 4;

// `prefix` before the benchmark of four ranks with `arguments`.
Finished RunUnder(std::vector<std::string> prefix, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = Bench({"--np", std::to_string(kRanks), "-b", "1M", "-e", "1M",
                                          "-n", "3", "-w", "1"});
  prefix.insert(prefix.end(), words.begin(), words.end());
  prefix.insert(prefix.end(), arguments.begin(), arguments.end());
  return Process(prefix).Wait(kLong);
}

bool Works(std::vector<std::string> prefix) {
  prefix.emplace_back("true");
  return Process(prefix).Wait(kLong).exit_code == 0;
}

// What takes all capabilities from whom has any, and leaves one CPU.
std::vector<std::string> OneCpuNoRights() {
  std::vector<std::string> prefix = {"taskset", "-c", "0"};
  if (geteuid() == 0) {
    prefix.insert(prefix.end(), {"setpriv", "--bounding-set", "-all", "--inh-caps", "-all",
                                 "--no-new-privs"});
  }
  return prefix;
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Container, WithoutRightsEachRankSaysOnceWhatItCouldNotHave) {
  const std::vector<std::string> prefix = OneCpuNoRights();
  if (!Works(prefix)) GTEST_SKIP() << "may not drop capabilities or choose a CPU";
  const Finished run = RunUnder(prefix, {"--set", "udp.socket_buffer_bytes=1G"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# wrong elements: 0 OK"));
  for (const std::string which : {"receive", "send"}) {
    EXPECT_EQ(Count(run.err, "udp: " + which + " queue clipped to "), kRanks) << run.err;
  }
  EXPECT_THAT(run.err, AllOf(HasSubstr("run: sysctl -w net.core.rmem_max=1073741824"),
                             HasSubstr("run: sysctl -w net.core.wmem_max=1073741824")));
}

TEST(Container, SmallQueuesWithoutOffloadsOnOneCpuAreEnough) {
  const std::vector<std::string> prefix = OneCpuNoRights();
  if (!Works(prefix)) GTEST_SKIP() << "may not drop capabilities or choose a CPU";
  const Finished run = RunUnder(prefix, {"--set", "udp.socket_buffer_bytes=208K,udp.gso=off",
                                         "--set", "udp.gro=off"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("gso=off gro=off receive queue 0.2 MB"),
                             HasSubstr("# wrong elements: 0 OK")));
}

TEST(Container, AHostWithoutIpv6IsNoHindrance) {
  const std::string narrow =
      "ip link set lo up && echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && "
      "! ip -6 address show dev lo | grep -q inet6 && exec \"$@\"";
  const std::vector<std::string> prefix = {"unshare", "--net", "sh", "-c", narrow, "sh"};
  if (!Works(prefix)) GTEST_SKIP() << "may not make a network namespace";
  const Finished run = RunUnder(prefix, {});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# wrong elements: 0 OK"));
  EXPECT_THAT(run.err, Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace optireduce::bench
