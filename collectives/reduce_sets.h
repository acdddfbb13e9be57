// The kernels of each instruction set; collectives/reduce.cc chooses.
#ifndef OPTIREDUCE_COLLECTIVES_REDUCE_SETS_H_
#define OPTIREDUCE_COLLECTIVES_REDUCE_SETS_H_

#include "collectives/reduce.h"

namespace optireduce {

Kernels BaselineKernels(DataType type, ReduceOp op);
// Empty where the compiler's target is no x86-64. Must not be called where the machine lacks AVX2.
Kernels Avx2Kernels(DataType type, ReduceOp op);

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_REDUCE_SETS_H_
