#include "collectives/driver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "test/unit/collectives/fake_port.h"

namespace optireduce {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two ranks of one process, each with its own driver.
struct TwoDrivers : ::testing::Test {
  TwoDrivers() {
    for (Rank r = 0; r < 2; ++r) ports.push_back(std::make_unique<FakePort>());
    for (Rank r = 0; r < 2; ++r) {
      for (const auto& port : ports) ports[r]->peers.push_back(port.get());
      EngineOptions options = TestOptions(r, 2, TestSettings());
      options.on_call_end = [this, r](const std::shared_ptr<Call>& call) {
        drivers[r]->OnCallEnd(*call);
      };
      engines.push_back(std::make_unique<Engine>(std::move(options), ports[r].get()));
      drivers.push_back(std::make_unique<Driver>(engines[r].get(), ports[r].get(), Duration{0}));
    }
  }
  ~TwoDrivers() override { drivers.clear(); }
  void Submit(Rank rank, TestCall& call) {
    ASSERT_TRUE(engines[rank]->Submit(call.call));
    drivers[rank]->Notify();
  }

  std::vector<std::unique_ptr<FakePort>> ports;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::unique_ptr<Driver>> drivers;
};

TEST_F(TwoDrivers, TheThreadsServeWithoutTheirCallers) {
  for (const auto& driver : drivers) driver->Start();
  for (int i = 0; i < 20; ++i) {
    TestCall a(std::vector<std::int64_t>(1000, 1));
    TestCall b(std::vector<std::int64_t>(1000, 2));
    Submit(0, a);
    Submit(1, b);  // nobody awaits this one
    drivers[0]->Await(*a.call);
    EXPECT_EQ(a.tensor, std::vector<std::int64_t>(1000, 3));
    drivers[1]->Await(*b.call);
    EXPECT_EQ(b.tensor, a.tensor);
  }
}

TEST_F(TwoDrivers, CallersTurnTheEnginesThemselves) {
  // No thread is started: only those who wait move packets.
  TestCall a(std::vector<std::int64_t>(1000, 1));
  TestCall b(std::vector<std::int64_t>(1000, 2));
  Submit(0, a);
  Submit(1, b);
  std::thread other([&] {
    drivers[1]->Await(*b.call);
    // The peer may need a repair still; at the latest its own wait shows that it has all.
    while (!a.call->finished.load(std::memory_order_acquire)) drivers[1]->AwaitRoom();
  });
  drivers[0]->Await(*a.call);
  other.join();
  EXPECT_EQ(a.tensor, std::vector<std::int64_t>(1000, 3));
  EXPECT_EQ(b.tensor, a.tensor);
}

// The peer runs on the same core: it gets a turn at every third look for packets.
struct SharedCorePort : FakePort {
  std::span<const RxPacket> Receive(Instant now) override {
    if (++looks % 3 == 0) peer->Turn(now);
    return FakePort::Receive(now);
  }
  void Wait(Duration) override { ++sleeps; }

  Engine* peer = nullptr;
  int looks = 0;
  int sleeps = 0;
};

// Sleeps of a caller whose answer is a few looks away.
int SleepsOfOneOp(Duration spin_max) {
  SharedCorePort here;
  FakePort there;
  here.peers = {&here, &there};
  there.peers = {&here, &there};
  Engine peer(TestOptions(1, 2, TestSettings()), &there);
  here.peer = &peer;
  Driver* to_tell = nullptr;
  EngineOptions options = TestOptions(0, 2, TestSettings());
  options.on_call_end = [&to_tell](const std::shared_ptr<Call>& call) {
    to_tell->OnCallEnd(*call);
  };
  Engine engine(std::move(options), &here);
  Driver driver(&engine, &here, spin_max);
  to_tell = &driver;
  TestCall a(std::vector<std::int64_t>(10, 1));
  TestCall b(std::vector<std::int64_t>(10, 2));
  EXPECT_TRUE(engine.Submit(a.call));
  EXPECT_TRUE(peer.Submit(b.call));
  driver.Await(*a.call);
  EXPECT_EQ(a.tensor, std::vector<std::int64_t>(10, 3));
  return here.sleeps;
}

TEST(Spin, SavesTheSleepBeforeAnAnswerThatIsNear) {
  EXPECT_EQ(SleepsOfOneOp(seconds(10)), 0);
  EXPECT_GT(SleepsOfOneOp(Duration{0}), 0);
}

TEST(Spin, BacksOffWhileItFindsNothingAndComesBackWhenItDoes) {
  AdaptiveSpin spin;
  int looked = 0;
  constexpr int kSleeps = 1000;
  for (int i = 0; i < kSleeps; ++i) {
    if (!spin.Due()) continue;
    ++looked;
    spin.FoundNothing();
  }
  EXPECT_GE(looked, kSleeps / 65);
  EXPECT_LE(looked, kSleeps / 64 + 7);

  while (!spin.Due()) {
  }
  spin.Found();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(spin.Due());
    spin.Found();
  }
}

