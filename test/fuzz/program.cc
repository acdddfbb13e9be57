// The entry of a libFuzzer program; OPTIREDUCE_FUZZ_TARGET names what it runs.
#include <algorithm>
#include <cstdint>

#include "lib/check.h"
#include "test/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using optireduce::fuzz::kTargets;
  static const auto* const target = std::find_if(
      kTargets.begin(), kTargets.end(),
      [](const auto& entry) { return entry.name == OPTIREDUCE_FUZZ_TARGET; });
  OR_CHECK(target != kTargets.end());
  target->run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
