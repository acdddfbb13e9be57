// What one element's load, add and finish are, for each family of (type, operator). The loops are
// in collectives/reduce_loops.h, which includes this.
//
// Compiled once for each instruction set, so everything is in an unnamed namespace: two copies of
// one inline function with different instructions must never be merged by the linker. For the same
// reason a rule calls no function of the standard library at run time, not even std::bit_cast.
//
// A rule never multiplies and adds in one expression, so there is nothing that a compiler could
// contract to a fused operation.
#ifndef OPTIREDUCE_COLLECTIVES_REDUCE_RULES_H_
#define OPTIREDUCE_COLLECTIVES_REDUCE_RULES_H_

#include <cstdint>
#include <limits>
#include <type_traits>

namespace optireduce {
namespace {

static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

template <typename To, typename From>
To BitCast(From from) {
  return __builtin_bit_cast(To, from);
}

// Operators on unsigned integers wrap; a small type is widened by hand because the language would
// widen it to a signed one.
template <typename T>
using Modular = std::conditional_t<
    std::is_floating_point_v<T>, T,
    std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, std::uint32_t>>;

struct Plus {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
  }
};
struct Times {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
  }
};
struct And {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Lesser {
  template <typename T>
  static T Apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Greater {
  template <typename T>
  static T Apply(T a, T b) {
    return a < b ? b : a;
  }
};

// Integers, each operator in the type itself. Those that do not look at the sign are given the
// unsigned type.
template <typename T, typename Operator>
struct IntegerRule {
  using Element = T;
  using Accumulator = T;
  static constexpr bool kFloatingPoint = false;
  static Accumulator Load(Element x) { return x; }
  static Accumulator Add(Accumulator a, Accumulator x) { return Operator::Apply(a, x); }
  static Element Finish(Accumulator a, std::uint32_t) { return a; }
};

// Integer AVG: the sum in a type that holds it for 65536 ranks (64-bit sums wrap), then one
// division that truncates toward zero.
template <typename T, typename Sum>
struct IntegerAverageRule {
  using Element = T;
  using Accumulator = std::make_unsigned_t<Sum>;
  static constexpr bool kFloatingPoint = false;
  static Accumulator Load(Element x) { return static_cast<Accumulator>(static_cast<Sum>(x)); }
  static Accumulator Add(Accumulator a, Accumulator x) { return a + x; }
  static Element Finish(Accumulator a, std::uint32_t ranks) {
    return static_cast<Element>(static_cast<Sum>(a) / static_cast<Sum>(ranks));
  }
};

// One byte, any nonzero of which is true. Accumulators are 0 or 1, so bitwise operators are the
// logical ones.
template <typename Operator>
struct BoolRule {
  using Element = std::uint8_t;
  using Accumulator = std::uint8_t;
  static constexpr bool kFloatingPoint = false;
  static Accumulator Load(Element x) { return x != 0 ? 1 : 0; }
  static Accumulator Add(Accumulator a, Accumulator x) { return Operator::Apply(a, x); }
  static Element Finish(Accumulator a, std::uint32_t) { return a; }
};

// All ones where a < b, both below 2^31. As arithmetic, which stays straight-line code where a
// compiler would make branches of comparisons that depend on each other.
inline std::uint32_t MaskLess(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
}

// Which NaN comes out of an operation on NaNs differs between machines, and with the order in which
// a compiler puts the operands. So the payload is dropped at the end: every NaN result is this one.
inline float OneNan(float x) {
  const std::uint32_t bits = BitCast<std::uint32_t>(x);
  const std::uint32_t nan = MaskLess(0x7F800000U, bits & 0x7FFFFFFFU);
  return BitCast<float>((bits & ~nan) | (0x7FC00000U & nan));
}
inline double OneNan(double x) {
  return x == x ? x : BitCast<double>(std::uint64_t{0x7FF8000000000000U});
}

struct KeepSum {
  template <typename F>
  static F Apply(F sum, std::uint32_t) {
    return sum;
  }
};
// A division, not a product with the reciprocal, which would round twice.
struct DivideSum {
  template <typename F>
  static F Apply(F sum, std::uint32_t ranks) {
    return sum / static_cast<F>(ranks);
  }
};

// How a type is kept in registers: Widen is exact, Narrow rounds to nearest, ties to even.
template <typename F>
struct Plain {
  using Element = F;
  using Wide = F;
  static Wide Widen(Element x) { return x; }
  static Element Narrow(Wide x) { return x; }
};

// Only integers depend on a condition, never a float operation: a compiler that has to respect the
// floating-point exceptions would not make vector code of it. No operation meets a subnormal float.
struct Half {
  using Element = std::uint16_t;
  using Wide = float;
  static Wide Widen(Element x) {
    constexpr std::uint32_t kExponent = 0x7C00U << 13;
    const std::uint32_t shifted = (x & 0x7FFFU) << 13;  // exponent and fraction in a float's place
    const std::uint32_t exponent = shifted & kExponent;
    // A subnormal has no hidden bit: it is given one, which is subtracted again.
    const std::uint32_t hidden = exponent == 0 ? 1U << 23 : 0;
    const std::uint32_t excess = exponent == 0 ? 113U << 23 : 0;
    const std::uint32_t infinite = exponent == kExponent ? (128U - 16U) << 23 : 0;
    const std::uint32_t rebiased = shifted + ((127U - 15U) << 23) + infinite + hidden;
    const float magnitude = BitCast<float>(rebiased) - BitCast<float>(excess);
    return BitCast<float>(BitCast<std::uint32_t>(magnitude) | (x & 0x8000U) << 16);
  }
  static Element Narrow(Wide x) {
    constexpr std::uint32_t kOneHalf = 0x3F000000U;  // 0.5
    constexpr std::uint32_t kNormal = 113U << 23;    // 2^-14, the least normal half
    constexpr std::uint32_t kTooLarge = 143U << 23;  // 2^16
    constexpr std::uint32_t kInfinity = 255U << 23;
    const std::uint32_t bits = BitCast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t small = MaskLess(magnitude, kNormal);
    const std::uint32_t large = MaskLess(kTooLarge, magnitude);
    const std::uint32_t nan = MaskLess(kInfinity, magnitude);
    // 2^16 becomes infinity without further ado, so all above it is taken for it.
    const std::uint32_t clamped = (magnitude & ~large) | (kTooLarge & large);
    // 0.5 has the last bit of a float where a half's subnormal has it: the addition rounds.
    const std::uint32_t aligned =
        BitCast<std::uint32_t>(BitCast<float>(clamped) + BitCast<float>(kOneHalf & small));
    // Rebias, and round by what is cut off and whether the last kept bit is odd. A carry out of the
    // fraction goes into the exponent, up to infinity, as it must.
    const std::uint32_t normal = (aligned + 0xC8000FFFU + ((aligned >> 13) & 1U)) >> 13;
    const std::uint32_t rounded = (normal & ~small) | ((aligned - kOneHalf) & small);
    return static_cast<Element>(rounded | (0x200U & nan) | (bits & 0x80000000U) >> 16);
  }
};

struct BrainHalf {
  using Element = std::uint16_t;
  using Wide = float;
  static Wide Widen(Element x) { return BitCast<float>(static_cast<std::uint32_t>(x) << 16); }
  // x is no NaN but OneNan's, whose fraction cannot carry.
  static Element Narrow(Wide x) {
    const std::uint32_t bits = BitCast<std::uint32_t>(x);
    return static_cast<Element>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
  }
};

template <typename Form, typename Operator, typename AtEnd>
struct FloatRule {
  using Element = typename Form::Element;
  using Accumulator = typename Form::Wide;
  static constexpr bool kFloatingPoint = true;
  static Accumulator Load(Element x) { return Form::Widen(x); }
  static Accumulator Add(Accumulator a, Accumulator x) { return Operator::Apply(a, x); }
  static Element Finish(Accumulator a, std::uint32_t ranks) {
    return Form::Narrow(OneNan(AtEnd::Apply(a, ranks)));
  }
};

// MIN and MAX of floating point types, as of signed integers in the order of the numbers: -0 below
// +0, and every NaN beyond the end that wins. Integers see no processor mode, and MAX over any
// order of contributions gives the same bits.
template <typename Bits, Bits kInfinity, bool kGreatest>
struct FloatExtremeRule {
  using Element = Bits;
  using Accumulator = std::make_signed_t<Bits>;
  static constexpr bool kFloatingPoint = false;
  static constexpr Bits kMagnitude = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1);
  // No number maps to it: the largest and the least integer are what NaNs would map to.
  static constexpr Accumulator kNan = kGreatest ? std::numeric_limits<Accumulator>::max()
                                                : std::numeric_limits<Accumulator>::min();
  // The quiet bit is the highest of the fraction.
  static constexpr Bits kOneNan = static_cast<Bits>(kInfinity | (kInfinity >> 1 & ~kInfinity));

  // Its own inverse.
  static Accumulator Order(Accumulator x) {
    const Accumulator negative = static_cast<Accumulator>(x < 0 ? -1 : 0);
    return static_cast<Accumulator>(x ^ (negative & static_cast<Accumulator>(kMagnitude)));
  }
  static Accumulator Load(Element x) {
    const Accumulator size = static_cast<Accumulator>(x & kMagnitude);
    const Accumulator key = Order(static_cast<Accumulator>(x));
    return size > static_cast<Accumulator>(kInfinity) ? kNan : key;
  }
  static Accumulator Add(Accumulator a, Accumulator x) {
    return kGreatest ? Greater::Apply(a, x) : Lesser::Apply(a, x);
  }
  static Element Finish(Accumulator a, std::uint32_t) {
    const Element number = static_cast<Element>(Order(a));
    return a == kNan ? kOneNan : number;
  }
};

}  // namespace
}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_REDUCE_RULES_H_
