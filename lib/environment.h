// The only reader of the process environment. Everything else takes it as an argument, so that
// tests and embedding programs decide what it holds.
#ifndef OPTIREDUCE_LIB_ENVIRONMENT_H_
#define OPTIREDUCE_LIB_ENVIRONMENT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace optireduce {

// "NAME=VALUE" strings, as the kernel hands them to a process.
using EnvironmentView = std::span<const std::string>;

// A copy of the process environment. Not while another thread changes it.
std::vector<std::string> ReadEnvironment();

// The value of `name`; the first one where a name is there twice, as getenv has it.
std::optional<std::string> FindVariable(EnvironmentView environment, std::string_view name);

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_ENVIRONMENT_H_
