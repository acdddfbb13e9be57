#include "lib/config.h"

#include <string>
#include <utility>
#include <vector>

#include "lib/check.h"
#include "lib/config_table.h"
#include "lib/values.h"
#include "test/fuzz/input.h"
#include "test/fuzz/targets.h"

namespace optireduce::fuzz {
namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

// Texts of values: what is understood is written so that it is understood again.
void CheckValue(std::string_view text) {
  if (const auto value = ParseDuration(text)) {
    OR_CHECK(ParseDuration(FormatDuration(*value)) == value);
  }
  if (const auto value = ParseBytes(text)) OR_CHECK(ParseBytes(FormatBytes(*value)) == value);
  if (const auto value = ParseNumber(text)) OR_CHECK(ParseNumber(FormatNumber(*value)) == value);
  if (const auto value = ParseCount(text)) OR_CHECK(ParseCount(std::to_string(*value)) == value);
}

// What was accepted is printed on one line each, and accepted again as the same.
void CheckAccepted(const optireduce::Config& config) {
  Overrides again;
  for (const optireduce::Config::Row& row : config.Rows()) {
    OR_CHECK(row.value.find('\n') == std::string::npos);
    again.emplace_back(row.path, row.value);
  }
  const auto loaded = optireduce::Config::Load({}, again, "again");
  OR_CHECK(loaded.ok());
  OR_CHECK(loaded->WireHash() == config.WireHash());
  OR_CHECK(loaded->WireText() == config.WireText());
  (void)config.Print();
}

// Faults name what is wrong in a text that a terminal shows as it is.
void CheckRefused(const Status& status) {
  for (const char c : status.text()) {
    OR_CHECK(c == '\n' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f'));
  }
}

void CheckLoad(std::span<const std::string> environment, const Overrides& overrides) {
  const auto loaded = optireduce::Config::Load(environment, overrides, "--set");
  if (loaded.ok()) {
    CheckAccepted(*loaded);
  } else {
    CheckRefused(loaded.status());
  }
}

}  // namespace

// Lines "path=value"; a first byte below 32 stands for the path of a row of the table.
void Config(InputBytes input) {
  Input lines(input);
  Overrides overrides;
  while (!lines.empty()) {
    std::string_view line = lines.Text('\n');
    std::string path;
    if (!line.empty() && static_cast<unsigned char>(line[0]) < 32) {
      path = Options()[static_cast<unsigned char>(line[0]) % Options().size()].path;
      line.remove_prefix(1);
    } else {
      const std::size_t equals = line.find('=');
      path = line.substr(0, equals);
      line.remove_prefix(equals == std::string_view::npos ? line.size() : equals + 1);
    }
    CheckValue(line);
    overrides.emplace_back(std::move(path), line);
  }
  CheckLoad({}, overrides);
}

// Entries "NAME=VALUE" between zero bytes, as a process has them.
void Environment(InputBytes input) {
  Input entries(input);
  std::vector<std::string> environment;
  while (!entries.empty()) environment.emplace_back(entries.Text('\0'));
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    const auto found = FindVariable(environment, name);
    OR_CHECK(found.has_value() || entry.find('=') == std::string::npos);
  }
  CheckLoad(environment, {});
}

}  // namespace optireduce::fuzz
