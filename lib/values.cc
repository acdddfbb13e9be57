#include "lib/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <system_error>

#include "lib/check.h"

namespace optireduce {
namespace {

struct Unit {
  std::string_view suffix;
  std::uint64_t factor;
};

// Largest first.
constexpr std::array kDurationUnits = {
    Unit{"h", 3'600'000'000'000}, Unit{"m", 60'000'000'000}, Unit{"s", 1'000'000'000},
    Unit{"ms", 1'000'000},        Unit{"us", 1'000},         Unit{"ns", 1},
};
constexpr std::array kByteUnits = {
    Unit{"T", std::uint64_t{1} << 40}, Unit{"G", std::uint64_t{1} << 30},
    Unit{"M", std::uint64_t{1} << 20}, Unit{"K", std::uint64_t{1} << 10},
    Unit{"", 1},
};

// value * factor, unless it is more than `max`.
std::optional<std::uint64_t> Scale(std::uint64_t value, std::uint64_t factor, std::uint64_t max) {
  if (value > max / factor) return std::nullopt;
  return value * factor;
}

std::string FormatIn(std::span<const Unit> units, std::uint64_t value) {
  if (value == 0) return "0";
  for (const Unit& unit : units) {
    if (value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.suffix);
    }
  }
  CheckFailed("the last unit is 1", __FILE__, __LINE__);
}

}  // namespace

std::optional<std::uint64_t> ParseCount(std::string_view text) {
  // from_chars would take a minus sign only for signed types, and takes no plus and no space.
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<Duration> ParseDuration(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::uint64_t> count = ParseCount(text.substr(0, digits));
  if (!count) return std::nullopt;
  const std::string_view suffix = text.substr(digits);
  if (suffix.empty()) return *count == 0 ? std::optional(Duration{0}) : std::nullopt;
  for (const Unit& unit : kDurationUnits) {
    if (suffix != unit.suffix) continue;
    const auto ns = Scale(*count, unit.factor,
                          static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max()));
    if (!ns) return std::nullopt;
    return Duration{static_cast<Duration::rep>(*ns)};
  }
  return std::nullopt;
}

std::string FormatDuration(Duration duration) {
  const Duration::rep ns = duration.count();
  if (ns < 0) return "-" + FormatIn(kDurationUnits, 0 - static_cast<std::uint64_t>(ns));
  return FormatIn(kDurationUnits, static_cast<std::uint64_t>(ns));
}

std::optional<std::uint64_t> ParseBytes(std::string_view text) {
  std::uint64_t factor = 1;
  if (!text.empty()) {
    const char last = text.back();
    const char upper = last >= 'a' && last <= 'z' ? static_cast<char>(last - 'a' + 'A') : last;
    for (const Unit& unit : kByteUnits) {
      if (unit.suffix == std::string_view(&upper, 1)) {
        factor = unit.factor;
        text.remove_suffix(1);
        break;
      }
    }
  }
  const std::optional<std::uint64_t> count = ParseCount(text);
  if (!count) return std::nullopt;
  return Scale(*count, factor, std::numeric_limits<std::uint64_t>::max());
}

std::string FormatBytes(std::uint64_t bytes) { return FormatIn(kByteUnits, bytes); }

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value == 0 ? 0.0 : value;  // no "-0"
}

std::string FormatNumber(double number) {
  std::array<char, 32> text;
  const auto [stop, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  OR_CHECK(error == std::errc());
  return {text.data(), stop};
}

}  // namespace optireduce
