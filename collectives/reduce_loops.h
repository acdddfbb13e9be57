// The loops over rules (collectives/reduce_rules.h, which says why all is in an unnamed namespace),
// and the table that finds them. Included by one source file for each instruction set.
#ifndef OPTIREDUCE_COLLECTIVES_REDUCE_LOOPS_H_
#define OPTIREDUCE_COLLECTIVES_REDUCE_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collectives/reduce.h"
#include "collectives/reduce_rules.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace optireduce {
namespace {

// Round to nearest, subnormals kept, nothing trapped, for as long as it lives: the thread may be
// the caller's, and frameworks have a switch that flushes subnormals to zero. Elsewhere than on
// x86-64 the thread's own mode counts.
class PlainFloatMode {
 public:
#if defined(__x86_64__)
  PlainFloatMode() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kFlags) != kPlain) _mm_setcsr(kPlain);
  }
  ~PlainFloatMode() {
    if ((saved_ & ~kFlags) != kPlain) _mm_setcsr(saved_);
  }
#else
  PlainFloatMode() {}
  ~PlainFloatMode() {}
#endif
  PlainFloatMode(const PlainFloatMode&) = delete;
  PlainFloatMode& operator=(const PlainFloatMode&) = delete;

#if defined(__x86_64__)
 private:
  static constexpr unsigned kFlags = 0x3FU;    // sticky: what has happened
  static constexpr unsigned kPlain = 0x1F80U;  // all exceptions masked, everything else off
  unsigned saved_;
#endif
};

template <typename Rule>
struct Loops {
  using Element = typename Rule::Element;
  using Accumulator = typename Rule::Accumulator;

  // The copies are unaligned loads and stores to the compiler, and the loops vector code.
  template <typename T>
  static T Read(const std::byte* from, std::size_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  static void Write(std::byte* to, std::size_t index, T value) {
    std::memcpy(to + index * sizeof(T), &value, sizeof(T));
  }

  // The loops are not inlined: no operation may move out of the scope of the mode.
  [[gnu::noinline]] static void LoadLoop(void* accumulators, const void* elements,
                                         std::size_t count) {
    auto* __restrict to = static_cast<std::byte*>(accumulators);
    const auto* __restrict from = static_cast<const std::byte*>(elements);
    for (std::size_t i = 0; i < count; ++i) Write(to, i, Rule::Load(Read<Element>(from, i)));
  }

  [[gnu::noinline]] static void AddLoop(void* accumulators, const void* elements,
                                        std::size_t count) {
    auto* __restrict to = static_cast<std::byte*>(accumulators);
    const auto* __restrict from = static_cast<const std::byte*>(elements);
    for (std::size_t i = 0; i < count; ++i) {
      Write(to, i, Rule::Add(Read<Accumulator>(to, i), Rule::Load(Read<Element>(from, i))));
    }
  }

  // By way of a block on the stack, so that the loop is vector code also where the result lies on
  // its accumulators: an element is never wider than its accumulator, so a block is written only
  // where everything has been read.
  [[gnu::noinline]] static void FinishLoop(void* elements, const void* accumulators,
                                           std::size_t count, std::uint32_t ranks) {
    static_assert(sizeof(Element) <= sizeof(Accumulator));
    constexpr std::size_t kBlock = 64;
    auto* to = static_cast<std::byte*>(elements);
    const auto* from = static_cast<const std::byte*>(accumulators);
    Element block[kBlock];
    for (; count >= kBlock; count -= kBlock) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        block[i] = Rule::Finish(Read<Accumulator>(from, i), ranks);
      }
      std::memcpy(to, block, sizeof(block));
      to += sizeof(block);
      from += kBlock * sizeof(Accumulator);
    }
    for (std::size_t i = 0; i < count; ++i) {
      Write(to, i, Rule::Finish(Read<Accumulator>(from, i), ranks));
    }
  }
};

