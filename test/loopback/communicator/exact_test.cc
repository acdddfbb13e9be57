// Results of a job over loopback UDP against plain arithmetic: counts, types, operators, modes of
// running, tensors of several ops.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

// One op of values that Expected() knows; in place or apart.
void ReduceAndCheck(Communicator& comm, DataType type, ReduceOp op, std::size_t count,
                    bool in_place, std::uint64_t salt) {
  SCOPED_TRACE(std::string(Name(op)) + " of " + std::to_string(count) + " " +
               std::string(Name(type)) + ", " + std::to_string(comm.size()) + " ranks");
  Tensor in = Contribution(type, op, comm.rank(), count, salt);
  const Tensor before = in;
  Tensor out(in.size(), std::byte{0xA5});
  void* const target = in_place ? in.data() : out.data();
  const Report report = WaitFor(comm.AllReduce(in.data(), target, count, type, op));
  EXPECT_EQ(report.outcome, Report::Outcome::kAgreed);
  EXPECT_EQ(report.entries, count * static_cast<std::size_t>(comm.size()));
  EXPECT_EQ(report.lost_entries + report.late_entries + report.missing_elements, 0U);
  ExpectSame(Expected(type, op, comm.size(), count, salt), target, type);
  EXPECT_TRUE(in_place || in == before) << "the input was written to";
}

void CheckCounts(Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::size_t counts[] = {0,   1,    ranks - 1, ranks, ranks + 1, 2,     3,     7,
                                359, 360,  361,       997,   1439,      7919,  65537, 262144,
                                0,   1361, 104729};
  std::uint64_t salt = 0;
  for (const std::size_t count : counts) {
    ReduceAndCheck(comm, DataType::kFloat32, ReduceOp::kSum, count, salt % 2 == 0, salt);
    ReduceAndCheck(comm, DataType::kInt8, ReduceOp::kSum, count, salt % 2 == 1, salt);
    ++salt;
  }
}

class Counts : public ::testing::TestWithParam<int> {};

TEST_P(Counts, AreReducedExactly) {
  Job job(GetParam());
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    EXPECT_EQ(comm->rank(), rank);
    EXPECT_EQ(comm->size(), job.ranks());
    EXPECT_EQ(comm->hosts().size(), static_cast<std::size_t>(job.ranks()));
    CheckCounts(*comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Counts, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8));

// By name, and before anything is sent: no op has begun.
void ExpectRefused(Communicator& comm, DataType type, ReduceOp op) {
  std::uint64_t word = 0;
  const std::uint64_t ops =
      comm.size() > 1 ? CounterOf(comm.stats(), "ops_called") : std::uint64_t{0};
  const Report refused = comm.AllReduce(&word, &word, 1, type, op).Wait();
  EXPECT_EQ(refused.outcome, Report::Outcome::kFailed);
  EXPECT_EQ(refused.status.code(), Code::kInvalidArgument);
  const std::string pair = std::string(Name(op)) + " of " + std::string(Name(type));
  EXPECT_TRUE(Has(refused.status.text(), pair)) << refused.status.text();
  EXPECT_TRUE(comm.size() == 1 || CounterOf(comm.stats(), "ops_called") == ops);
}

class Types : public ::testing::TestWithParam<int> {};

TEST_P(Types, EveryOperatorIsExact) {
  Job job(GetParam());
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::uint64_t salt = 100;
    int pairs = 0;
    for (std::size_t t = 0; t < kDataTypes; ++t) {
      for (std::size_t o = 0; o < kReduceOps; ++o) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        if (!Supported(type, op)) {
          ExpectRefused(*comm, type, op);
          continue;
        }
        ++pairs;
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1531}}) {
          ReduceAndCheck(*comm, type, op, count, salt % 2 == 0, salt);
          ++salt;
        }
      }
    }
    EXPECT_EQ(pairs, 10 * 5 - 1 + 6 * 3);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Types, ::testing::Values(1, 2, 3, 5, 8));

TEST(Exact, SeveralMebibytes) {
  Job job(4);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(std::size_t{5} * 1024 * 1024 / 4 + 13);
    for (int round = 0; round < 3; ++round) {
      FillSteps(tensor, rank, round);
      WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                              ReduceOp::kSum));
      EXPECT_EQ(WrongSteps(tensor, 4, round), 0U);
    }
  });
}

TEST(Exact, RanksAsThreadsOfOneProcess) {
  Job job(3);
  job.RunThreads([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    for (std::uint64_t salt = 0; salt < 20; ++salt) {
      ReduceAndCheck(*comm, DataType::kInt32, ReduceOp::kSum, 1000 + salt * 977, salt % 2 == 0,
                     salt);
    }
    EXPECT_TRUE(comm->Barrier().ok());
  });
}

