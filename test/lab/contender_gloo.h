// Gloo as a contender (contender.h says what that is). Modes: "ring_chunked" (a pipelined ring) and
// "halving_doubling", over its TCP transport. Both reduce in place. The ranks find each other by
// files in the folder LAB_STORE, and by eth0.
//
// One thread. Gloo's errors are exceptions, which end the process.
#ifndef OPTIREDUCE_TEST_LAB_CONTENDER_GLOO_H_
#define OPTIREDUCE_TEST_LAB_CONTENDER_GLOO_H_

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Contender {
  static constexpr bool kInPlace = true;

  Contender(int rank, int ranks, const char* mode, const float* /*in*/, float* out,
            std::size_t count) {
    const char* const store_folder = std::getenv("LAB_STORE");
    if (store_folder == nullptr) throw std::runtime_error("gloo: LAB_STORE must name a folder");
    gloo::transport::tcp::attr attributes;
    attributes.iface = "eth0";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(store_folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    const std::vector<float*> tensors{out};
    const int elements = static_cast<int>(count);
    const std::string algorithm_name = mode;
    if (algorithm_name == "ring_chunked") {
      algorithm = std::make_unique<gloo::AllreduceRingChunked<float>>(context, tensors, elements);
    } else if (algorithm_name == "halving_doubling") {
      algorithm =
          std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, tensors, elements);
    } else {
      throw std::runtime_error("gloo: the modes are ring_chunked and halving_doubling");
    }
  }

  void AllReduce() { algorithm->run(); }

  std::unique_ptr<gloo::Algorithm> algorithm;
};

#endif  // OPTIREDUCE_TEST_LAB_CONTENDER_GLOO_H_
