// Compares our conversions of float16 and bfloat16, on every instruction set of this machine, with
// Eigen's: all 65536 halves to float32, and all 2^32 floats to half. NaNs need only be NaNs, since
// ours are made canonical (docs/numerics.md). Prints what differs, and fails then; takes about a
// minute.
#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "collectives/reduce.h"
#include "optireduce/types.h"

namespace optireduce::lab {
namespace {

constexpr std::uint32_t kShown = 10;
constexpr std::size_t kBlock = 1 << 16;  // elements

template <typename Half>
struct Comparison {
  const char* name;
  DataType type;
  std::uint64_t differences = 0;

  void Differ(const char* way, std::uint32_t from, std::uint32_t ours, std::uint32_t eigen) {
    if (++differences > kShown) return;
    std::printf("%s %s: %08x becomes %08x, with Eigen %08x\n", name, way, from, ours, eigen);
  }

  // A sum's accumulator is the float32 that the half stands for, and its finish rounds that.
  void ToFloat(const Kernels& sum) {
    std::vector<std::uint16_t> halves(kBlock);
    std::vector<float> floats(kBlock);
    for (std::uint32_t i = 0; i < kBlock; ++i) halves[i] = static_cast<std::uint16_t>(i);
    sum.load(floats.data(), halves.data(), kBlock);
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      const auto eigen = static_cast<float>(std::bit_cast<Half>(halves[i]));
      const bool both_nan = std::isnan(floats[i]) && std::isnan(eigen);
      const auto our_bits = std::bit_cast<std::uint32_t>(floats[i]);
      const auto eigen_bits = std::bit_cast<std::uint32_t>(eigen);
      if (our_bits != eigen_bits && !both_nan) Differ("to float32", i, our_bits, eigen_bits);
    }
  }

  void ToHalf(const std::vector<Kernels>& sums, std::uint32_t first) {
    static std::vector<float> floats(kBlock);
    static std::vector<std::uint16_t> eigen(kBlock);
    static std::vector<std::uint16_t> ours(kBlock);
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      floats[i] = std::bit_cast<float>(first + i);
      eigen[i] = std::bit_cast<std::uint16_t>(static_cast<Half>(floats[i]));
    }
    for (const Kernels& sum : sums) {
      sum.finish(ours.data(), floats.data(), kBlock, 1);
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        if (ours[i] == eigen[i]) continue;
        const bool both_nan = std::isnan(static_cast<float>(std::bit_cast<Half>(ours[i]))) &&
                              std::isnan(floats[i]);
        if (!both_nan) Differ("from float32", first + i, ours[i], eigen[i]);
      }
    }
  }

  bool Run() {
    std::vector<Kernels> sums;
    for (const Isa isa : {Isa::kBaseline, Isa::kAvx2}) {
      if (Runs(isa)) sums.push_back(KernelsFor(type, ReduceOp::kSum, isa));
    }
    for (const Kernels& sum : sums) ToFloat(sum);
    for (std::uint64_t first = 0; first < (1ULL << 32); first += kBlock) {
      ToHalf(sums, static_cast<std::uint32_t>(first));
    }
    std::printf("%s: %zu halves and 2^32 floats on %zu instruction sets, %llu differences\n", name,
                kBlock, sums.size(), static_cast<unsigned long long>(differences));
    return differences == 0;
  }
};

}  // namespace
}  // namespace optireduce::lab

int main() {
  using namespace optireduce;  // NOLINT: a main of two lines
  const bool float16 = lab::Comparison<Eigen::half>{"float16", DataType::kFloat16}.Run();
  const bool bfloat16 = lab::Comparison<Eigen::bfloat16>{"bfloat16", DataType::kBFloat16}.Run();
  return float16 && bfloat16 ? 0 : 1;
}
