// The keys of a job, from the random one that the ranks share down to the one of an ordered pair.
//
//   job key --(group, epoch)--> group key --(from, to)--> pair key    signs packets (wire/seal.h)
//                                         \-------------> cookie      in their place, tag = off
//
// Each arrow is BLAKE2b, keyed with what is left of it, over a label and the numbers: who knows a
// key learns nothing about those left of it or beside it. Free functions and values: any thread.
// Secrets are wiped when they die and are never printed; how a job key reaches the ranks is not
// decided here.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_KEYS_H_
#define OPTIREDUCE_TRANSPORT_WIRE_KEYS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>

#include "lib/ids.h"

namespace optireduce::wire {

// Overwrites bytes in a way that the compiler does not leave out.
void Wipe(std::span<std::byte> bytes);
// Compares without telling by its duration where the first difference is.
bool EqualInConstantTime(std::span<const std::byte> a, std::span<const std::byte> b);

// `Bytes` secret bytes; `Kind` keeps the kinds of secrets apart. Copies wipe themselves too.
template <std::size_t Bytes, typename Kind>
class Secret {
 public:
  static constexpr std::size_t kBytes = Bytes;

  explicit Secret(std::span<const std::byte, Bytes> bytes) {
    for (std::size_t i = 0; i < Bytes; ++i) bytes_[i] = bytes[i];
  }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { Wipe(bytes_); }

  // For sending to a rank that is entitled to it and for deriving; never for showing.
  std::span<const std::byte, Bytes> bytes() const { return bytes_; }

  friend bool operator==(const Secret& a, const Secret& b) {
    return EqualInConstantTime(a.bytes_, b.bytes_);
  }
  friend std::ostream& operator<<(std::ostream&, const Secret&) = delete;

 private:
  std::array<std::byte, Bytes> bytes_;
};

using JobKey = Secret<32, struct JobKeyKind>;
using GroupKey = Secret<32, struct GroupKeyKind>;
using PairKey = Secret<16, struct PairKeyKind>;

// 32 bytes from the operating system's generator.
JobKey MakeJobKey();

GroupKey DeriveGroupKey(const JobKey& job_key, std::uint32_t group, std::uint16_t epoch);

// The key of what `from` sends to `to`. The other direction has another one, so that the packet
// numbers of the two never meet under one key.
PairKey DerivePairKey(const GroupKey& group_key, Rank from, Rank to);

// What stands in every packet of the group with tag = off. Sent in the clear: not a secret among
// those who see the packets, but off their path nobody can guess it.
std::uint64_t DeriveCookie(const GroupKey& group_key);

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_KEYS_H_
