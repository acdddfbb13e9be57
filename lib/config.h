// The configuration of one communicator: the values of all options, each with where it came from.
//
// Sources, later ones win: the defaults, the configuration file, the environment (OPTIREDUCE_*),
// explicit settings (the API's or a program's flags). Load() reports all faults at once and changes
// nothing global. Immutable once made; any thread may read. It reads no environment by itself, and
// no file but the one that is named.
#ifndef OPTIREDUCE_LIB_CONFIG_H_
#define OPTIREDUCE_LIB_CONFIG_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/environment.h"
#include "lib/settings.h"
#include "optireduce/status.h"

namespace optireduce {

class Config {
 public:
  // One option as it stands, for printing.
  struct Row {
    std::string path;
    std::string value;
    // "default", "file PATH:LINE", "environment OPTIREDUCE_MODE", or the overrides' origin
    std::string origin;
    std::string default_value;
    std::string accepted;  // "a duration from 1ms to 24h, such as 20ms or 5s"
    std::string help;
    bool wire = false;     // the same on all ranks
  };

  // Every option at its default.
  static Config Defaults();

  // `overrides` are (path, value) pairs, of which a later one wins; `override_origin` is what to
  // call their source in texts. Environment variables without our prefix are none of our business;
  // one with it that is not known is a fault. `file`: the path of the configuration file; empty:
  // that of OPTIREDUCE_CONFIG_FILE in `environment`, if there is one.
  static Result<Config> Load(EnvironmentView environment,
                             std::span<const std::pair<std::string, std::string>> overrides,
                             std::string_view override_origin, const std::string& file = {});

  const Settings& settings() const { return settings_; }

  // All options in the order of the table.
  std::vector<Row> Rows() const;

  // "path=value" lines of the options that must be the same on all ranks, and a hash of them.
  std::string WireText() const;
  std::uint64_t WireHash() const;

  // For people: one line "path = value  # origin" per option. Also a configuration file.
  std::string Print() const;

 private:
  Config() = default;

  Settings settings_;
  std::vector<std::string> origins_;  // by row of the table
};

// The text of docs/configuration.md, made from the table.
std::string ConfigMarkdown();

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_CONFIG_H_
