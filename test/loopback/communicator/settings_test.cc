// Settings that change what is on the wire or how it gets there, and those that ranks must share.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <ostream>

#include "test/loopback/communicator/job.h"

namespace optireduce::testing {
namespace {

using std::chrono::milliseconds;

struct Variant {
  const char* name;
  SettingList settings;
  const char* address = "127.0.0.1";
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class Settings : public ::testing::TestWithParam<Variant> {};

// The same small job under each, with a little loss so that repair takes part.
TEST_P(Settings, AreExact) {
  const Variant& variant = GetParam();
  SettingList settings = variant.settings;
  settings.insert(settings.end(), {{"fault.loss_pct", "2"}, {"fault.reorder_pct", "2"}});
  Job job(3, settings, variant.address);
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    EXPECT_TRUE(Has(comm->transport(), variant.address)) << comm->transport();
    for (const std::size_t count : {5UL, 4001UL, 150'001UL}) {
      Tensor tensor = Contribution(DataType::kInt64, ReduceOp::kSum, rank, count, count);
      WaitFor(comm->AllReduce(tensor.data(), tensor.data(), count, DataType::kInt64,
                              ReduceOp::kSum));
      ExpectSame(Expected(DataType::kInt64, ReduceOp::kSum, 3, count, count), tensor.data(),
                 DataType::kInt64);
    }
    for (const Communicator::SettingView& view : comm->settings()) {
      for (const auto& [name, value] : variant.settings) {
        EXPECT_TRUE(view.name != name || view.value == value) << name << " is " << view.value;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Each, Settings,
    ::testing::Values(Variant{"ipv4", {}}, Variant{"ipv6", {}, "::1"},
                      Variant{"ipv6_mtu_1280", {{"path_mtu", "1280"}}, "::1"},
                      Variant{"gso_off", {{"udp.gso", "off"}}},
                      Variant{"gro_off", {{"udp.gro", "off"}}},
                      Variant{"tag_off", {{"security.tag", "off"}}},
                      Variant{"tag_off_check_off",
                              {{"security.tag", "off"}, {"security.check", "off"}}},
                      Variant{"tag_full", {{"security.tag", "full"}}},
                      Variant{"check_on", {{"security.check", "on"}}},
                      Variant{"check_off", {{"security.check", "off"}}},
                      Variant{"mtu_576", {{"path_mtu", "576"}}},
                      Variant{"mtu_9000", {{"path_mtu", "9000"}}},
                      Variant{"mtu_32K", {{"path_mtu", "32K"}}},
                      Variant{"spin_off", {{"spin", "0"}}},
                      Variant{"spin_long", {{"spin", "10ms"}}},
                      Variant{"small_arena",
                              {{"arena.bytes_max", "4M"}, {"bucket_bytes_max", "64K"}}},
                      Variant{"little_credit",
                              {{"credit.bytes_total", "64K"}, {"credit.bytes_start", "2K"}}},
                      Variant{"one_behind", {{"ops_behind_max", "1"}}}),
    [](const auto& test) { return std::string(test.param.name); });

// An option of the wire that one rank has otherwise: nobody starts, and all know who and what.
void ExpectRefused(const SettingList& odd, std::string_view what) {
  Job job(3);
  job.Run([&](int rank) {
    const Result<std::unique_ptr<Communicator>> made =
        Communicator::Create(job.Options(rank, rank == 1 ? odd : SettingList{}));
    ASSERT_FALSE(made.ok());
    const std::string text = made.status().ToString();
    EXPECT_TRUE(Has(text, "rank 1")) << text;
    EXPECT_TRUE(Has(text, what)) << text;
  }, std::chrono::seconds(20));
}

TEST(Different, ModeIsRefused) { ExpectRefused({{"mode", "bounded"}}, "mode"); }
TEST(Different, TagIsRefused) { ExpectRefused({{"security.tag", "full"}}, "security.tag"); }

TEST(Different, LocalSettingsAreNobodysBusiness) {
  Job job(2);
  job.Run([&](int rank) {
    const auto comm = job.Make(
        rank, rank == 1 ? SettingList{{"udp.gso", "off"}, {"op_timeout", "7s"}} : SettingList{});
    ASSERT_TRUE(comm);
    EXPECT_TRUE(comm->Barrier().ok());
  });
}

TEST(Bad, SettingsAreAllNamedAtOnce) {
  CommunicatorOptions options;
  options.settings = {{"path_mtu", "64K"}, {"no.such.option", "1"}, {"mode", "sometimes"}};
  options.rank = 0;
  options.world_size = 1;
  const Result<std::unique_ptr<Communicator>> made = Communicator::Create(options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  for (const char* const part : {"path_mtu", "no.such.option", "mode"}) {
    EXPECT_TRUE(Has(made.status().text(), part)) << made.status().text();
  }
}

TEST(Bad, LaunchValuesAreRefused) {
  for (const auto& [rank, world] : {std::pair{0, 0}, std::pair{3, 2}, std::pair{-1, 2}}) {
    CommunicatorOptions options;
    options.rank = rank;
    options.world_size = world;
    options.master_address = "127.0.0.1";
    options.master_port = 1;
    const Result<std::unique_ptr<Communicator>> made = Communicator::Create(options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument) << made.status().ToString();
  }
}

// A file that is gone with its object.
class KeyFile {
 public:
  explicit KeyFile(const std::string& text)
      : path_(::testing::TempDir() + "optireduce_job_key_XXXXXX") {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  ~KeyFile() { unlink(path_.c_str()); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const std::string kKey(64, 'a');
const std::string kOtherKey(64, 'b');

TEST(JobKey, OfAFileLetsTheRanksIn) {
  const KeyFile key(kKey);
  Job job(2, {{"job_key_file", key.path()}});
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    EXPECT_TRUE(comm->Barrier().ok());
    for (const Communicator::SettingView& view : comm->settings()) {
      EXPECT_FALSE(Has(view.value, kKey)) << "the key itself is shown";
    }
  });
}

// The key as it stands in the file, as base64, and as bytes.
bool ShowsKey(const std::string& text) {
  return Has(text, "aaaaaaaa") || Has(text, "qqqqqqqq") || Has(text, "\xaa\xaa\xaa\xaa");
}

TEST(JobKey, IsInNoLogStateOrFlightRecord) {
  const KeyFile key(kKey);
  std::string shown;
  ::testing::internal::CaptureStderr();
  {
    Job job(2, {{"job_key_file", key.path()},
                {"log.level", "debug"},
                {"log.ops", "on"},
                {"state.signal", "usr2"}});
    std::atomic<int> looked{0};
    std::mutex mutex;
    job.RunThreads([&](int rank) {
      const auto comm = job.Make(rank);
      ASSERT_TRUE(comm);
      EXPECT_TRUE(comm->Barrier().ok());
      {
        const std::lock_guard lock(mutex);
        shown += comm->FlightRecord() + comm->transport();
      }
      if (++looked == 2) kill(getpid(), SIGUSR2);
      SleepFor(milliseconds(100 * TimeScale()));
      comm->Abort(Status(Code::kAborted, "on purpose"));
      EXPECT_FALSE(comm->Barrier().ok());
    });
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Has(log, "state of rank ")) << log;
  EXPECT_TRUE(Has(log, "op: ")) << log;
  EXPECT_FALSE(ShowsKey(log + shown));
  EXPECT_TRUE(ShowsKey("x" + kKey)) << "the search itself";
}

TEST(JobKey, ThatIsWrongKeepsARankOut) {
  const KeyFile right(kKey);
  const KeyFile wrong(kOtherKey);
  Job job(2, {{"rendezvous.timeout", Millis(1500 * TimeScale())}});
  job.Run([&](int rank) {
    const Result<std::unique_ptr<Communicator>> made = Communicator::Create(job.Options(
        rank, {{"job_key_file", rank == 1 ? wrong.path() : right.path()}}));
    ASSERT_FALSE(made.ok());
    const std::string text = made.status().ToString();
    EXPECT_TRUE(Has(text, "rank 1") || Has(text, "key")) << text;
    EXPECT_FALSE(Has(text, kKey) || Has(text, kOtherKey)) << "the key itself is shown";
  }, std::chrono::seconds(20));
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Nobody spins for long: neither at rest nor while one rank lets the others wait.
TEST(Idle, RanksUseHardlyAnyProcessor) {
  constexpr int kRanks = 4;
  Job job(kRanks);
  const Meeting meeting(kRanks);
  const double cpu_max = 0.015 * TimeScale();  // of 300 ms
  job.Run([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(50'000, 1.0F);
    const auto reduce = [&] {
      WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                              ReduceOp::kSum));
    };
    reduce();
    SleepFor(milliseconds(200));
    double before = CpuSeconds();
    SleepFor(milliseconds(300));
    EXPECT_LT(CpuSeconds() - before, cpu_max) << "at rest";

    meeting.Meet();
    if (rank == 0) SleepFor(milliseconds(300));
    before = CpuSeconds();
    // The others' calls go out and wait for rank 0's.
    Work work = comm->AllReduce(tensor.data(), tensor.data(), 1, DataType::kFloat32,
                                ReduceOp::kSum);
    WaitFor(std::move(work));
    EXPECT_TRUE(rank == 0 || CpuSeconds() - before < 2 * cpu_max) << "waiting for a rank";
  });
}

// Nor after a rank has died: what is broken does not turn.
TEST(Idle, SurvivorsOfAKilledRankSpinNoLonger) {
  constexpr int kRanks = 3;
  Job job(kRanks, {{"op_timeout", "60s"}});
  const SharedFlag at_work(1);
  const auto ranks = job.Start([&](int rank) {
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(500'000, 1.0F);
    Report report;
    while (report.outcome != Report::Outcome::kFailed) {
      report = comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                               ReduceOp::kSum)
                   .Wait();
      ++at_work[0];
    }
    EXPECT_TRUE(Has(report.status.text(), "rank 2")) << report.status.ToString();
    SleepFor(milliseconds(50));
    const double before = CpuSeconds();
    SleepFor(milliseconds(300));
    EXPECT_LT(CpuSeconds() - before, 0.015 * TimeScale());
  });
  ASSERT_TRUE(AwaitFlag(at_work[0], kRanks));
  ranks->Signal(2, SIGKILL);
  EXPECT_TRUE(ranks->Join(std::chrono::seconds(20)));
}

}  // namespace
}  // namespace optireduce::testing
