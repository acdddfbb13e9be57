// How ranks come together, and what they are told when they do not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "test/loopback/control/group.h"

namespace optireduce::control {
namespace {

using std::chrono::milliseconds;

std::vector<Spec> SpecsOf(std::uint32_t world_size, std::uint16_t port) {
  std::vector<Spec> specs;
  for (Rank rank = 0; rank < world_size; ++rank) specs.push_back(SpecOf(rank, world_size, port));
  return specs;
}

void ExpectOneGroup(const std::vector<Joined>& group) {
  for (const Joined& joined : group) ASSERT_TRUE(joined.ok()) << joined.status().ToString();
  const Membership& first = (*group.front())->membership();
  EXPECT_EQ(first.members.size(), group.size());
  EXPECT_NE(first.group_id, 0u);
  for (const Joined& joined : group) {
    const Membership& own = (*joined)->membership();
    EXPECT_EQ(own.members, first.members);
    EXPECT_EQ(own.group_id, first.group_id);
    EXPECT_TRUE(own.job_key == first.job_key);
  }
}

class JoinTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(JoinTest, AllRanksGetTheSameMembership) {
  const std::uint32_t world_size = GetParam();
  const std::vector<Joined> group = JoinAll(SpecsOf(world_size, FreePort()));
  ExpectOneGroup(group);
  const std::vector<Member>& members = (*group.front())->membership().members;
  for (Rank rank = 0; rank < world_size; ++rank) {
    EXPECT_EQ(members[rank].host, "node" + std::to_string(rank));
    EXPECT_EQ(members[rank].pid, static_cast<std::uint64_t>(getpid()));
    if (world_size > 1) {
      EXPECT_EQ(members[rank].data_endpoint, "127.0.0.1:" + std::to_string(4000 + rank));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, JoinTest, testing::Values(1, 2, 4, 8));

TEST(ControlJoinTest, GroupsHaveTheirOwnIdsAndKeys) {
  const auto a = MakeGroup(2);
  const auto b = MakeGroup(2);
  EXPECT_NE(a[0]->membership().group_id, b[0]->membership().group_id);
  EXPECT_FALSE(a[0]->membership().job_key == b[0]->membership().job_key);
}

TEST(ControlJoinTest, ALoneRankNeedsNeitherAddressNorPort) {
  Spec spec = SpecOf(0, 1, 0);
  spec.launch.master_address = "";
  EXPECT_TRUE(Join(spec).ok());
}

TEST(ControlJoinTest, AdoptsAListeningSocket) {
  const auto group = MakeGroup(4);
  for (const auto& plane : group) ASSERT_NE(plane, nullptr);
}

TEST(ControlJoinTest, RefusesASocketThatDoesNotListen) {
  Spec spec = SpecOf(0, 2, 4711);
  spec.launch.listen_fd = dup(1);
  const Joined joined = Join(spec);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(close(spec.launch.listen_fd), -1) << "Join owns the descriptor";
}

TEST(ControlJoinTest, TheMasterMayComeLast) {
  const std::uint16_t port = FreePort();
  std::vector<Spec> specs = SpecsOf(3, port);
  std::vector<std::future<Joined>> clients;
  for (Rank rank = 1; rank < 3; ++rank) {
    clients.push_back(std::async(std::launch::async, [&, rank] { return Join(specs[rank]); }));
  }
  // Long enough for refused connections; there is nothing to wait on.
  std::this_thread::sleep_for(milliseconds(150));
  const Joined master = Join(specs[0]);
  EXPECT_TRUE(master.ok()) << master.status().ToString();
  for (auto& client : clients) {
    const Joined joined = client.get();
    EXPECT_TRUE(joined.ok()) << joined.status().ToString();
  }
}

TEST(ControlJoinTest, WorksOverIpv6) {
  Listener listener("::1");
  std::vector<Spec> specs = SpecsOf(2, listener.port());
  for (Spec& spec : specs) spec.launch.master_address = "::1";
  specs[0].launch.listen_fd = listener.Take();
  const std::vector<Joined> group = JoinAll(specs);
  ExpectOneGroup(group);
  EXPECT_EQ((*group[1])->membership().members[1].data_endpoint, "[::1]:4001");
}

TEST(ControlJoinTest, ResolvesNames) {
  std::vector<Spec> specs = SpecsOf(2, FreePort());
  for (Spec& spec : specs) {
    spec.launch.master_address = "localhost";
    spec.info.family = AddressFamily::kIpv4;
  }
  ExpectOneGroup(JoinAll(specs));
}

TEST(ControlJoinTest, TheAdvertisedAddressIsWhatPeersAreTold) {
  std::vector<Spec> specs = SpecsOf(2, FreePort());
  for (Spec& spec : specs) spec.info.advertise_address = "10.9.8.7";
  const std::vector<Joined> group = JoinAll(specs);
  ExpectOneGroup(group);
  EXPECT_EQ((*group[1])->membership().members[0].data_endpoint, "10.9.8.7:4000");
}

TEST(ControlJoinTest, ALoopbackAddressForOtherHostsIsRefusedOnEveryRank) {
  std::vector<Spec> specs = SpecsOf(2, FreePort());
  specs[1].info.advertise_address = "10.9.8.7";
  for (const Joined& joined : JoinAll(specs)) {
    ASSERT_FALSE(joined.ok());
    EXPECT_TRUE(Has(joined.status(), "rank 0 would tell peers a loopback address"))
        << joined.status().text();
  }
}

TEST(ControlJoinTest, BindsWhereItIsTold) {
  std::vector<Spec> specs = SpecsOf(2, FreePort());
  for (Spec& spec : specs) spec.info.bind_address = "lo";
  const std::vector<Joined> group = JoinAll(specs);
  ExpectOneGroup(group);
  EXPECT_EQ((*group[0])->membership().members[1].data_endpoint, "127.0.0.1:4001");
}

TEST(ControlJoinTest, MissingRanksAreNamedAtTheLimit) {
  const std::uint16_t port = FreePort();
  std::vector<Spec> specs = SpecsOf(4, port);
  specs.erase(specs.begin() + 2);
  for (Spec& spec : specs) spec.limit = milliseconds(400);
  for (const Joined& joined : JoinAll(specs)) {
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.status().code(), Code::kTimeout);
    EXPECT_TRUE(Has(joined.status(), "rank 2 is missing")) << joined.status().text();
  }
}

TEST(ControlJoinTest, AClientWithAShorterLimitKnowsWhoIsMissingToo) {
  const std::uint16_t port = FreePort();
  std::vector<Spec> specs = SpecsOf(3, port);
  specs.pop_back();
  specs[0].limit = milliseconds(900);
  specs[1].limit = milliseconds(300);
  const std::vector<Joined> group = JoinAll(specs);
  ASSERT_FALSE(group[0].ok());
  ASSERT_FALSE(group[1].ok());
  EXPECT_TRUE(Has(group[1].status(), "rank 2 is missing")) << group[1].status().text();
  EXPECT_TRUE(Has(group[0].status(), "rank 2 is missing, rank 1 came but went away again"))
      << group[0].status().text();
}

TEST(ControlJoinTest, WithoutAMasterTheAddressIsNamed) {
  const std::uint16_t port = FreePort();
  Spec spec = SpecOf(1, 2, port);
  spec.limit = milliseconds(200);
  const Joined joined = Join(spec);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kTimeout);
  EXPECT_TRUE(Has(joined.status(), "rank 0 is missing")) << joined.status().text();
  EXPECT_TRUE(Has(joined.status(), "127.0.0.1:" + std::to_string(port))) << joined.status().text();
}

TEST(ControlJoinTest, APortThatNeverAnswersIsNamed) {
  const Listener mute;
  Spec spec = SpecOf(1, 2, mute.port());
  spec.limit = milliseconds(200);
  const Joined joined = Join(spec);
  ASSERT_FALSE(joined.ok());
  EXPECT_TRUE(Has(joined.status(), "accepts the connection but does not answer"))
      << joined.status().text();
}

TEST(ControlJoinTest, ANameThatDoesNotResolveIsNamed) {
  Spec spec = SpecOf(1, 2, 29500);
  spec.launch.master_address = "no-such-host.invalid";
  spec.limit = milliseconds(300);
  const Joined joined = Join(spec);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kTimeout);
  EXPECT_TRUE(Has(joined.status(), "no-such-host.invalid")) << joined.status().text();
}

TEST(ControlJoinTest, APortInUseIsNamedAtOnce) {
  const Listener other;
  const Joined joined = Join(SpecOf(0, 2, other.port()));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kUnavailable);
  EXPECT_TRUE(Has(joined.status(), "port " + std::to_string(other.port())))
      << joined.status().text();
}

