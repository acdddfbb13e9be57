#include "collectives/reduce_sets.h"

#if defined(__x86_64__)

// Everything of the standard library comes before the pragma: only our own functions, which are in
// an unnamed namespace, may be compiled for more than every machine has. No FMA: see
// collectives/reduce_rules.h.
#include <xmmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#include "collectives/reduce_loops.h"

namespace optireduce {

// The first mention of Find, which instantiates the loops, is under the pragma.
Kernels Avx2Kernels(DataType type, ReduceOp op) { return Find(type, op); }

}  // namespace optireduce

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

namespace optireduce {

Kernels Avx2Kernels(DataType, ReduceOp) { return {}; }

}  // namespace optireduce

#endif
