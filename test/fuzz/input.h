// The bytes of one fuzz input, read from the front as small choices. Past the end all are zero, so
// that every input means something. Not thread-safe.
#ifndef OPTIREDUCE_TEST_FUZZ_INPUT_H_
#define OPTIREDUCE_TEST_FUZZ_INPUT_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace optireduce::fuzz {

class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

  template <std::unsigned_integral T = std::uint8_t>
  T Number() {
    T value = 0;
    for (const std::byte byte : Raw(sizeof(T))) {
      value = static_cast<T>(std::uint64_t{value} << 8 | std::to_integer<std::uint64_t>(byte));
    }
    return value;
  }
  // 0 ... n-1
  std::uint32_t Below(std::uint32_t n) { return Number<std::uint8_t>() % n; }

  // At most `bytes`.
  std::span<const std::byte> Raw(std::size_t bytes) {
    const auto out = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(out.size());
    return out;
  }
  // Up to the next `end` or the end of all; `end` itself is dropped.
  std::string_view Text(char end) {
    const std::string_view all(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    const std::string_view out = all.substr(0, all.find(end));
    Raw(out.size() + 1);
    return out;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace optireduce::fuzz

#endif  // OPTIREDUCE_TEST_FUZZ_INPUT_H_