TEST(ControlJoinTest, AnAddressOfAnotherHostIsNamed) {
  Spec spec = SpecOf(0, 2, FreePort());
  spec.launch.master_address = "203.0.113.1";
  const Joined joined = Join(spec);
  ASSERT_FALSE(joined.ok());
  EXPECT_TRUE(Has(joined.status(), "203.0.113.1")) << joined.status().text();
}

TEST(ControlJoinTest, BadLaunchesAreRefused) {
  EXPECT_FALSE(Join(SpecOf(0, 0, 1)).ok());
  EXPECT_FALSE(Join(SpecOf(2, 2, 1)).ok());
  EXPECT_FALSE(Join(SpecOf(0, 2, 0)).ok());
  EXPECT_FALSE(Join(SpecOf(0, kRanksMax + 1, 1)).ok());
}

TEST(ControlJoinTest, AFailureToBindIsTheRanksOwn) {
  Spec spec = SpecOf(0, 2, FreePort());
  const Joined joined = ControlPlane::Join(
      spec.launch, spec.info, spec.limit,
      [](const std::string&) -> Result<std::string> {
        return Status(Code::kUnavailable, "no socket today");
      });
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kUnavailable);
  EXPECT_TRUE(Has(joined.status(), "no socket today"));
}

// Every rank is told the same, with the odd rank named.
void ExpectAllTold(const std::vector<Joined>& group, const std::string& part) {
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    ASSERT_FALSE(group[rank].ok()) << rank;
    EXPECT_EQ(group[rank].status().code(), Code::kMismatch) << group[rank].status().ToString();
    EXPECT_TRUE(Has(group[rank].status(), part)) << rank << ": " << group[rank].status().text();
  }
}

