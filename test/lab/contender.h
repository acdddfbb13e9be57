// OptiReduce++ as a contender of a referee that times the all-reduce of several libraries the same
// way: one process per rank, one float32 sum, called again and again. It is built against the
// installed library and finds its peers by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
//
// Modes: "exact" and "bounded", over the network. Any failure ends the process with a message,
// because the referee has no way to hear of one.
#ifndef OPTIREDUCE_TEST_LAB_CONTENDER_H_
#define OPTIREDUCE_TEST_LAB_CONTENDER_H_

#include <optireduce/communicator.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

struct Contender {
  Contender(int rank_in, int ranks, const char* mode, const float* in_in, float* out_in,
            std::size_t count_in)
      : rank(rank_in), in(in_in), out(out_in), count(count_in) {
    if (std::strcmp(mode, "shm") == 0) {
      Fail("mode shm: this version moves data over the network only; use exact or bounded");
    }
    if (std::strcmp(mode, "exact") != 0 && std::strcmp(mode, "bounded") != 0) {
      Fail("the modes are exact and bounded");
    }
    optireduce::CommunicatorOptions options;
    options.settings = {{"mode", mode}};
    auto made = optireduce::Communicator::Create(options);
    if (!made.ok()) Fail(made.status().ToString().c_str());
    communicator = *std::move(made);
    if (communicator->rank() != rank || communicator->size() != ranks) {
      Fail("RANK and WORLD_SIZE are not what the referee says");
    }
  }

  void AllReduce() {
    optireduce::Work work = communicator->AllReduce(in, out, count, optireduce::DataType::kFloat32,
                                                    optireduce::ReduceOp::kSum);
    const optireduce::Report& report = work.Wait();
    if (report.outcome == optireduce::Report::Outcome::kFailed) {
      Fail(report.status.ToString().c_str());
    }
  }

  [[noreturn]] void Fail(const char* why) const {
    std::fprintf(stderr, "optireduce, rank %d: %s\n", rank, why);
    std::fflush(nullptr);
    _exit(1);
  }

  const int rank;
  const float* const in;
  float* const out;
  const std::size_t count;
  std::unique_ptr<optireduce::Communicator> communicator;
};

#endif  // OPTIREDUCE_TEST_LAB_CONTENDER_H_
