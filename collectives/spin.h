// Whether a short look for packets before the kernel sleep still pays. Each look that finds nothing
// doubles the number of sleeps that go without one, up to kSkipMax; one that finds something ends
// that. So ranks whose packets follow closely save a sleep and a wake-up each time, and one that
// waits long spends next to nothing on looking.
//
// Threads: one at a time, whoever turns the engine. It reads no clock.
#ifndef OPTIREDUCE_COLLECTIVES_SPIN_H_
#define OPTIREDUCE_COLLECTIVES_SPIN_H_

#include <algorithm>
#include <cstdint>

namespace optireduce {

class AdaptiveSpin {
 public:
  static constexpr std::uint32_t kSkipMax = 64;

  // Once per sleep: look before this one?
  bool Due() {
    if (to_skip_ == 0) return true;
    --to_skip_;
    return false;
  }
  void Found() { skip_ = 0; }
  void FoundNothing() {
    skip_ = std::clamp(skip_ * 2, std::uint32_t{1}, kSkipMax);
    to_skip_ = skip_;
  }

 private:
  std::uint32_t skip_ = 0;
  std::uint32_t to_skip_ = 0;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_SPIN_H_
