#include "lib/environment.h"

#include <unistd.h>

namespace optireduce {

std::vector<std::string> ReadEnvironment() {
  std::vector<std::string> variables;
  if (environ == nullptr) return variables;  // after clearenv()
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

std::optional<std::string> FindVariable(EnvironmentView environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace optireduce
