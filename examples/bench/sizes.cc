#include "examples/bench/sizes.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

namespace optireduce::bench {
namespace {

constexpr std::size_t kSizesMax = 4096;

// The power of 1024 that a suffix stands for.
std::optional<unsigned> SuffixPower(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 0;
  constexpr std::string_view kLetters = "KMGT";
  const char first = suffix.front() >= 'a' ? static_cast<char>(suffix.front() - 'a' + 'A')
                                           : suffix.front();
  const std::size_t at = kLetters.find(first);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "B" && rest != "b" && rest != "iB" && rest != "ib") {
    return std::nullopt;
  }
  return static_cast<unsigned>(at) + 1;
}

}  // namespace

std::optional<std::uint64_t> ParseSize(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop == text.data()) return std::nullopt;
  const std::optional<unsigned> power =
      SuffixPower(std::string_view(stop, static_cast<std::size_t>(end - stop)));
  if (!power) return std::nullopt;
  const unsigned shift = 10 * *power;
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

std::string SizeText(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", value, kUnits[unit]);
  return text.data();
}

Result<std::vector<std::uint64_t>> SweepSizes(const Sweep& sweep) {
  if (sweep.bytes_min > sweep.bytes_max) {
    return Status(Code::kInvalidArgument, "-b (" + std::to_string(sweep.bytes_min) +
                                              " bytes) is more than -e (" +
                                              std::to_string(sweep.bytes_max) + " bytes)");
  }
  std::vector<std::uint64_t> sizes = {sweep.bytes_min};
  if (sweep.bytes_min == sweep.bytes_max) return sizes;
  if (sweep.step_bytes == 0 && sweep.factor < 2) {
    return Status(Code::kInvalidArgument, "-f must be at least 2");
  }
  if (sweep.step_bytes == 0 && sweep.bytes_min == 0) {
    return Status(Code::kInvalidArgument, "-b 0 times -f stays 0: give -i, or a larger -b");
  }
  for (;;) {
    const std::uint64_t last = sizes.back();
    const std::uint64_t room = sweep.bytes_max - last;
    const bool fits = sweep.step_bytes != 0 ? sweep.step_bytes <= room
                                            : last <= sweep.bytes_max / sweep.factor;
    if (!fits) return sizes;
    if (sizes.size() == kSizesMax) {
      return Status(Code::kInvalidArgument,
                    "-b, -e and -i give more than " + std::to_string(kSizesMax) + " sizes");
    }
    sizes.push_back(sweep.step_bytes != 0 ? last + sweep.step_bytes : last * sweep.factor);
  }
}

}  // namespace optireduce::bench
