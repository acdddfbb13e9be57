// What every rank must agree on about an op, and what its engine gets back about its end.
#ifndef OPTIREDUCE_TRANSPORT_UBT_OP_SPEC_H_
#define OPTIREDUCE_TRANSPORT_UBT_OP_SPEC_H_

#include <cstdint>
#include <string>

#include "lib/ids.h"
#include "optireduce/status.h"
#include "optireduce/types.h"

namespace optireduce::ubt {

// Travels in OPEN and is compared on every rank; ranks that differ fail the group.
struct OpSpec {
  std::uint64_t count = 0;  // elements
  DataType type = DataType::kFloat32;
  ReduceOp reduce = ReduceOp::kSum;
  Mode mode = Mode::kExact;
  std::uint64_t fingerprint = 0;  // of the caller's key, 0: none
  friend bool operator==(const OpSpec&, const OpSpec&) = default;
};

// "all_reduce sum of 1024 float32 (exact)".
std::string Describe(const OpSpec& spec);
// Two ranks called different things as one op: names both, with what each called.
Status Mismatch(OpNumber op, Rank a, const OpSpec& spec_a, Rank b, const OpSpec& spec_b);

// Who was left out of an op, in entries: one element of one rank's contribution is one entry.
struct LossLedger {
  std::uint64_t late_entries = 0;  // carried into a later op of the key
  std::uint64_t lost_entries = 0;  // never applied
  std::uint64_t own_left_out_entries = 0;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_OP_SPEC_H_
