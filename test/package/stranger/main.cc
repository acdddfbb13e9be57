// What a stranger's program needs from an installation: the headers and one library.
#include <optireduce/communicator.h>

#include <cstdio>
#include <string>

int main() {
  const std::string name(optireduce::Name(optireduce::DataType::kFloat32));
  const bool sums = optireduce::Supported(optireduce::DataType::kFloat32,
                                          optireduce::ReduceOp::kSum);
  std::printf("%s %s\n", name.c_str(), sums ? "sums" : "does not sum");
  return name == "float32" && sums ? 0 : 1;
}