TEST(ControlMismatchTest, TheOddVersionIsNamedOnEveryRank) {
  std::vector<Spec> specs = SpecsOf(4, FreePort());
  specs[2].info.version = "0.9";
  ExpectAllTold(JoinAll(specs), "version: rank 2 has '0.9', ranks 0, 1, 3 have '1.0'");
}

TEST(ControlMismatchTest, TheOddOptionIsNamedOnEveryRank) {
  std::vector<Spec> specs = SpecsOf(4, FreePort());
  specs[3].info.wire_config_text = "mode=exact\ntransport.path_mtu=9000\n";
  specs[3].info.wire_config_hash = 8;
  ExpectAllTold(JoinAll(specs),
                "rank 3 has transport.path_mtu=9000 (others: transport.path_mtu=1500)");
}

TEST(ControlMismatchTest, TheOddWorldSizeIsNamedOnEveryRank) {
  std::vector<Spec> specs = SpecsOf(4, FreePort());
  specs[1].launch.world_size = 2;
  ExpectAllTold(JoinAll(specs), "world size: rank 1 has 2, ranks 0, 2, 3 have 4");
}

TEST(ControlMismatchTest, RanksBeyondTheMastersWorldAreToldToo) {
  std::vector<Spec> specs = SpecsOf(3, FreePort());
  specs[0].launch.world_size = 2;
  ExpectAllTold(JoinAll(specs), "world size: rank 0 has 2, ranks 1, 2 have 3");
}

TEST(ControlMismatchTest, AMismatchIsToldAtTheLimitEvenIfARankIsMissing) {
  std::vector<Spec> specs = SpecsOf(3, FreePort());
  specs.pop_back();
  specs[1].info.version = "0.9";
  specs[0].limit = milliseconds(300);
  ExpectAllTold(JoinAll(specs), "version: rank 1 has '0.9', rank 0 has '1.0'");
}

