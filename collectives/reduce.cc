#include "collectives/reduce.h"

#include "collectives/reduce_sets.h"

namespace optireduce {

bool Runs(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return true;
    case Isa::kAvx2:
#if defined(__x86_64__)
      return __builtin_cpu_supports("avx2") != 0;
#else
      return false;
#endif
  }
  return false;
}

Kernels KernelsFor(DataType type, ReduceOp op, Isa isa) {
  if (!Runs(isa)) return {};
  return isa == Isa::kAvx2 ? Avx2Kernels(type, op) : BaselineKernels(type, op);
}

Kernels KernelsFor(DataType type, ReduceOp op) {
  static const Isa best = Runs(Isa::kAvx2) ? Isa::kAvx2 : Isa::kBaseline;
  return KernelsFor(type, op, best);
}

std::size_t AccumulatorBytes(DataType type, ReduceOp op) {
  return BaselineKernels(type, op).accumulator_bytes;
}

}  // namespace optireduce