// The loops as kernels: those that compute with floats, under the plain mode.
template <typename Rule>
struct InPlainMode {
  static void Load(void* accumulators, const void* elements, std::size_t count) {
    const PlainFloatMode mode;
    Loops<Rule>::LoadLoop(accumulators, elements, count);
  }
  static void Add(void* accumulators, const void* elements, std::size_t count) {
    const PlainFloatMode mode;
    Loops<Rule>::AddLoop(accumulators, elements, count);
  }
  static void Finish(void* elements, const void* accumulators, std::size_t count,
                     std::uint32_t ranks) {
    const PlainFloatMode mode;
    Loops<Rule>::FinishLoop(elements, accumulators, count, ranks);
  }
};

template <typename Rule>
Kernels Of() {
  constexpr std::size_t kBytes = sizeof(typename Rule::Accumulator);
  if constexpr (Rule::kFloatingPoint) {
    return {&InPlainMode<Rule>::Load, &InPlainMode<Rule>::Add, &InPlainMode<Rule>::Finish, kBytes};
  } else {
    return {&Loops<Rule>::LoadLoop, &Loops<Rule>::AddLoop, &Loops<Rule>::FinishLoop, kBytes};
  }
}

template <typename Form, typename Bits, Bits kInfinity>
Kernels OfFloat(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return Of<FloatRule<Form, Plus, KeepSum>>();
    case ReduceOp::kAvg: return Of<FloatRule<Form, Plus, DivideSum>>();
    case ReduceOp::kProduct: return Of<FloatRule<Form, Times, KeepSum>>();
    case ReduceOp::kMin: return Of<FloatExtremeRule<Bits, kInfinity, false>>();
    case ReduceOp::kMax: return Of<FloatExtremeRule<Bits, kInfinity, true>>();
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor: break;
  }
  return {};
}

template <typename T, typename AverageSum>
Kernels OfInteger(ReduceOp op) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::kSum: return Of<IntegerRule<Unsigned, Plus>>();
    case ReduceOp::kAvg: return Of<IntegerAverageRule<T, AverageSum>>();
    case ReduceOp::kProduct: return Of<IntegerRule<Unsigned, Times>>();
    case ReduceOp::kMin: return Of<IntegerRule<T, Lesser>>();
    case ReduceOp::kMax: return Of<IntegerRule<T, Greater>>();
    case ReduceOp::kBitAnd: return Of<IntegerRule<Unsigned, And>>();
    case ReduceOp::kBitOr: return Of<IntegerRule<Unsigned, Or>>();
    case ReduceOp::kBitXor: return Of<IntegerRule<Unsigned, Xor>>();
  }
  return {};
}

Kernels OfBool(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBitOr: return Of<BoolRule<Or>>();
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd: return Of<BoolRule<And>>();
    case ReduceOp::kBitXor: return Of<BoolRule<Xor>>();
    case ReduceOp::kAvg: break;
  }
  return {};
}

Kernels Find(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat32:
      return OfFloat<Plain<float>, std::uint32_t, 0x7F800000U>(op);
    case DataType::kFloat64:
      return OfFloat<Plain<double>, std::uint64_t, 0x7FF0000000000000U>(op);
    case DataType::kFloat16: return OfFloat<Half, std::uint16_t, 0x7C00U>(op);
    case DataType::kBFloat16: return OfFloat<BrainHalf, std::uint16_t, 0x7F80U>(op);
    case DataType::kInt8: return OfInteger<std::int8_t, std::int32_t>(op);
    case DataType::kInt16: return OfInteger<std::int16_t, std::int32_t>(op);
    case DataType::kInt32: return OfInteger<std::int32_t, std::int64_t>(op);
    case DataType::kInt64: return OfInteger<std::int64_t, std::int64_t>(op);
    case DataType::kUInt8: return OfInteger<std::uint8_t, std::int32_t>(op);
    case DataType::kBool: return OfBool(op);
  }
  return {};
}

}  // namespace
}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_REDUCE_LOOPS_H_
