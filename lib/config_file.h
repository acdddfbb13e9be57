// A configuration file: read whole, and cut into its lines `name = value`. Blank lines count for
// nothing, and neither does what follows a `#` at the start of a line or after a blank.
//
// Free functions: any thread. They know nothing of which names there are (lib/config.h does).
#ifndef OPTIREDUCE_LIB_CONFIG_FILE_H_
#define OPTIREDUCE_LIB_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "optireduce/status.h"

namespace optireduce {

inline constexpr std::size_t kConfigFileBytesMax = 64 << 10;
inline constexpr std::size_t kConfigLineBytesMax = 4096;

// The content of a regular file of at most kConfigFileBytesMax bytes.
Result<std::string> ReadConfigFile(const std::string& path);

struct ConfigLine {
  std::size_t number = 0;  // from 1
  std::string_view name;
  std::string_view value;  // without blanks at its ends
  std::string fault;       // not empty: the line is neither of the two above
};

// The lines that are not blank, in their order; they point into `text`.
std::vector<ConfigLine> SplitConfigText(std::string_view text);

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_CONFIG_FILE_H_
