// The bits of a result depend on the inputs and the number of ranks, and on nothing that happens on
// the way: one hash over all ranks, runs, restarts and repaired losses.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "test/loopback/communicator/job.h"
#include "transport/ubt/grid.h"

namespace optireduce::testing {
namespace {

constexpr std::size_t kCount = 100'003;
constexpr std::size_t kHalves = 33'331;
constexpr int kRestarts = 3;

struct Hashes {
  std::uint64_t floats = 0;
  std::uint64_t halves = 0;
};

std::vector<std::uint16_t> RandomHalves(int rank) {
  std::vector<std::uint16_t> values(kHalves);
  const std::vector<float> floats = RandomFloats(rank, kHalves, 77);
  for (std::size_t i = 0; i < kHalves; ++i) values[i] = BrainBits(floats[i]);
  return values;
}

// `runs` results of one job, the same inputs each time.
void RunJob(int ranks, int runs, const SettingList& settings, const SharedArray<Hashes>& hashes) {
  Job job(ranks, settings);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const std::vector<float> floats = RandomFloats(rank, kCount, 7);
    const std::vector<std::uint16_t> halves = RandomHalves(rank);
    std::vector<float> sum(kCount);
    std::vector<std::uint16_t> average(kHalves);
    for (int run = 0; run < runs; ++run) {
      Work a = comm->AllReduce(floats.data(), sum.data(), kCount, DataType::kFloat32,
                               ReduceOp::kSum);
      Work b = comm->AllReduce(halves.data(), average.data(), kHalves, DataType::kBFloat16,
                               ReduceOp::kAvg);
      WaitFor(b);
      WaitFor(a);
      Hashes& slot = hashes[static_cast<std::size_t>(run * ranks + rank)];
      slot.floats = HashOf(sum.data(), sum.size() * sizeof(float));
      slot.halves = HashOf(average.data(), average.size() * sizeof(std::uint16_t));
    }
  });
}

TEST(SameBits, OneHashOverRanksRunsRestartsAndRepairedLoss) {
  constexpr int kRanks = 4;
  const int runs = Rounds(20, 3);
  std::set<std::uint64_t> floats;
  std::set<std::uint64_t> halves;
  for (const char* const loss : {"0", "1", "10"}) {
    for (int restart = 0; restart < kRestarts; ++restart) {
      SCOPED_TRACE(std::string(loss) + " % loss, start " + std::to_string(restart));
      const SharedArray<Hashes> hashes(static_cast<std::size_t>(runs * kRanks));
      RunJob(kRanks, runs, {{"fault.loss_pct", loss}, {"fault.seed", std::to_string(restart + 1)}},
             hashes);
      for (const Hashes& slot : hashes) {
        floats.insert(slot.floats);
        halves.insert(slot.halves);
      }
      ASSERT_EQ(floats.size(), 1U);
      ASSERT_EQ(halves.size(), 1U);
    }
  }
  EXPECT_EQ(floats.count(0), 0U);
}

// What has no say in the bits: offloads, packets held back, credit, the receive queue's size.
TEST(SameBits, WhateverTheWayOfThePackets) {
  const SettingList ways[] = {
      {},
      {{"udp.gso", "off"}, {"udp.gro", "off"}},
      {{"fault.reorder_pct", "20"}, {"fault.duplicate_pct", "10"}},
      {{"credit.bytes_total", "64K"}, {"credit.bytes_start", "2K"}},
      {{"udp.socket_buffer_bytes", "106496"}},
      {{"security.tag", "full"}},
  };
  std::set<std::uint64_t> floats;
  for (const SettingList& settings : ways) {
    const SharedArray<Hashes> hashes(2 * 3);
    RunJob(3, 2, settings, hashes);
    for (const Hashes& slot : hashes) floats.insert(slot.floats);
    EXPECT_EQ(floats.size(), 1U) << (settings.empty() ? "" : settings.front().first);
  }
}

// The float32 sum of these contributions in the order that docs/numerics.md states.
std::vector<float> SumInStatedOrder(const std::vector<std::vector<float>>& in, std::size_t first,
                                    std::size_t count) {
  const auto ranks = static_cast<std::uint32_t>(in.size());
  const ubt::Grid grid(count, sizeof(float), ranks, 1408);
  std::vector<float> out(count);
  for (Rank shard = 0; shard < ranks; ++shard) {
    for (std::uint64_t i = grid.ShardFirst(shard); i < grid.ShardFirst(shard + 1); ++i) {
      out[i] = in[shard][first + i];
      for (Rank step = 1; step < ranks; ++step) {
        out[i] += in[(shard + ranks - step) % ranks][first + i];
      }
    }
  }
  return out;
}

// One tensor, and the same one in seven pieces: each has the bits of its own stated order, and
// these differ.
TEST(SameBits, AreThoseOfTheStatedOrder) {
  constexpr int kRanks = 5;
  constexpr std::size_t kPieces = 7;
  std::vector<std::vector<float>> in;
  for (int rank = 0; rank < kRanks; ++rank) in.push_back(RandomFloats(rank, kCount, 3));
  const std::vector<float> whole = SumInStatedOrder(in, 0, kCount);
  std::vector<float> pieces;
  const auto first_of = [](std::size_t piece) { return piece * kCount / kPieces; };
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const std::size_t first = first_of(piece);
    const std::vector<float> part = SumInStatedOrder(in, first, first_of(piece + 1) - first);
    pieces.insert(pieces.end(), part.begin(), part.end());
  }
  EXPECT_NE(whole, pieces);
  Job job(kRanks);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const std::vector<float>& own = in[static_cast<std::size_t>(rank)];
    std::vector<float> out(kCount);
    WaitFor(comm->AllReduce(own.data(), out.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
    EXPECT_TRUE(out == whole);
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      const std::size_t first = first_of(piece);
      WaitFor(comm->AllReduce(own.data() + first, out.data() + first,
                              first_of(piece + 1) - first, DataType::kFloat32, ReduceOp::kSum));
    }
    EXPECT_TRUE(out == pieces);
  });
}

// The order in which ranks call is of no account either.
TEST(SameBits, WhoeverCallsFirst) {
  constexpr int kRanks = 3;
  const int rounds = 6;
  const SharedArray<std::uint64_t> hashes(kRanks * rounds);
  const Meeting meeting(kRanks);
  Job job(kRanks);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const std::vector<float> in = RandomFloats(rank, kCount, 7);
    std::vector<float> out(kCount);
    constexpr std::array<std::array<int, 3>, 6> kOrders = {
        {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
    for (int round = 0; round < rounds; ++round) {
      meeting.Meet();
      const auto turn = kOrders[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank)];
      SleepFor(std::chrono::milliseconds(20) * turn);
      WaitFor(comm->AllReduce(in.data(), out.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
      hashes[static_cast<std::size_t>(round * kRanks + rank)] =
          HashOf(out.data(), kCount * sizeof(float));
    }
  });
  EXPECT_EQ(std::set<std::uint64_t>(hashes.begin(), hashes.end()).size(), 1U);
}

}  // namespace
}  // namespace optireduce::testing
