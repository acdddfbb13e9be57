// What a stranger's program needs from an installation: the headers and one library. A group of one
// needs no network, and yet links all of it.
#include <optireduce/communicator.h>

#include <array>
#include <cstdio>

int main() {
  optireduce::CommunicatorOptions options;
  options.rank = 0;
  options.world_size = 1;
  const auto communicator = optireduce::Communicator::Create(options);
  if (!communicator.ok()) {
    std::fprintf(stderr, "%s\n", communicator.status().ToString().c_str());
    return 1;
  }
  std::array<float, 2> values = {1, 2};
  const optireduce::Report report =
      (*communicator)
          ->AllReduce(values.data(), values.data(), values.size(), optireduce::DataType::kFloat32,
                      optireduce::ReduceOp::kSum)
          .Wait();
  std::printf("%g %g\n", static_cast<double>(values[0]), static_cast<double>(values[1]));
  return report.status.ok() && values[1] == 2 ? 0 : 1;
}
