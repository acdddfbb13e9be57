#include "test/loopback/communicator/job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace optireduce::testing {

Job::Job(int ranks, SettingList settings, std::string address)
    : ranks_(ranks),
      settings_(std::move(settings)),
      address_(std::move(address)),
      listener_(address_) {}

CommunicatorOptions Job::Options(int rank, const SettingList& more) {
  CommunicatorOptions options;
  options.settings = {{"log.level", "error"}, {"rendezvous.timeout", "100s"}};
  options.settings.insert(options.settings.end(), settings_.begin(), settings_.end());
  options.settings.insert(options.settings.end(), more.begin(), more.end());
  options.rank = rank;
  options.world_size = ranks_;
  options.master_address = address_;
  options.master_port = listener_.port();
  if (rank == 0) options.listen_fd = listener_.Take();
  return options;
}

std::unique_ptr<Communicator> Job::Make(int rank, const SettingList& more) {
  Result<std::unique_ptr<Communicator>> made = Communicator::Create(Options(rank, more));
  if (made.ok()) return *std::move(made);
  ADD_FAILURE() << "rank " << rank << ": " << made.status().ToString();
  return nullptr;
}

std::unique_ptr<ForkedRanks> Job::Start(const std::function<void(int rank)>& body) {
  auto processes = std::make_unique<ForkedRanks>(ranks_, [&](int rank) {
    if (rank != 0) CloseListener();
    body(rank);
  });
  CloseListener();
  return processes;
}

void Job::Run(const std::function<void(int rank)>& body, Duration limit) {
  Start(body)->Join(limit);
}

void Job::RunThreads(const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks_; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

std::string Millis(std::int64_t ms) { return std::to_string(ms) + "ms"; }

std::uint64_t CounterOf(const Stats& stats, std::string_view name) {
  for (const auto& [key, value] : stats.counters) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "there is no counter " << name;
  return 0;
}

Report WaitFor(Work work) {
  Report report = work.Wait();
  EXPECT_NE(report.outcome, Report::Outcome::kFailed) << report.status.ToString();
  return report;
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> RandomFloats(int rank, std::size_t count, std::uint64_t salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = Mix(static_cast<std::uint64_t>(rank) + 1, i, salt);
    const float fraction = static_cast<float>(bits & 0xFFFFFF) / 16777216.0F - 0.5F;
    values[i] = std::ldexp(fraction, static_cast<int>(bits >> 32 & 31) - 16);
  }
  return values;
}

void FillSteps(std::vector<float>& tensor, int rank, int salt) {
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = static_cast<float>((rank + 1) * (salt % 13 + 1)) + static_cast<float>(i % 97);
  }
}

std::size_t WrongSteps(const std::vector<float>& tensor, int ranks, int salt, int left_out) {
  const int places = ranks * (ranks + 1) / 2 - (left_out + 1);
  const int members = left_out < 0 ? ranks : ranks - 1;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const auto step = static_cast<int>(i % 97);
    const auto expected = static_cast<float>(places * (salt % 13 + 1) + members * step);
    wrong += tensor[i] != expected ? 1 : 0;
  }
  return wrong;
}

}  // namespace optireduce::testing
