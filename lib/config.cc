#include "lib/config.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <variant>

#include "lib/check.h"
#include "lib/config_file.h"
#include "lib/config_table.h"
#include "lib/random.h"
#include "lib/values.h"

namespace optireduce {
namespace {

constexpr std::string_view kPrefix = "OPTIREDUCE_";
constexpr std::string_view kFileVariable = "OPTIREDUCE_CONFIG_FILE";
// A file of thousands of wrong lines is the wrong file: what they are called helps nobody.
constexpr std::size_t kFileFaultsShown = 20;

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::string Quoted(std::string_view text) {
  constexpr std::size_t kShown = 64;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  out += text.size() > kShown ? "...'" : "'";
  return out;
}

// A path as it was given, if it is fit to be printed.
std::string Printable(std::string_view path) {
  const std::string quoted = Quoted(path);
  return quoted.substr(1, quoted.size() - 2);
}

std::string Accepted(const Option& option) {
  const std::string range =
      " from " + std::string(option.min_text) + " to " + std::string(option.max_text);
  switch (option.kind) {
    case OptionKind::kDuration:
      return "a duration" + range + ", such as 20ms or 5s";
    case OptionKind::kBytes:
      return "a size in bytes" + range + ", such as 1500, 64K or 25M";
    case OptionKind::kCount:
      return "a whole number" + range;
    case OptionKind::kPercent:
      return "a whole number of per cent" + range;
    case OptionKind::kNumber:
      return "a number" + range;
    case OptionKind::kText:
      return "a line of text";
    case OptionKind::kChoice:
      break;
  }
  std::string out = "one of";
  for (const Choice& choice : std::get<ChoiceMember>(option.member).choices) {
    out += out == "one of" ? " " : ", ";
    out += choice.name;
  }
  return out;
}

std::optional<std::uint64_t> ParseWhole(OptionKind kind, std::string_view text) {
  return kind == OptionKind::kBytes ? ParseBytes(text) : ParseCount(text);
}

// `text` parsed, if that succeeds and min <= value <= max, of which the texts are in the table.
template <typename T, typename Parse>
std::optional<T> InRange(const Option& option, std::string_view text, Parse parse) {
  const std::optional<T> min = parse(option.min_text);
  const std::optional<T> max = parse(option.max_text);
  OR_CHECK(min.has_value() && max.has_value());
  const std::optional<T> value = parse(text);
  if (!value || *value < *min || *value > *max) return std::nullopt;
  return value;
}

// False: not accepted, nothing changed.
bool Assign(const Option& option, std::string_view text, Settings& settings) {
  const auto store = [&settings](auto member, auto value) {
    if (value) settings.*member = *value;
    return value.has_value();
  };
  return std::visit(
      Overloaded{
          [&](Duration Settings::*member) {
            return store(member, InRange<Duration>(option, text, ParseDuration));
          },
          [&](std::uint64_t Settings::*member) {
            return store(member, InRange<std::uint64_t>(
                                     option, text,
                                     std::bind_front(ParseWhole, option.kind)));
          },
          [&](double Settings::*member) {
            return store(member, InRange<double>(option, text, ParseNumber));
          },
          [&](std::string Settings::*member) {
            // Control characters would forge lines of what is printed.
            const bool line = std::none_of(text.begin(), text.end(), [](char c) {
              return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
            });
            if (line) settings.*member = std::string(text);
            return line;
          },
          [&](const ChoiceMember& member) {
            for (const Choice& choice : member.choices) {
              if (choice.name != text) continue;
              member.set(settings, choice.value);
              return true;
            }
            return false;
          },
      },
      option.member);
}

std::string ValueText(const Option& option, const Settings& settings) {
  return std::visit(
      Overloaded{
          [&](Duration Settings::*member) { return FormatDuration(settings.*member); },
          [&](std::uint64_t Settings::*member) {
            return option.kind == OptionKind::kBytes ? FormatBytes(settings.*member)
                                                     : std::to_string(settings.*member);
          },
          [&](double Settings::*member) { return FormatNumber(settings.*member); },
          [&](std::string Settings::*member) { return settings.*member; },
          [&](const ChoiceMember& member) {
            for (const Choice& choice : member.choices) {
              if (choice.value == member.get(settings)) return std::string(choice.name);
            }
            CheckFailed("every value of an enumeration has a name", __FILE__, __LINE__);
          },
      },
      option.member);
}

// Insertions, deletions and replacements of one character that make `b` of `a`.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string Nearest(std::string_view wrong, const std::vector<std::string>& known) {
  // A name of any length may come from outside; what is much longer than ours is like none.
  const std::string_view compared = wrong.substr(0, 100);
  const auto distance = [compared](const std::string& name) {
    // The start of a name is near it, however much is missing.
    return name.starts_with(compared) ? 1 : EditDistance(compared, name);
  };
  return *std::min_element(known.begin(), known.end(),
                           [distance](const std::string& a, const std::string& b) {
                             return distance(a) < distance(b);
                           });
}

// The row of `name` among `names`, which are in the order of the table.
std::optional<std::size_t> RowOf(std::string_view name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

// Gathers values and faults.
class Loader {
 public:
  Loader(Settings& settings, std::vector<std::string>& origins)
      : settings_(settings), origins_(origins) {
    for (const Option& option : Options()) {
      paths_.emplace_back(option.path);
      variables_.push_back(EnvironmentName(option.path));
    }
  }

  void FromFile(const std::string& path) {
    const std::string name = "file " + Printable(path);
    const Result<std::string> text = ReadConfigFile(path);
    if (!text.ok()) {
      faults_.push_back("configuration " + name + ": " + text.status().text());
      return;
    }
    std::vector<std::size_t> set_at(paths_.size());  // by row of the table; 0: not in the file
    const std::size_t faults_max = faults_.size() + kFileFaultsShown;
    std::size_t unread = 0;
    for (const ConfigLine& line : SplitConfigText(*text)) {
      if (faults_.size() >= faults_max) {
        ++unread;
        continue;
      }
      ApplyLine(line, name + ":" + std::to_string(line.number), set_at);
    }
    if (unread > 0) {
      faults_.push_back(name + ": " + std::to_string(unread) + " more lines were not looked at");
    }
  }

  void FromEnvironment(EnvironmentView environment) {
    std::vector<std::string> seen;
    for (const std::string& entry : environment) {
      const std::size_t equals = entry.find('=');
      if (!entry.starts_with(kPrefix) || equals == std::string::npos) continue;
      const std::string name = entry.substr(0, equals);
      // As with getenv, the first of two wins.
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      const auto others = OtherEnvironmentNames();
      if (std::find(others.begin(), others.end(), name) != others.end()) continue;
      if (const auto row = RowOf(name, variables_)) {
        Apply(*row, entry.substr(equals + 1), "environment " + name);
      } else {
        // Its value stays out of the text: it may be a secret under a wrong name.
        faults_.push_back("environment " + Quoted(name) + ": no such option; did you mean " +
                          Nearest(name, variables_) + "?");
      }
    }
  }

  void FromOverrides(std::span<const std::pair<std::string, std::string>> overrides,
                     std::string_view origin) {
    for (const auto& [path, value] : overrides) {
      if (const auto row = RowOf(path, paths_)) {
        Apply(*row, value, std::string(origin));
      } else {
        faults_.push_back(std::string(origin) + " " + Quoted(path) +
                          ": no such option; did you mean " + Nearest(path, paths_) + "?");
      }
    }
  }

  // What one row alone cannot tell. Only when the rows are right, else it would speak of values
  // that nobody gave.
  void CheckTogether() {
    if (!faults_.empty()) return;
    if (settings_.credit_bytes_start > settings_.credit_bytes_total) {
      faults_.push_back("credit.bytes_start = " + FormatBytes(settings_.credit_bytes_start) +
                        " (" + OriginOf("credit.bytes_start") + "): want at most " +
                        "credit.bytes_total = " + FormatBytes(settings_.credit_bytes_total) +
                        " (" + OriginOf("credit.bytes_total") + ")");
    }
  }

  Status Verdict() const {
    if (faults_.empty()) return Status::Ok();
    std::string text = "configuration: ";
    text += faults_.size() == 1 ? "1 fault" : std::to_string(faults_.size()) + " faults";
    for (const std::string& fault : faults_) text += "\n  " + fault;
    return {Code::kInvalidArgument, std::move(text)};
  }

 private:
  void ApplyLine(const ConfigLine& line, const std::string& origin,
                 std::vector<std::size_t>& set_at) {
    if (!line.fault.empty()) {
      faults_.push_back(origin + ": " + line.fault);
      return;
    }
    const auto row = RowOf(line.name, paths_);
    if (!row) {
      faults_.push_back(origin + " " + Quoted(line.name) + ": no such option; did you mean " +
                        Nearest(line.name, paths_) + "?");
    } else if (set_at[*row] != 0) {
      faults_.push_back(origin + ": " + paths_[*row] + " is there already, at line " +
                        std::to_string(set_at[*row]) + "; leave out one of the two");
    } else {
      set_at[*row] = line.number;
      Apply(*row, line.value, origin);
    }
  }

  void Apply(std::size_t row, std::string_view text, std::string origin) {
    const Option& option = Options()[row];
    if (Assign(option, text, settings_)) {
      origins_[row] = std::move(origin);
      return;
    }
    std::string fault(option.path);
    // A text is not shown: it is not clear what got there by mistake.
    if (option.kind != OptionKind::kText) fault += " = " + Quoted(text);
    faults_.push_back(fault + " (" + origin + "): want " + Accepted(option));
  }

  const std::string& OriginOf(std::string_view path) const {
    return origins_[*RowOf(path, paths_)];
  }

  Settings& settings_;
  std::vector<std::string>& origins_;
  std::vector<std::string> paths_;
  std::vector<std::string> variables_;
  std::vector<std::string> faults_;
};

}  // namespace

Config Config::Defaults() {
  Config config;
  for (const Option& option : Options()) {
    OR_CHECK(Assign(option, option.default_text, config.settings_));
    config.origins_.emplace_back("default");
  }
  return config;
}

Result<Config> Config::Load(EnvironmentView environment,
                            std::span<const std::pair<std::string, std::string>> overrides,
                            std::string_view override_origin, const std::string& file) {
  Config config = Defaults();
  Loader loader(config.settings_, config.origins_);
  const std::string path =
      file.empty() ? FindVariable(environment, kFileVariable).value_or("") : file;
  if (!path.empty()) loader.FromFile(path);
  loader.FromEnvironment(environment);
  loader.FromOverrides(overrides, override_origin);
  loader.CheckTogether();
  OR_RETURN_IF_ERROR(loader.Verdict());
  return config;
}

std::vector<Config::Row> Config::Rows() const {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < Options().size(); ++i) {
    const Option& option = Options()[i];
    rows.push_back({.path = std::string(option.path),
                    .value = ValueText(option, settings_),
                    .origin = origins_[i],
                    .default_value = std::string(option.default_text),
                    .accepted = Accepted(option),
                    .help = std::string(option.help),
                    .wire = option.wire});
  }
  return rows;
}

