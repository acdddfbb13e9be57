#include "examples/bench/tally.h"

#include <gtest/gtest.h>

#include <thread>

#include "test/support/ranks.h"

namespace optireduce::bench {
namespace {

// What each of a group of threads makes of its own tally.
std::vector<Row> CollectAll(const std::vector<Tally>& tallies, std::uint64_t bytes) {
  testing::Listener listener("127.0.0.1");
  std::vector<CommunicatorOptions> options(tallies.size());
  for (std::size_t rank = 0; rank < tallies.size(); ++rank) {
    options[rank].rank = static_cast<int>(rank);
    options[rank].world_size = static_cast<int>(tallies.size());
    options[rank].master_address = "127.0.0.1";
    options[rank].master_port = listener.port();
    options[rank].settings = {{"rendezvous.timeout", "100s"}};
  }
  options[0].listen_fd = listener.Take();
  std::vector<Row> rows(tallies.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < tallies.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto made = Communicator::Create(options[rank]);
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      rows[rank].bytes = bytes;
      const Status status = Collect(**made, tallies[rank], &rows[rank]);
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return rows;
}

TEST(Tally, TheRanksMakeOneRowOfIt) {
  std::vector<Tally> tallies(3);
  tallies[0].durations_us = {10, 200, 30};
  tallies[1].durations_us = {90, 20, 31};
  tallies[2].durations_us = {50, 100, 29};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    tallies[rank].checked = 3;
    tallies[rank].entries = 900;
  }
  tallies[0].cpu_s = 0.5;
  tallies[1].cpu_s = 0.25;
  tallies[2].cpu_s = 2;
  tallies[1].findings.wrong = 4;
  tallies[2].findings.wrong = 1;
  tallies[1].findings.max_relative_error = 0.125;
  tallies[2].lost_entries = 7;
  tallies[0].late_entries = 3;
  tallies[1].divergent_ops = 1;

  for (const Row& row : CollectAll(tallies, 500'000'000)) {
    EXPECT_EQ(row.samples_us, (std::vector<double>{90, 200, 31})) << "the longest of each";
    EXPECT_DOUBLE_EQ(row.cpu_s_per_gb, 2.75 / 1.5) << "of all ranks, for 3 times 0.5 GB";
    EXPECT_EQ(row.wrong, 5U);
    EXPECT_EQ(row.max_relative_error, 0.125);
    EXPECT_EQ(row.entries, 900U);
    EXPECT_EQ(row.late_entries, 3U);
    EXPECT_EQ(row.lost_entries, 7U);
    EXPECT_EQ(row.divergent_ops, 1U);
  }
}

TEST(Tally, WhatWasNotCheckedIsNotCalledRight) {
  std::vector<Tally> tallies(2);
  for (Tally& tally : tallies) tally.durations_us = {1};
  for (const Row& row : CollectAll(tallies, 4)) {
    EXPECT_FALSE(row.wrong.has_value());
    EXPECT_FALSE(row.max_relative_error.has_value());
  }
}

}  // namespace
}  // namespace optireduce::bench
