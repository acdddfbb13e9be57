// Who came to the master's port and got no seat, by why: running totals, zero on other ranks.
//
// The control thread adds, any thread reads. Every guest that is let go without a seat adds one.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_GUEST_COUNTS_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_GUEST_COUNTS_H_

#include <atomic>
#include <cstdint>

namespace optireduce::control {

struct GuestCounts {
  std::atomic<std::uint64_t> malformed{0};      // no frame of ours, or not the one that was due
  std::atomic<std::uint64_t> other_version{0};  // of the control protocol
  std::atomic<std::uint64_t> wrong_key{0};      // another job key, or one too many or too few
  std::atomic<std::uint64_t> refused{0};        // a claim of a rank that is not to be had
  std::atomic<std::uint64_t> silent{0};         // said too little for too long
  std::atomic<std::uint64_t> crowded_out{0};    // made room for a newer one
  std::atomic<std::uint64_t> left{0};           // went away by itself
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_GUEST_COUNTS_H_
