// How contributions become a result: for each (type, operator) three loops over packed elements.
// docs/numerics.md says what they compute; the bits do not depend on the machine.
//
// Pure functions on memory: no state, no allocation, any thread. Element and accumulator pointers
// need no alignment. They know nothing of cells, order or who contributed: the caller loads the
// first contribution, adds the others in the order of the op, and finishes once.
#ifndef OPTIREDUCE_COLLECTIVES_REDUCE_H_
#define OPTIREDUCE_COLLECTIVES_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "optireduce/types.h"

namespace optireduce {

// What an accumulator holds is private to its (type, op): only finish turns it into elements, also
// when there was but one contribution.
struct Kernels {
  // accumulators = elements (the first contribution)
  void (*load)(void* accumulators, const void* elements, std::size_t count) = nullptr;
  // accumulators = accumulators OP elements
  void (*add)(void* accumulators, const void* elements, std::size_t count) = nullptr;
  // elements = the reduction, rounded once to the type. AVG divides by `ranks` here and nothing
  // else reads it; at least 1. `elements` may be the accumulators' own memory (the same address,
  // never another overlap): what is written then is at the front.
  void (*finish)(void* elements, const void* accumulators, std::size_t count,
                 std::uint32_t ranks) = nullptr;
  std::size_t accumulator_bytes = 0;  // of one element

  explicit operator bool() const { return load != nullptr; }
};

// The fastest kernels that this machine runs; empty where the pair is not Supported.
Kernels KernelsFor(DataType type, ReduceOp op);

// Bytes of one element's accumulator: 4 for sums of half types; for averages of integers what
// keeps their sum exact; else those of the element. 0 where the pair is not Supported.
std::size_t AccumulatorBytes(DataType type, ReduceOp op);

// Instruction sets that the kernels are built for. All give the same bits; only the speed differs.
enum class Isa { kBaseline, kAvx2 };
bool Runs(Isa isa);
Kernels KernelsFor(DataType type, ReduceOp op, Isa isa);

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_REDUCE_H_