TEST(ControlMismatchTest, ASecondClaimOfARankIsRefused) {
  std::vector<Spec> specs = SpecsOf(3, FreePort());
  Spec twin = specs[1];
  twin.info.host = "twin";
  twin.bound_suffix = "4999";
  auto master = std::async(std::launch::async, [&] { return Join(specs[0]); });
  auto one = std::async(std::launch::async, [&] { return Join(specs[1]); });
  auto two = std::async(std::launch::async, [&] { return Join(twin); });
  // One of the two is refused while the group still waits for rank 2.
  std::future<Joined>* refused = nullptr;
  while (refused == nullptr) {
    if (one.wait_for(milliseconds(5)) == std::future_status::ready) refused = &one;
    if (two.wait_for(milliseconds(5)) == std::future_status::ready) refused = &two;
  }
  const Joined loser = refused->get();
  ASSERT_FALSE(loser.ok());
  EXPECT_EQ(loser.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(Has(loser.status(), "rank 1 is taken already")) << loser.status().text();
  const Joined last = Join(specs[2]);
  EXPECT_TRUE(last.ok()) << last.status().ToString();
  EXPECT_TRUE(master.get().ok());
  EXPECT_TRUE((refused == &one ? two : one).get().ok());
}

TEST(ControlMismatchTest, AClaimForACompleteGroupIsRefused) {
  Listener listener;
  std::vector<Spec> specs = SpecsOf(2, listener.port());
  Spec late = specs[1];
  late.info.host = "late";
  late.bound_suffix = "4999";
  specs[0].launch.listen_fd = listener.Take();
  const std::vector<Joined> group = JoinAll(specs);
  ExpectOneGroup(group);
  const Joined joined = Join(late);
  ASSERT_FALSE(joined.ok());
  EXPECT_TRUE(Has(joined.status(), "rank 1 is taken already by pid")) << joined.status().text();
}

class KeyFile {
 public:
  KeyFile(const std::string& name, const std::string& content)
      : path_(testing::TempDir() + name + std::to_string(getpid())) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~KeyFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ControlKeyTest, RanksWithTheKeyJoin) {
  const KeyFile file("control_join_key_", "correct horse battery staple");
  std::vector<Spec> specs = SpecsOf(3, FreePort());
  for (Spec& spec : specs) spec.info.job_key_file = file.path();
  ExpectOneGroup(JoinAll(specs));
}

TEST(ControlKeyTest, NobodyWithoutTheKeyJoins) {
  const KeyFile right("control_right_key_", "correct horse battery staple");
  const KeyFile wrong("control_wrong_key_", "incorrect horse battery staple");
  const std::uint16_t port = FreePort();
  std::vector<Spec> specs = SpecsOf(3, port);
  for (Spec& spec : specs) spec.info.job_key_file = right.path();
  Spec other_key = specs[1];
  other_key.info.job_key_file = wrong.path();
  Spec no_key = specs[1];
  no_key.info.job_key_file = "";
  auto master = std::async(std::launch::async, [&] { return Join(specs[0]); });
  for (const Spec& spec : {other_key, no_key}) {
    const Joined joined = Join(spec);
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.status().code(), Code::kMismatch) << joined.status().ToString();
    EXPECT_TRUE(Has(joined.status(), "job key")) << joined.status().text();
    EXPECT_FALSE(Has(joined.status(), "horse"));
  }
  // And they have spoilt nothing.
  const std::vector<Joined> rest = JoinAll({specs[1], specs[2]});
  EXPECT_TRUE(rest[0].ok() && rest[1].ok());
  EXPECT_TRUE(master.get().ok());
}

TEST(ControlKeyTest, ARankWithAKeyDoesNotTrustAMasterWithoutOne) {
  const KeyFile file("control_lone_key_", "correct horse battery staple");
  std::vector<Spec> specs = SpecsOf(2, FreePort());
  specs[0].limit = milliseconds(500);
  specs[1].info.job_key_file = file.path();
  const std::vector<Joined> group = JoinAll(specs);
  ASSERT_FALSE(group[0].ok());
  ASSERT_FALSE(group[1].ok());
  EXPECT_TRUE(Has(group[1].status(), "rank 0 has none")) << group[1].status().text();
  EXPECT_TRUE(Has(group[0].status(), "has a job key file")) << group[0].status().text();
}

TEST(ControlKeyTest, AMissingKeyFileIsNamed) {
  Spec spec = SpecOf(1, 2, 29500);
  spec.info.job_key_file = "/no/such/key";
  const Joined joined = Join(spec);
  ASSERT_FALSE(joined.ok());
  EXPECT_TRUE(Has(joined.status(), "/no/such/key"));
}

