// Sums a tensor over all ranks. Start one process for each rank, with the variables of torchrun:
//
//   for rank in 0 1; do
//     RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 allreduce_example &
//   done; wait
#include <iostream>
#include <vector>

#include "optireduce/communicator.h"

int main() {
  auto made = optireduce::Communicator::Create({});
  if (!made.ok()) {
    std::cerr << made.status().ToString() << "\n";
    return 1;
  }
  optireduce::Communicator& group = **made;

  std::vector<float> gradient(1000, static_cast<float>(group.rank() + 1));
  optireduce::Work work =
      group.AllReduce(gradient.data(), gradient.data(), gradient.size(),
                      optireduce::DataType::kFloat32, optireduce::ReduceOp::kSum);
  const optireduce::Report& report = work.Wait();
  if (report.outcome == optireduce::Report::Outcome::kFailed) {
    std::cerr << report.status.ToString() << "\n";
    return 1;
  }
  std::cout << "rank " << group.rank() << " of " << group.size() << ": " << gradient[0] << "\n";
  return 0;
}
