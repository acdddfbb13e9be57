#include "transport/ubt/op_spec.h"

namespace optireduce::ubt {

std::string Describe(const OpSpec& spec) {
  std::string text = "all_reduce " + std::string(Name(spec.reduce)) + " of " +
                     std::to_string(spec.count) + " " + std::string(Name(spec.type)) + " (" +
                     std::string(Name(spec.mode));
  if (spec.fingerprint != 0) text += ", key " + std::to_string(spec.fingerprint);
  return text + ")";
}

Status Mismatch(OpNumber op, Rank a, const OpSpec& spec_a, Rank b, const OpSpec& spec_b) {
  return {Code::kMismatch, "op " + std::to_string(op) + ": ranks differ: rank " +
                               std::to_string(a) + " called " + Describe(spec_a) + ", rank " +
                               std::to_string(b) + " called " + Describe(spec_b) +
                               "; make the same calls in the same order on all ranks"};
}

}  // namespace optireduce::ubt
