// The table of all options: the one place that says which there are, what they may be and what
// they mean. Environment, flags, printed configuration and docs/configuration.md are made from it.
//
// Immutable; any thread. It holds no values: those are in Settings, reached by each row's member.
#ifndef OPTIREDUCE_LIB_CONFIG_TABLE_H_
#define OPTIREDUCE_LIB_CONFIG_TABLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "lib/settings.h"
#include "optireduce/time.h"

namespace optireduce {

// How an option's text is read and written.
enum class OptionKind {
  kDuration,
  kBytes,
  kCount,    // a whole number
  kPercent,  // a whole number, of per cent
  kNumber,   // may have decimals
  kChoice,
  kText,
};

// One of the values that an enumeration option may have.
struct Choice {
  std::string_view name;
  std::uint8_t value = 0;
};

// Reads and writes a member of Settings that is an enumeration.
struct ChoiceMember {
  std::span<const Choice> choices;
  std::uint8_t (*get)(const Settings&) = nullptr;
  void (*set)(Settings&, std::uint8_t) = nullptr;
};

using OptionMember = std::variant<Duration Settings::*, std::uint64_t Settings::*,
                                  double Settings::*, std::string Settings::*, ChoiceMember>;

struct Option {
  std::string_view path;
  OptionKind kind;
  OptionMember member;
  // In the text form of the kind; min and max are empty for choices and texts.
  std::string_view default_text;
  std::string_view min_text;
  std::string_view max_text;
  bool wire = false;  // all ranks must have the same value; part of the hash compared at the start
  std::string_view help;
};

std::span<const Option> Options();

// "OPTIREDUCE_BOUNDED_BYTES_MIN" for "bounded.bytes_min".
std::string EnvironmentName(std::string_view path);

// Names with our prefix that are not options: the file of options, and what is for the tests.
std::span<const std::string_view> OtherEnvironmentNames();

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_CONFIG_TABLE_H_
