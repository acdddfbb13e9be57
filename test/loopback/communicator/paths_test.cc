// What the paths between the ranks carry: found before the first op, or named. In network
// namespaces whose loopback swallows packets; skipped where the process may not make one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "test/loopback/communicator/job.h"
#include "test/support/net_namespace.h"

namespace optireduce::testing {
namespace {

std::string Rules(const std::string& rules) {
  return "nft add table inet t; "
         "nft 'add chain inet t out { type filter hook output priority 0; }'; " +
         rules;
}

// Each rank, with what `settings_of` adds, finds this path MTU, and the sum is right.
void ExpectExactOver(std::string_view path_mtu,
                     const std::function<SettingList(int rank)>& settings_of) {
  Job job(3);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank, settings_of(rank));
    ASSERT_TRUE(comm);
    EXPECT_TRUE(Has(comm->transport(), "path MTU " + std::string(path_mtu) + " "))
        << comm->transport();
    std::vector<float> tensor(300'001);
    FillSteps(tensor, rank, 1);
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                            ReduceOp::kSum));
    EXPECT_EQ(WrongSteps(tensor, job.ranks(), 1), 0U);
    EXPECT_GT(CounterOf(comm->stats(), "probes_sent"), 0U);
  });
}

SettingList Nothing(int) { return {}; }

// Each rank at an address of its own, so that rules can tell them apart.
SettingList OwnAddress(int rank) { return {{"net.bind", "127.0.0." + std::to_string(rank + 2)}}; }

TEST(Paths, OfUsualSizeAreUsedAtOnce) { ExpectExactOver("1500", Nothing); }

TEST(Paths, OfAnInterfaceThatIsNarrowAreUsedAsTheyAre) {
  const bool entered =
      InNetNamespace("ip link set lo mtu 1400", [] { ExpectExactOver("1400", Nothing); });
  if (!entered) GTEST_SKIP() << "may not make a network namespace";
}

TEST(Paths, ThatSwallowLargePacketsInOneDirectionAreFound) {
  const std::string rule = "nft add rule inet t out ip saddr 127.0.0.3 ip daddr 127.0.0.2 "
                           "ip length gt 1390 drop";
  const bool entered = InNetNamespace(Rules(rule), [] {
    ExpectExactOver("1380", [](int rank) {
      SettingList settings = OwnAddress(rank);
      // The rule would see a super-packet whole, where a network sees its packets.
      settings.emplace_back("udp.gso", "off");
      return settings;
    });
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace with nftables";
}

TEST(Paths, OfOneRankWithALowerLimitLowerAll) {
  ExpectExactOver("1280", [](int rank) {
    return SettingList{{"path_mtu", rank == 1 ? "1280" : "9000"}};
  });
}

TEST(Paths, ThatCarryNothingAreNamedOnEveryRank) {
  const std::string rule =
      "nft add rule inet t out ip saddr 127.0.0.3 ip daddr 127.0.0.4 meta l4proto udp drop";
  const bool entered = InNetNamespace(Rules(rule), [] {
    Job job(3);
    job.Run([&](int rank) {
      const Result<std::unique_ptr<Communicator>> made = Communicator::Create(
          job.Options(rank, OwnAddress(rank)));
      ASSERT_FALSE(made.ok());
      const std::string text = made.status().ToString();
      EXPECT_TRUE(Has(text, "127.0.0.3:")) << text;
      EXPECT_TRUE(Has(text, "127.0.0.4:")) << text;
      EXPECT_TRUE(Has(text, "gets no answer over UDP from")) << text;
    }, std::chrono::seconds(40));
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace with nftables";
}

// All ranks, op for op, until `done` is true on each of them.
void CallUntilAll(Communicator& comm, const std::function<bool()>& done) {
  std::vector<float> tensor(100'001);
  for (int salt = 0; salt < 2'000; ++salt) {
    FillSteps(tensor, comm.rank(), salt);
    WaitFor(comm.AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                           ReduceOp::kSum));
    ASSERT_EQ(WrongSteps(tensor, comm.size(), salt), 0U) << salt;
    std::int32_t ranks_done = done() ? 1 : 0;
    WaitFor(comm.AllReduce(&ranks_done, &ranks_done, 1, DataType::kInt32, ReduceOp::kSum));
    if (ranks_done == comm.size()) return;
  }
  FAIL() << "no end: " << comm.FlightRecord();
}

TEST(Paths, ThatNarrowWhileOpsRunAreGoneOnWithAndMadeUpFor) {
  const std::string rule = "nft add rule inet t out ip saddr 127.0.0.3 ip daddr 127.0.0.2 "
                           "ip length gt 1390 drop";
  const bool entered = InNetNamespace(Rules(""), [&rule] {
    Job job(3);
    job.Run([&](int rank) {
      SettingList settings = OwnAddress(rank);
      settings.emplace_back("udp.gso", "off");
      const auto comm = job.Make(rank, settings);
      ASSERT_TRUE(comm);
      CallUntilAll(*comm, [] { return true; });
      if (rank == 2) {
        ASSERT_EQ(std::system(rule.c_str()), 0);  // NOLINT(cert-env33-c)
      }
      CallUntilAll(*comm, [&] { return CounterOf(comm->stats(), "changeovers") > 0; });
      // Nothing is too large from here on, so nothing comes in pieces or is asked for in vain.
      const std::uint64_t repeated = CounterOf(comm->stats(), "data_repeated");
      for (int more = 0; more < 5; ++more) CallUntilAll(*comm, [] { return true; });
      const Stats stats = comm->stats();
      EXPECT_LE(CounterOf(stats, "data_repeated"), repeated + 20);
      EXPECT_EQ(CounterOf(stats, "paths_narrowed"), rank == 1 ? 1U : 0U);
      EXPECT_EQ(CounterOf(stats, "changeovers"), 1U);
    });
  });
  if (!entered) GTEST_SKIP() << "may not make a network namespace with nftables";
}

}  // namespace
}  // namespace optireduce::testing
