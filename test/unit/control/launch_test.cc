#include "transport/control/launch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

using Environment = std::vector<std::string>;

TEST(LaunchTest, ReadsTheFourVariables) {
  const Environment environment{"HOME=/", "RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=node0",
                                "MASTER_PORT=29500"};
  const Result<Launch> launch = LaunchFrom(environment, {});
  ASSERT_TRUE(launch.ok()) << launch.status().ToString();
  EXPECT_EQ(launch->rank, 3u);
  EXPECT_EQ(launch->world_size, 8u);
  EXPECT_EQ(launch->master_address, "node0");
  EXPECT_EQ(launch->master_port, 29500);
  EXPECT_EQ(launch->listen_fd, -1);
}

TEST(LaunchTest, ExplicitValuesWin) {
  const Environment environment{"RANK=3", "WORLD_SIZE=x", "MASTER_ADDR=node0", "MASTER_PORT=0"};
  const Result<Launch> launch =
      LaunchFrom(environment, {.rank = 0, .world_size = 4, .master_address = "127.0.0.1",
                               .master_port = 4000, .listen_fd = 7});
  ASSERT_TRUE(launch.ok()) << launch.status().ToString();
  EXPECT_EQ(launch->rank, 0u);
  EXPECT_EQ(launch->world_size, 4u);
  EXPECT_EQ(launch->master_address, "127.0.0.1");
  EXPECT_EQ(launch->master_port, 4000);
  EXPECT_EQ(launch->listen_fd, 7);
}