TEST(ControlStrangerTest, StrangersDoNotKeepTheGroupFromMeeting) {
  Listener listener;
  const std::uint16_t port = listener.port();
  std::vector<Spec> specs = SpecsOf(4, port);
  specs[0].launch.listen_fd = listener.Take();
  auto master = std::async(std::launch::async, [&] { return Join(specs[0]); });
  std::vector<Stranger> idle;
  for (int i = 0; i < 200; ++i) {
    Stranger empty(port);
    if (i % 2 == 0) empty.Reset();
  }
  for (int i = 0; i < 300; ++i) {  // more than the master keeps
    idle.emplace_back(port);
    if (i % 3 == 0) idle.back().Send("OPCT");  // half a header
  }
  Stranger garbage(port);
  garbage.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(garbage.ClosedWithin(milliseconds(5000)));
  Stranger oversize(port);
  Bytes header = FrameOf(FrameType::kHello);
  header[8] = std::byte{0x7f};  // 2 GB to come
  oversize.Send(header);
  EXPECT_TRUE(oversize.ClosedWithin(milliseconds(5000)));
  Stranger early(port);
  early.Send(FrameOf(FrameType::kAbort, Serialize(Abort{0, Code::kAborted, "go away"})));
  EXPECT_TRUE(early.ClosedWithin(milliseconds(5000)));
  const std::vector<Joined> rest = JoinAll({specs[1], specs[2], specs[3]});
  for (const Joined& joined : rest) EXPECT_TRUE(joined.ok()) << joined.status().ToString();
  const Joined first = master.get();
  EXPECT_TRUE(first.ok()) << first.status().ToString();
}

TEST(ControlStrangerTest, AnIdleGuestIsClosedAfterAWhile) {
  Listener listener;
  Spec spec = SpecOf(0, 2, listener.port());
  spec.launch.listen_fd = listener.Take();
  const std::uint16_t port = listener.port();
  auto master = std::async(std::launch::async, [&] { return Join(spec); });
  Stranger idle(port);
  EXPECT_TRUE(idle.ClosedWithin(milliseconds(8000)));
  EXPECT_TRUE(Join(SpecOf(1, 2, port)).ok());
  EXPECT_TRUE(master.get().ok());
}

TEST(ControlStrangerTest, AnotherProtocolVersionIsToldWhy) {
  Listener listener;
  const std::uint16_t port = listener.port();
  std::vector<Spec> specs = SpecsOf(2, port);
  specs[0].launch.listen_fd = listener.Take();
  auto master = std::async(std::launch::async, [&] { return Join(specs[0]); });
  Stranger newer(port);
  Bytes hello = FrameOf(FrameType::kHello, Serialize(Hello{}));
  hello[4] = std::byte{9};
  newer.Send(hello);
  EXPECT_TRUE(newer.ClosedWithin(milliseconds(5000)));
  EXPECT_TRUE(Join(specs[1]).ok());
  EXPECT_TRUE(master.get().ok());
}

TEST(ControlPortTest, ThePortIsFreeAtOnce) {
  const std::uint16_t port = FreePort();
  for (int round = 0; round < 10; ++round) {
    std::vector<Joined> group = JoinAll(SpecsOf(2, port));
    ExpectOneGroup(group);
    if (round % 2 == 0) {
      for (Joined& joined : group) (*joined)->Leave(milliseconds(0));
    }
  }
}

TEST(ControlPortTest, OnlyTheChosenAddressListens) {
  Spec spec = SpecOf(0, 2, FreePort());
  spec.launch.master_address = "127.0.0.2";
  Spec peer = SpecOf(1, 2, spec.launch.master_port);
  auto master = std::async(std::launch::async, [&] { return Join(spec); });
  Spec there = peer;
  there.launch.master_address = "127.0.0.2";
  Spec elsewhere = peer;
  elsewhere.limit = milliseconds(150);
  const Joined refused = Join(elsewhere);
  EXPECT_FALSE(refused.ok());
  EXPECT_TRUE(Join(there).ok());
  EXPECT_TRUE(master.get().ok());
}

}  // namespace
}  // namespace optireduce::control
