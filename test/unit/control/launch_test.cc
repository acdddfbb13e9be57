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

// What a launcher sets beside the meeting point.
Environment With(Environment environment) {
  environment.insert(environment.end(), {"MASTER_ADDR=a", "MASTER_PORT=1"});
  return environment;
}

const Environment kOpenMpi{"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
                           "OMPI_COMM_WORLD_LOCAL_RANK=1"};
const Environment kHydra{"PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALRANKID=1"};
const Environment kMvapich{"MV2_COMM_WORLD_RANK=2", "MV2_COMM_WORLD_SIZE=4",
                           "MV2_COMM_WORLD_LOCAL_RANK=1"};
const Environment kSrun{"SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=4",
                        "SLURM_LOCALID=1"};
const Environment kTorchrun{"RANK=2", "WORLD_SIZE=4", "LOCAL_RANK=1"};

Environment operator+(Environment a, const Environment& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class LauncherTest : public testing::TestWithParam<const Environment*> {};

TEST_P(LauncherTest, ItsWholeSetIsEnough) {
  const Result<Launch> launch = LaunchFrom(With(*GetParam()), {});
  ASSERT_TRUE(launch.ok()) << launch.status().text();
  EXPECT_EQ(launch->rank, 2u);
  EXPECT_EQ(launch->world_size, 4u);
  EXPECT_EQ(launch->local_rank, 1u);
  const std::string name = GetParam()->front().substr(0, GetParam()->front().find('='));
  EXPECT_NE(launch->origin.find(name), std::string::npos) << launch->origin;
}

TEST_P(LauncherTest, HalfOfItAndNonsenseAreNamed) {
  for (const std::size_t lacking : {0U, 1U}) {
    Environment half = With(*GetParam());
    const std::string name = half[lacking].substr(0, half[lacking].find('='));
    half.erase(half.begin() + static_cast<std::ptrdiff_t>(lacking));
    if (name == "SLURM_NTASKS") half.erase(half.begin() + 1);  // either is enough for the size
    EXPECT_NE(FaultOf(half), "") << name;
    Environment nonsense = With(*GetParam());
    nonsense[lacking] = name + "=-3";
    if (name == "SLURM_NTASKS") continue;  // not read beside srun's own
    EXPECT_NE(FaultOf(nonsense).find(name + " is '-3'"), std::string::npos) << FaultOf(nonsense);
  }
  Environment local = With(*GetParam());
  for (std::string& entry : local) {
    if (entry.find("LOCAL") != std::string::npos) entry = entry.substr(0, entry.find('=')) + "=4";
  }
  EXPECT_NE(FaultOf(local).find("allowed are 0 to 3"), std::string::npos) << FaultOf(local);
}

TEST_P(LauncherTest, TheCallersWordIsTheLast) {
  const Result<Launch> launch =
      LaunchFrom(With(*GetParam()), {.rank = 0, .world_size = 1, .master_address = {},
                                     .master_port = {}});
  ASSERT_TRUE(launch.ok()) << launch.status().text();
  EXPECT_EQ(launch->world_size, 1u);
  EXPECT_EQ(launch->local_rank, std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(All, LauncherTest,
                         testing::Values(&kTorchrun, &kOpenMpi, &kHydra, &kMvapich, &kSrun));

TEST(LauncherSetsTest, SetsThatAgreeAreFine) {
  EXPECT_EQ(FaultOf(With(kTorchrun + kOpenMpi + kHydra + kMvapich + kSrun)), "");
}

TEST(LauncherSetsTest, ContradictionsNameBothSets) {
  // A shell's forgotten variables under mpirun: every process would be rank 0.
  const std::string text = FaultOf(With({"RANK=0", "WORLD_SIZE=4"}) + kOpenMpi);
  EXPECT_NE(text.find("RANK=0, WORLD_SIZE=4 and OMPI_COMM_WORLD_RANK=2, OMPI_COMM_WORLD_SIZE=4 "
                      "contradict each other"),
            std::string::npos)
      << text;
  EXPECT_NE(FaultOf(With({"RANK=2", "WORLD_SIZE=8"}) + kHydra), "");
  EXPECT_NE(FaultOf(With({"RANK=2", "WORLD_SIZE=3", "LOCAL_RANK=0"}) + kSrun), "");
  EXPECT_NE(FaultOf(With({"PMI_RANK=1", "PMI_SIZE=4"}) + kOpenMpi), "");
  EXPECT_NE(FaultOf(With(kMvapich + Environment{"PMI_RANK=1", "PMI_SIZE=4"})), "");
}

TEST(LauncherSetsTest, NobodyRunsAloneWhereALauncherStartedSeveral) {
  for (const Environment* launcher : {&kOpenMpi, &kHydra, &kMvapich, &kSrun}) {
    const std::string text = FaultOf(With({"RANK=0", "WORLD_SIZE=1"}) + *launcher);
    EXPECT_NE(text.find("RANK=0, WORLD_SIZE=1 and " + launcher->front()), std::string::npos)
        << text;
  }
  for (const std::string size : {"OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=2", "MV2_COMM_WORLD_SIZE=3",
                                 "SLURM_NTASKS=8", "SLURM_STEP_NUM_TASKS=2"}) {
    EXPECT_NE(FaultOf({size}).find(size), std::string::npos) << FaultOf({size});
  }
}

TEST(LauncherSetsTest, OneLauncherMayRunInsideAnother) {
  const auto rank_of = [](const Environment& environment) {
    const Result<Launch> launch = LaunchFrom(environment, {});
    EXPECT_TRUE(launch.ok()) << launch.status().text();
    return launch.ok() ? launch->rank : kRanksMax;
  };
  // torchrun, or a launcher like it, started once a host.
  EXPECT_EQ(rank_of(With({"RANK=9", "WORLD_SIZE=16", "LOCAL_RANK=1"}) + kSrun), 9u);
  EXPECT_EQ(rank_of(With({"RANK=0", "WORLD_SIZE=1", "TORCHELASTIC_RUN_ID=x"}) + kOpenMpi), 0u);
  // By hand in the shell of an interactive step, or in a shell that mpirun started.
  EXPECT_EQ(rank_of(With({"RANK=3", "WORLD_SIZE=4", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1"})),
            3u);
  // mpirun's daemons are started by srun, one a host.
  EXPECT_EQ(rank_of(With({"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2"}) + kOpenMpi), 2u);
  // mpiexec inside mpirun -np 1.
  EXPECT_EQ(rank_of(With({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1"}) + kHydra), 2u);
}

TEST(LauncherSetsTest, AnAllocationStartsNobody) {
  for (const Environment& batch :
       {Environment{"SLURM_NTASKS=4"}, Environment{"SLURM_NTASKS=4", "SLURM_PROCID=0"}}) {
    const std::string text = FaultOf(With(batch));
    EXPECT_NE(text.find("SLURM_NTASKS=4, but srun has not started this process"),
              std::string::npos)
        << text;
    EXPECT_EQ(FaultOf(With(batch) + kTorchrun), "");
    EXPECT_EQ(FaultOf(With(batch) + kOpenMpi), "");
  }
}

TEST(LauncherSetsTest, TheStepsFirstHostIsTheMaster) {
  const auto master = [](const std::string& nodes, const Environment& more) {
    const Result<Launch> launch =
        LaunchFrom(kSrun + Environment{"MASTER_PORT=1", "SLURM_STEP_NODELIST=" + nodes} + more, {});
    return launch.ok() ? launch->master_address : "";
  };
  EXPECT_EQ(master("n1", {}), "n1");
  EXPECT_EQ(master("n1,n2", {}), "n1");
  EXPECT_EQ(master("node[03-05,7],x9", {}), "node03");
  EXPECT_EQ(master("rack[2,4]n[10-12]-ib", {}), "rack2n10-ib");
  EXPECT_EQ(master("node[1-2", {}), "");
  EXPECT_EQ(master("]", {}), "");
  EXPECT_EQ(master("", {}), "");
  EXPECT_EQ(master("n1", {"MASTER_ADDR=b"}), "b");
  EXPECT_EQ(master("n1", {"SLURM_DISTRIBUTION=arbitrary"}), "");
  // The launching host need not be one of the ranks' hosts.
  EXPECT_NE(FaultOf(kSrun + Environment{"MASTER_PORT=1", "SLURM_LAUNCH_NODE_IPADDR=10.0.0.1"}), "");
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