TEST(LaunchTest, TellsAllFaultsAtOnce) {
  const Environment environment{"RANK=-1", "WORLD_SIZE=four", "MASTER_PORT=70000"};
  const Result<Launch> launch = LaunchFrom(environment, {});
  ASSERT_FALSE(launch.ok());
  EXPECT_EQ(launch.status().code(), Code::kInvalidArgument);
  const std::string& text = launch.status().text();
  for (const char* part : {"RANK is '-1'", "WORLD_SIZE is 'four'", "MASTER_ADDR is not set",
                           "MASTER_PORT is '70000'"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(LaunchTest, NothingSetNamesAllFour) {
  const Result<Launch> launch = LaunchFrom({}, {});
  ASSERT_FALSE(launch.ok());
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_NE(launch.status().text().find(std::string(name) + " is not set"), std::string::npos);
  }
}

std::string FaultOf(const Environment& environment, const ExplicitLaunch& values = {}) {
  const Result<Launch> launch = LaunchFrom(environment, values);
  return launch.ok() ? "" : launch.status().text();
}

TEST(LaunchTest, RefusesBadNumbers) {
  const std::string master = "MASTER_ADDR=a";
  const std::string port = "MASTER_PORT=1";
  EXPECT_NE(FaultOf({"RANK=0", "WORLD_SIZE=0", master, port}), "");
  EXPECT_NE(FaultOf({"RANK=0", "WORLD_SIZE=1025", master, port}), "");
  EXPECT_NE(FaultOf({"RANK=0", "WORLD_SIZE=99999999999999999999", master, port}), "");
  EXPECT_NE(FaultOf({"RANK=4", "WORLD_SIZE=4", master, port}), "");
  EXPECT_NE(FaultOf({"RANK=", "WORLD_SIZE=4", master, port}), "");
  EXPECT_NE(FaultOf({"RANK= 1", "WORLD_SIZE=4", master, port}), "");
  EXPECT_NE(FaultOf({"RANK=1x", "WORLD_SIZE=4", master, port}), "");
  EXPECT_NE(FaultOf({"RANK=1", "WORLD_SIZE=4", master, "MASTER_PORT=0"}), "");
  EXPECT_NE(FaultOf({"RANK=1", "WORLD_SIZE=4", "MASTER_ADDR=", port}), "");
  ExplicitLaunch listening;
  listening.listen_fd = 5;
  EXPECT_NE(FaultOf({"RANK=1", "WORLD_SIZE=4", master, port}, listening), "");
  EXPECT_EQ(FaultOf({"RANK=3", "WORLD_SIZE=4", master, port}), "");
  EXPECT_EQ(FaultOf({"RANK=1023", "WORLD_SIZE=1024", master, port}), "");
}

TEST(LaunchTest, ALoneRankNeedsNoMaster) {
  EXPECT_EQ(FaultOf({"RANK=0", "WORLD_SIZE=1"}), "");
  EXPECT_NE(FaultOf({"RANK=0", "WORLD_SIZE=1", "MASTER_PORT=x"}), "");
}

TEST(LaunchTest, TheAddressMayCarryThePort) {
  const Environment environment{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=[::1]:4711"};
  const Result<Launch> launch = LaunchFrom(environment, {});
  ASSERT_TRUE(launch.ok()) << launch.status().ToString();
  EXPECT_EQ(launch->master_address, "::1");
  EXPECT_EQ(launch->master_port, 4711);
  EXPECT_NE(FaultOf({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a:4711", "MASTER_PORT=4712"}), "");
  EXPECT_EQ(FaultOf({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a:4711", "MASTER_PORT=4711"}), "");
}

TEST(EndpointTest, SplitsWhatPeopleWrite) {
  struct Case {
    const char* text;
    const char* host;
    int port;  // 0: none
  };
  for (const Case& c : {Case{"host", "host", 0}, Case{"host:1", "host", 1},
                        Case{"10.0.0.1", "10.0.0.1", 0}, Case{"10.0.0.1:65535", "10.0.0.1", 65535},
                        Case{"::1", "::1", 0}, Case{"[::1]", "::1", 0}, Case{"[::1]:2", "::1", 2},
                        Case{"tcp://[fd00::1]:29500", "fd00::1", 29500},
                        Case{"fe80::1%eth0", "fe80::1%eth0", 0}}) {
    const Result<HostPort> split = SplitHostPort(c.text);
    ASSERT_TRUE(split.ok()) << c.text << ": " << split.status().text();
    EXPECT_EQ(split->host, c.host);
    EXPECT_EQ(split->port.value_or(0), c.port);
  }
  for (const char* text : {"", ":1", "host:", "host:x", "host:65536", "host:0", "[::1", "[::1]x",
                           "[host]:1", "a b", "tcp://", "http://x", "1:2:3:nonsense", "[::1]:"}) {
    EXPECT_FALSE(SplitHostPort(text).ok()) << text;
  }
}

TEST(EndpointTest, ShowsTheBracketsWhereTheyAreMissing) {
  const Result<HostPort> split = SplitHostPort("tcp://fd00::1:29500");
  ASSERT_FALSE(split.ok());
  EXPECT_NE(split.status().text().find("[fd00::1]:29500"), std::string::npos)
      << split.status().text();
}

TEST(EndpointTest, KnowsKindsOfAddresses) {
  EXPECT_EQ(JoinHostPort("::1", 5), "[::1]:5");
  EXPECT_EQ(JoinHostPort("1.2.3.4", 5), "1.2.3.4:5");
  EXPECT_TRUE(IsLoopback("127.0.1.1"));
  EXPECT_TRUE(IsLoopback("::1"));
  EXPECT_FALSE(IsLoopback("10.0.0.1"));
  EXPECT_FALSE(IsLoopback("localhost"));
  EXPECT_TRUE(IsWildcard("0.0.0.0"));
  EXPECT_TRUE(IsWildcard("::"));
  EXPECT_EQ(FamilyOf("10.0.0.1"), AddressFamily::kIpv4);
  EXPECT_EQ(FamilyOf("fe80::1%eth0"), AddressFamily::kIpv6);
  EXPECT_EQ(FamilyOf("host"), AddressFamily::kAny);
}

TEST(EndpointTest, FindsTheAddressOfAnInterface) {
  const Result<std::string> loopback = LocalAddress("lo", AddressFamily::kIpv4);
  ASSERT_TRUE(loopback.ok()) << loopback.status().text();
  EXPECT_EQ(*loopback, "127.0.0.1");
  EXPECT_EQ(*LocalAddress("::1", AddressFamily::kAny), "::1");
  EXPECT_FALSE(LocalAddress("::1", AddressFamily::kIpv4).ok());
  const Result<std::string> none = LocalAddress("no_such_if", AddressFamily::kAny);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().text().find("lo"), std::string::npos);
}

TEST(EndpointTest, QuotedTextIsShortAndPrintable) {
  EXPECT_EQ(Quoted("a\x1b[2J\n"), "'a?[2J?'");
  EXPECT_LT(Quoted(std::string(1000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace optireduce::control
