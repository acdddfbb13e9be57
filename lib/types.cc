#include "optireduce/types.h"

#include "lib/check.h"

namespace optireduce {
namespace {

bool IsFloatingPoint(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat64:
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return true;
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUInt8:
    case DataType::kBool:
      return false;
  }
  return false;
}

}  // namespace

std::size_t ElementBytes(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUInt8:
    case DataType::kBool:
      return 1;
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kInt16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
  }
  // A size of 0 would divide somewhere far from the cause.
  CheckFailed("a known data type", __FILE__, __LINE__);
}

std::string_view Name(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kInt8:
      return "int8";
    case DataType::kInt16:
      return "int16";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kUInt8:
      return "uint8";
    case DataType::kBool:
      return "bool";
  }
  return "unknown";
}

std::string_view Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAvg:
      return "avg";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kBitAnd:
      return "bitand";
    case ReduceOp::kBitOr:
      return "bitor";
    case ReduceOp::kBitXor:
      return "bitxor";
  }
  return "unknown";
}

std::string_view Name(Mode mode) {
  switch (mode) {
    case Mode::kExact:
      return "exact";
    case Mode::kBounded:
      return "bounded";
  }
  return "unknown";
}

bool Supported(DataType type, ReduceOp op) {
  if (static_cast<std::size_t>(type) >= kDataTypes) return false;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return true;
    case ReduceOp::kAvg:  // the average of truth values is none
      return type != DataType::kBool;
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      return !IsFloatingPoint(type);
  }
  return false;
}

bool MayBeBounded(DataType type, ReduceOp op) {
  return IsFloatingPoint(type) && (op == ReduceOp::kSum || op == ReduceOp::kAvg);
}

}  // namespace optireduce
