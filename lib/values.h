// The text forms of durations, sizes and numbers in options and flags, both ways. Formatting gives
// one text per value, so that equal values have equal texts on all ranks.
//
// Pure functions. Ranges are the caller's business.
#ifndef OPTIREDUCE_LIB_VALUES_H_
#define OPTIREDUCE_LIB_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "optireduce/time.h"

namespace optireduce {

// "250us", "20ms", "5s", "1m", "24h", "15ns"; a bare number says nothing and is refused, except 0.
std::optional<Duration> ParseDuration(std::string_view text);
// In the largest unit that leaves a whole number; "0" for none.
std::string FormatDuration(Duration duration);

// Bytes: "1472", "64K", "25M", "1G", "2T", powers of 1024, upper or lower case.
std::optional<std::uint64_t> ParseBytes(std::string_view text);
std::string FormatBytes(std::uint64_t bytes);

// Decimal digits only.
std::optional<std::uint64_t> ParseCount(std::string_view text);

// A plain finite number: "1", "0.25".
std::optional<double> ParseNumber(std::string_view text);
// The shortest text that parses to the same bits.
std::string FormatNumber(double number);

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_VALUES_H_
