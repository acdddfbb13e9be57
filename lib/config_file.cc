#include "lib/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace optireduce {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view WithoutComment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '#') continue;
    if (i == 0 || kBlanks.find(line[i - 1]) != std::string_view::npos) return line.substr(0, i);
  }
  return line;
}

bool IsControl(char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; }

ConfigLine ParseLine(std::string_view text, std::size_t number) {
  ConfigLine line;
  line.number = number;
  if (text.size() > kConfigLineBytesMax) {
    line.fault = "the line has more than " + std::to_string(kConfigLineBytesMax) + " bytes";
    return line;
  }
  if (text.ends_with('\r')) {
    line.fault = "the line ends in a carriage return; save the file with Unix line ends";
    return line;
  }
  if (std::any_of(text.begin(), text.end(), IsControl)) {
    line.fault = "the line has a control character; want text";
    return line;
  }
  const std::string_view content = Trimmed(WithoutComment(text));
  if (content.empty()) return line;
  const std::size_t equals = content.find('=');
  line.name = Trimmed(content.substr(0, equals));
  if (equals == std::string_view::npos || line.name.empty()) {
    line.fault = "want name = value";
    return line;
  }
  line.value = Trimmed(content.substr(equals + 1));
  return line;
}

// Everything, or the errno that stopped it. Reads one byte too much of a file that is too large.
Result<std::string> ReadAll(int fd) {
  std::string text(kConfigFileBytesMax + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status(Code::kInvalidArgument, std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

}  // namespace

Result<std::string> ReadConfigFile(const std::string& path) {
  // Not blocking: a pipe without a writer must not hold up the start.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Status(Code::kInvalidArgument, std::strerror(errno));
  struct stat info {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  Result<std::string> text =
      regular ? ReadAll(fd) : Status(Code::kInvalidArgument, "it is not a regular file");
  close(fd);
  if (text.ok() && text->size() > kConfigFileBytesMax) {
    return Status(Code::kInvalidArgument,
                  "it has more than " + std::to_string(kConfigFileBytesMax) + " bytes");
  }
  return text;
}

std::vector<ConfigLine> SplitConfigText(std::string_view text) {
  std::vector<ConfigLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ConfigLine line = ParseLine(text.substr(0, end), number);
    if (!line.name.empty() || !line.fault.empty()) lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace optireduce