TEST(Exact, AverageOfLargeHalvesDoesNotOverflow) {
  Job job(8);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<std::uint16_t> tensor(2000, HalfBits(30000));
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat16,
                            ReduceOp::kAvg));
    EXPECT_EQ(tensor, std::vector<std::uint16_t>(2000, HalfBits(30000)));
    // The sum itself is too large for a half, and says so.
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat16,
                            ReduceOp::kSum));
    EXPECT_EQ(tensor, std::vector<std::uint16_t>(2000, 0x7C00));
  });
}

// Whatever NaN a rank brings, and in whatever place of the sum, all ranks get the one quiet NaN;
// MIN and MAX do not lose it.
TEST(Exact, NansAreOneNanOnAllRanks) {
  Job job(4);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProduct, ReduceOp::kMin,
                              ReduceOp::kMax}) {
      std::vector<std::uint32_t> bits(4001, 0x3F800000);
      for (std::size_t i = 0; i < bits.size(); ++i) {
        if (static_cast<int>(i % 4) == rank) bits[i] = 0xFF800001U + static_cast<unsigned>(i);
      }
      WaitFor(comm->AllReduce(bits.data(), bits.data(), bits.size(), DataType::kFloat32, op));
      EXPECT_EQ(bits, std::vector<std::uint32_t>(4001, 0x7FC00000)) << Name(op);
    }
    // Infinities that cancel make one too.
    std::vector<float> tensor(500, std::numeric_limits<float>::infinity());
    if (rank == 2) tensor.assign(500, -std::numeric_limits<float>::infinity());
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                            ReduceOp::kSum));
    for (const float x : tensor) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      ASSERT_EQ(bits, 0x7FC00000U);
    }
  });
}

class Buckets : public ::testing::TestWithParam<const char*> {};

TEST_P(Buckets, LargeTensorsTravelAsSeveralOps) {
  Job job(3, {{"bucket_bytes_max", GetParam()}});
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    const std::uint64_t bytes_max = GetParam() == std::string("64K") ? 65536 : 1048576;
    const std::size_t counts[] = {bytes_max / 4, bytes_max / 4 + 1, 2 * bytes_max / 4 - 1,
                                  20 * bytes_max / 4 + 3};
    std::uint64_t ops = CounterOf(comm->stats(), "ops_called");
    for (std::size_t i = 0; i < std::size(counts); ++i) {
      std::vector<float> tensor(counts[i]);
      FillSteps(tensor, rank, static_cast<int>(i));
      const Report report = WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(),
                                                    DataType::kFloat32, ReduceOp::kSum));
      EXPECT_EQ(report.entries, counts[i] * 3);
      EXPECT_EQ(WrongSteps(tensor, 3, static_cast<int>(i)), 0U);
      ops += (counts[i] * 4 + bytes_max - 1) / bytes_max;
      EXPECT_EQ(CounterOf(comm->stats(), "ops_called"), ops);
    }
    ReduceAndCheck(*comm, DataType::kInt8, ReduceOp::kMax, bytes_max + 1, false, 9);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Buckets, ::testing::Values("64K", "1M"));

TEST(Arguments, WrongOnesFailTheCallAndNotTheGroup) {
  Job job(2);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> memory(100, 1.0F);
    const auto code = [&](const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                          const AllReduceOptions& options = {}) {
      const Report report = comm->AllReduce(in, out, count, type, op, options).Wait();
      EXPECT_EQ(report.outcome, Report::Outcome::kFailed);
      return report.status.code();
    };
    float* const data = memory.data();
    constexpr auto kFloat = DataType::kFloat32;
    constexpr auto kSum = ReduceOp::kSum;
    EXPECT_EQ(code(data, data + 1, 50, kFloat, kSum), Code::kInvalidArgument);
    EXPECT_EQ(code(nullptr, data, 50, kFloat, kSum), Code::kInvalidArgument);
    EXPECT_EQ(code(data, nullptr, 50, kFloat, kSum), Code::kInvalidArgument);
    EXPECT_EQ(code(data, data, ~std::size_t{0}, kFloat, kSum), Code::kInvalidArgument);
    EXPECT_EQ(code(data, data, 5, static_cast<DataType>(77), kSum), Code::kInvalidArgument);
    EXPECT_EQ(code(data, data, 5, kFloat, static_cast<ReduceOp>(77)), Code::kInvalidArgument);
    AllReduceOptions bounded;
    bounded.mode = Mode::kBounded;
    EXPECT_EQ(code(data, data, 5, DataType::kInt32, kSum, bounded), Code::kInvalidArgument);
    EXPECT_EQ(code(data, data, 5, kFloat, ReduceOp::kMax, bounded), Code::kInvalidArgument);
    AllReduceOptions no_time;
    no_time.timeout = Duration{0};
    EXPECT_EQ(code(data, data, 5, kFloat, kSum, no_time), Code::kInvalidArgument);
    EXPECT_EQ(memory, std::vector<float>(100, 1.0F));
    ReduceAndCheck(*comm, kFloat, kSum, 5000, true, 3);
  });
}

}  // namespace
}  // namespace optireduce::testing
