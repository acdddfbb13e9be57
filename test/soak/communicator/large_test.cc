// Offsets beyond 4 GiB: takes some 9 GiB of memory and minutes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "optireduce/communicator.h"
#include "test/support/ranks.h"

namespace optireduce::testing {
namespace {

constexpr std::size_t kCount = (std::size_t{1} << 32) + 8;

std::int8_t ValueAt(std::size_t index, int rank) {
  return static_cast<std::int8_t>((index * 7 + index / 251) % 60 + static_cast<std::size_t>(rank));
}

TEST(Large, TensorOfMoreThanFourGibibytes) {
  Listener listener;
  const int port = listener.port();
  ForkedRanks ranks(2, [&](int rank) {
    CommunicatorOptions options;
    options.settings = {{"op_timeout", "1h"}, {"log.level", "error"}};
    options.rank = rank;
    options.world_size = 2;
    options.master_address = "127.0.0.1";
    options.master_port = port;
    if (rank == 0) {
      options.listen_fd = listener.Take();
    } else {
      listener.Close();
    }
    auto made = Communicator::Create(options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    std::vector<std::int8_t> tensor(kCount);
    for (std::size_t i = 0; i < kCount; ++i) tensor[i] = ValueAt(i, rank);
    const Report report = (*made)
                              ->AllReduce(tensor.data(), tensor.data(), kCount, DataType::kInt8,
                                          ReduceOp::kSum)
                              .Wait();
    EXPECT_EQ(report.outcome, Report::Outcome::kAgreed) << report.status.ToString();
    EXPECT_EQ(report.entries, 2 * kCount);
    const auto wrong_in = [&](std::size_t first, std::size_t end) {
      std::size_t wrong = 0;
      for (std::size_t i = first; i < end; ++i) {
        wrong += tensor[i] != static_cast<std::int8_t>(ValueAt(i, 0) + ValueAt(i, 1)) ? 1 : 0;
      }
      return wrong;
    };
    EXPECT_EQ(wrong_in(kCount - 16, kCount), 0U);
    EXPECT_EQ(wrong_in(0, kCount), 0U);
  });
  listener.Close();
  EXPECT_TRUE(ranks.Join(std::chrono::minutes(60)));
}

}  // namespace
}  // namespace optireduce::testing
