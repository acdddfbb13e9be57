// One rank of a measurement: times the all-reduce (float32, sum) of one library, the same way for
// each. Built once per library, with CONTENDER_HEADER naming the header that has its Contender.
//
// An iteration: new values are put into the tensor; all ranks meet (meeting.h); each calls the
// all-reduce; they meet again. Its time is from the first rank's start to the last rank's end, on
// the one clock of this host: what a training step would wait for. CPU time is that of all threads
// of all ranks from one meeting to the next, so that who serves others after its own end is charged
// for it. Making and checking values is not timed; every result of every rank is checked.
#include <gflags/gflags.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/lab/meeting.h"
#include "test/lab/pattern.h"
#include CONTENDER_HEADER

DEFINE_string(mode, "exact", "of the contender");
DEFINE_uint64(bytes, 4096, "of the tensor");
DEFINE_int32(iterations, 1000, "at most, beside the warm-up");
DEFINE_int32(iterations_min, 5, "even where the time cap is over");
DEFINE_double(time_cap, 2, "seconds of iterations; the warm-up ends after a quarter of it");
DEFINE_string(meeting, "", "a file that all ranks share, and that is not there yet");
DEFINE_string(result, "", "rank 0 adds its line of JSON to this file");
DEFINE_string(fields, "", "JSON members to begin that line with, such as \"repeat\":1");

namespace optireduce::lab {
namespace {

constexpr int kWarmUpMax = 20;
constexpr double kWarmUpPart = 0.25;

std::int64_t Nanos(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

double Seconds(std::int64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

// Ours, or mpirun's.
int FromEnvironment(const char* name, const char* mpi_name) {
  const char* value = std::getenv(name);
  if (value == nullptr) value = std::getenv(mpi_name);
  if (value != nullptr) return std::atoi(value);
  std::fprintf(stderr, "measure: %s or %s must be set\n", name, mpi_name);
  std::exit(2);
}

// Some libraries reduce in place: their Contender says so.
template <typename T>
constexpr bool InPlace() {
  if constexpr (requires { T::kInPlace; }) return T::kInPlace;
  return false;
}

class Rank {
 public:
  Rank(int rank, int ranks)
      : rank_(rank),
        ranks_(ranks),
        in_(FLAGS_bytes / sizeof(float)),
        out_(in_.size()),
        contender_(rank, ranks, FLAGS_mode.c_str(), in_.data(), out_.data(), in_.size()),
        meeting_(FLAGS_meeting.c_str(), ranks) {}

  void Run() {
    phase_start_ns_ = Nanos(CLOCK_MONOTONIC);
    for (std::uint64_t shift = 0;; ++shift) {
      Fill(InPlace<Contender>() ? out_ : in_, shift, rank_);
      if (rank_ == 0) Advance();
      meeting_.Barrier();
      const Phase phase = meeting_.phase();
      if (phase == Phase::kEnd) break;
      Iterate(phase == Phase::kMeasure);
      wrong_ += CountWrong(out_, shift, ranks_);
    }
    meeting_.slot(rank_).cpu_s = cpu_s_;
    meeting_.slot(rank_).wrong = wrong_;
    meeting_.Barrier();
    if (rank_ == 0) Write();
    meeting_.Barrier();  // nobody tears its connections down before
  }

 private:
  // Rank 0 says when a phase is over: after so many iterations, or when its time is.
  void Advance() {
    const std::int64_t now_ns = Nanos(CLOCK_MONOTONIC);
    const double spent_s = Seconds(now_ns - phase_start_ns_);
    Phase& phase = meeting_.phase();
    if (phase == Phase::kWarmUp) {
      if (done_ >= kWarmUpMax || (done_ > 0 && spent_s > FLAGS_time_cap * kWarmUpPart)) {
        phase = Phase::kMeasure;
        phase_start_ns_ = now_ns;
        done_ = 0;
      }
    } else if (done_ >= FLAGS_iterations ||
               (done_ >= FLAGS_iterations_min && spent_s > FLAGS_time_cap)) {
      phase = Phase::kEnd;
    }
    ++done_;
  }

  void Iterate(bool measured) {
    Slot& slot = meeting_.slot(rank_);
    const std::int64_t cpu_before = Nanos(CLOCK_PROCESS_CPUTIME_ID);
    slot.start_ns = Nanos(CLOCK_MONOTONIC);
    contender_.AllReduce();
    slot.end_ns = Nanos(CLOCK_MONOTONIC);
    meeting_.Barrier();
    if (!measured) return;
    cpu_s_ += Seconds(Nanos(CLOCK_PROCESS_CPUTIME_ID) - cpu_before);
    if (rank_ != 0) return;
    std::int64_t first = slot.start_ns;
    std::int64_t last = slot.end_ns;
    for (int r = 0; r < ranks_; ++r) {
      first = std::min(first, meeting_.slot(r).start_ns);
      last = std::max(last, meeting_.slot(r).end_ns);
    }
    samples_us_.push_back(static_cast<double>(last - first) * 1e-3);
  }

  void Write() {
    double cpu_s = 0;
    std::uint64_t wrong = 0;
    for (int r = 0; r < ranks_; ++r) {
      cpu_s += meeting_.slot(r).cpu_s;
      wrong += meeting_.slot(r).wrong;
    }
    std::string line = "{" + FLAGS_fields + (FLAGS_fields.empty() ? "" : ", ");
    line += "\"ranks\": " + std::to_string(ranks_) +
            ", \"bytes\": " + std::to_string(in_.size() * sizeof(float)) +
            ", \"wrong\": " + std::to_string(wrong) + ", \"cpu_s\": " + std::to_string(cpu_s) +
            ", \"samples_us\": [";
    char text[32];
    for (std::size_t i = 0; i < samples_us_.size(); ++i) {
      std::snprintf(text, sizeof(text), "%s%.1f", i == 0 ? "" : ", ", samples_us_[i]);
      line += text;
    }
    line += "]}\n";
    std::FILE* const file = std::fopen(FLAGS_result.c_str(), "ae");
    if (file == nullptr || std::fputs(line.c_str(), file) < 0 || std::fclose(file) != 0) {
      std::perror(FLAGS_result.c_str());
      std::exit(1);
    }
  }

  const int rank_;
  const int ranks_;
  std::vector<float> in_;
  std::vector<float> out_;
  Contender contender_;
  Meeting meeting_;

  int done_ = 0;
  std::int64_t phase_start_ns_ = 0;
  std::vector<double> samples_us_;  // rank 0 only
  double cpu_s_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace
}  // namespace optireduce::lab

int main(int argc, char** argv) {
  gflags::SetUsageMessage("one rank of a measurement; compare.py starts them");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const int rank = optireduce::lab::FromEnvironment("RANK", "OMPI_COMM_WORLD_RANK");
  const int ranks = optireduce::lab::FromEnvironment("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE");
  if (ranks < 1 || ranks > optireduce::lab::kRanksMax || rank < 0 || rank >= ranks ||
      FLAGS_bytes < sizeof(float) || FLAGS_meeting.empty() || FLAGS_result.empty()) {
    std::fputs("measure: needs a rank, 1 to 64 ranks, --bytes, --meeting and --result\n", stderr);
    return 2;
  }
  optireduce::lab::Rank(rank, ranks).Run();
  return 0;
}