TEST_F(TwoDrivers, ManyCallersOfOneRank) {
  for (const auto& driver : drivers) driver->Start();
  constexpr std::size_t kCalls = 6;
  std::vector<std::unique_ptr<TestCall>> calls[2];
  for (std::size_t i = 0; i < kCalls; ++i) {
    for (Rank r = 0; r < 2; ++r) {
      calls[r].push_back(std::make_unique<TestCall>(
          std::vector<std::int64_t>(500, static_cast<std::int64_t>(i + r))));
      Submit(r, *calls[r].back());
    }
  }
  std::vector<std::thread> callers;
  for (Rank r = 0; r < 2; ++r) {
    for (const auto& call : calls[r]) {
      callers.emplace_back([this, r, &call] { drivers[r]->Await(*call->call); });
    }
  }
  for (std::thread& caller : callers) caller.join();
  for (std::size_t i = 0; i < kCalls; ++i) {
    for (Rank r = 0; r < 2; ++r) {
      EXPECT_EQ(calls[r][i]->tensor,
                std::vector<std::int64_t>(500, static_cast<std::int64_t>(2 * i + 1)));
    }
  }
}

TEST_F(TwoDrivers, InspectRunsWhileNobodyTurns) {
  for (const auto& driver : drivers) driver->Start();
  TestCall a(std::vector<std::int64_t>(1000, 1));
  TestCall b(std::vector<std::int64_t>(1000, 2));
  Submit(0, a);
  Submit(1, b);
  int looks = 0;
  for (int i = 0; i < 10; ++i) {
    drivers[0]->Inspect([&] {
      ++looks;
      EXPECT_LE(engines[0]->group().done(), engines[0]->group().called());
    });
  }
  EXPECT_EQ(looks, 10);
  drivers[0]->Await(*a.call);
  drivers[1]->Await(*b.call);
}

TEST_F(TwoDrivers, StopServesUntilThePeerHasAllAndNoLongerThanTheLinger) {
  for (const auto& driver : drivers) driver->Start();
  TestCall a(std::vector<std::int64_t>(1000, 1));
  TestCall b(std::vector<std::int64_t>(1000, 2));
  Submit(0, a);
  Submit(1, b);
  drivers[0]->Await(*a.call);
  drivers[1]->Await(*b.call);
  std::thread other([this] { drivers[1]->Stop(seconds(30)); });
  drivers[0]->Stop(seconds(30));
  other.join();
  EXPECT_TRUE(engines[0]->Settled());
  EXPECT_TRUE(engines[1]->Settled());
}

TEST_F(TwoDrivers, StopGivesUpOnAPeerThatIsSilent) {
  drivers[0]->Start();
  TestCall a(std::vector<std::int64_t>(1000, 1));
  Submit(0, a);
  const Instant begin = MonotonicNow();
  drivers[0]->Stop(milliseconds(20));
  EXPECT_GE(MonotonicNow() - begin, milliseconds(20));
  EXPECT_FALSE(engines[0]->Settled());
  EXPECT_FALSE(a.call->finished.load());
  drivers[0]->Stop(seconds(100));  // has stopped already
}

}  // namespace
}  // namespace optireduce
