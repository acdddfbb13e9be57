#include "lib/values.h"

#include <chrono>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "lib/random.h"

namespace optireduce {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Values, Durations) {
  EXPECT_EQ(ParseDuration("250us"), microseconds(250));
  EXPECT_EQ(ParseDuration("20ms"), milliseconds(20));
  EXPECT_EQ(ParseDuration("5s"), seconds(5));
  EXPECT_EQ(ParseDuration("1m"), minutes(1));
  EXPECT_EQ(ParseDuration("24h"), hours(24));
  EXPECT_EQ(ParseDuration("7ns"), nanoseconds(7));
  EXPECT_EQ(ParseDuration("0"), Duration{0});
  EXPECT_EQ(ParseDuration("0us"), Duration{0});
  for (const char* bad : {"", "5", "ms", "5 s", " 5s", "5s ", "-5s", "+5s", "1.5s", "5S", "5sec",
                          "0x5s", "9223372036855s", "99999999999999999999s"}) {
    EXPECT_EQ(ParseDuration(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseDuration("9223372036s"), seconds(9223372036));  // the largest that fits
}

TEST(Values, DurationTexts) {
  EXPECT_EQ(FormatDuration(Duration{0}), "0");
  EXPECT_EQ(FormatDuration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(FormatDuration(seconds(120)), "2m");
  EXPECT_EQ(FormatDuration(nanoseconds(1001)), "1001ns");
  EXPECT_EQ(FormatDuration(milliseconds(-20)), "-20ms");
  EXPECT_EQ(FormatDuration(Duration::min()), "-9223372036854775808ns");
}

TEST(Values, Bytes) {
  EXPECT_EQ(ParseBytes("1472"), 1472u);
  EXPECT_EQ(ParseBytes("0"), 0u);
  EXPECT_EQ(ParseBytes("64K"), 65536u);
  EXPECT_EQ(ParseBytes("64k"), 65536u);
  EXPECT_EQ(ParseBytes("25M"), 25u << 20);
  EXPECT_EQ(ParseBytes("1G"), 1u << 30);
  EXPECT_EQ(ParseBytes("2T"), std::uint64_t{2} << 40);
  EXPECT_EQ(ParseBytes("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* bad : {"", "K", "-1", "1.5M", "1 K", "64KB", "64KiB", "1P", "0x10",
                          "18446744073709551616", "16777216T"}) {
    EXPECT_EQ(ParseBytes(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(1472), "1472");
  EXPECT_EQ(FormatBytes(1536 * 1024), "1536K");
  EXPECT_EQ(FormatBytes(1u << 30), "1G");
}

TEST(Values, Numbers) {
  EXPECT_EQ(ParseNumber("0.25"), 0.25);
  EXPECT_EQ(ParseNumber("100"), 100.0);
  EXPECT_EQ(FormatNumber(*ParseNumber("-0")), "0");
  for (const char* bad : {"", "1%", " 1", "1 ", "+1", "nan", "inf", "1e999", "1,5"}) {
    EXPECT_EQ(ParseNumber(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(FormatNumber(0.1), "0.1");
}

TEST(Values, TextsParseToWhatTheyWereMadeFrom) {
  Stream stream(1, 0, "values");
  for (int i = 0; i < 2000; ++i) {
    // All magnitudes, and round numbers too.
    std::uint64_t value = stream.Next() >> stream.Below(64);
    if (stream.Chance(0.5)) value &= ~std::uint64_t{0} << stream.Below(40);
    EXPECT_EQ(ParseBytes(FormatBytes(value)), value);
    EXPECT_EQ(ParseCount(std::to_string(value)), value);
    const Duration duration{static_cast<Duration::rep>(value >> 1)};
    EXPECT_EQ(ParseDuration(FormatDuration(duration)), duration);
    const double number = static_cast<double>(value) * stream.Uniform();
    EXPECT_EQ(ParseNumber(FormatNumber(number)), number);
  }
}

}  // namespace
}  // namespace optireduce
