// Element types and reduction operators, and which pairs exist.
#ifndef OPTIREDUCE_TYPES_H_
#define OPTIREDUCE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace optireduce {

// Numeric values are wire format.
enum class DataType : std::uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt8 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kUInt8 = 8,
  kBool = 9,  // one byte; nonzero is true, results are 0 or 1
};
inline constexpr std::size_t kDataTypes = 10;

// Numeric values are wire format.
enum class ReduceOp : std::uint8_t {
  kSum = 0,
  kAvg = 1,
  kProduct = 2,
  kMin = 3,
  kMax = 4,
  kBitAnd = 5,
  kBitOr = 6,
  kBitXor = 7,
};
inline constexpr std::size_t kReduceOps = 8;

// Numeric values are wire format.
enum class Mode : std::uint8_t {
  kExact = 0,    // cells close only complete; the op timeout is an error
  kBounded = 1,  // cells close at the deadline with whoever is in; see Report
};

std::size_t ElementBytes(DataType type);
std::string_view Name(DataType type);  // "float32"
std::string_view Name(ReduceOp op);    // "sum"
std::string_view Name(Mode mode);      // "exact"

// True where (type, op) is defined: bitwise operators only on integers and bool, AVG not on bool.
bool Supported(DataType type, ReduceOp op);
// True where a contribution may be left out of the result: SUM and AVG of floating point types.
bool MayBeBounded(DataType type, ReduceOp op);

}  // namespace optireduce

#endif  // OPTIREDUCE_TYPES_H_