std::string Config::WireText() const {
  std::string out;
  for (const Option& option : Options()) {
    if (!option.wire) continue;
    out += option.path;
    out += '=';
    out += ValueText(option, settings_);
    out += '\n';
  }
  return out;
}

std::uint64_t Config::WireHash() const { return HashText(WireText()); }

std::string Config::Print() const {
  const std::vector<Row> rows = Rows();
  std::size_t path_width = 0;
  std::size_t value_width = 0;
  for (const Row& row : rows) {
    path_width = std::max(path_width, row.path.size());
    value_width = std::max(value_width, row.value.size());
  }
  std::string out;
  for (const Row& row : rows) {
    out += row.path + std::string(path_width - row.path.size(), ' ') + " = ";
    out += row.value + std::string(value_width - row.value.size(), ' ');
    out += "  # " + row.origin + "\n";
  }
  return out;
}

std::string ConfigMarkdown() {
  std::string out =
      "# Configuration\n"
      "\n"
      "Made from the table in `lib/config_table.cc`; a unit test keeps the two equal.\n"
      "\n"
      "An option's value comes from these sources, of which a later one wins:\n"
      "\n"
      "1. its default;\n"
      "2. the configuration file that `OPTIREDUCE_CONFIG_FILE` names, or in its place the one of\n"
      "   a program's flag (`optireduce-bench --config FILE`) or of the API\n"
      "   (`CommunicatorOptions::config_file`);\n"
      "3. the environment, under the name that is given with each option;\n"
      "4. the settings given to the API, or a program's flags.\n"
      "\n"
      "`optireduce-bench --print-config` prints all values with their origins, in a form that is\n"
      "itself a configuration file. Wrong values, unknown names in the file and unknown\n"
      "`OPTIREDUCE_*` variables are refused, all at once.\n"
      "\n"
      "The file has lines `name = value`. A `#` at the start of a line or after a blank begins a\n"
      "comment; blank lines are free. No name may be there twice. It is a regular file of at\n"
      "most 64 KiB, without control characters, with Unix line ends.\n"
      "\n"
      "```\n"
      "# Of all jobs on this cluster.\n"
      "op_timeout = 5m\n"
      "log.level  = info   # for now\n"
      "```\n"
      "\n"
      "Durations are whole numbers with a unit (`ns us ms s m h`), sizes are bytes or have one of\n"
      "`K M G T` (powers of 1024). Options marked *same on all ranks* are compared when the ranks\n"
      "meet.\n";
  const Config defaults = Config::Defaults();
  for (const Config::Row& row : defaults.Rows()) {
    out += "\n## `" + row.path + "`\n\n" + row.help + "\n\n";
    out += "- default: " + (row.value.empty() ? "empty" : "`" + row.value + "`") + "\n";
    out += "- accepted: " + row.accepted + "\n";
    out += "- environment: `" + EnvironmentName(row.path) + "`\n";
    if (row.wire) out += "- same on all ranks\n";
  }
  return out;
}

}  // namespace optireduce
