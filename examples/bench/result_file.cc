#include "examples/bench/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace optireduce::bench {
namespace {

bool IsSpecial(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

std::string PartialPath(const std::string& path) { return path + ".partial"; }

Status Failed(const std::string& path) {
  return {Code::kUnavailable, "write " + path + ": " + std::strerror(errno)};
}

}  // namespace

Status CheckWritable(const std::string& path) {
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return {Code::kUnavailable, "write " + path + ": it is a directory"};
  }
  if (exists && !S_ISREG(info.st_mode)) return Status::Ok();
  if (exists && access(path.c_str(), W_OK) != 0) return Failed(path);
  const std::string partial = PartialPath(path);
  const int fd = open(partial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return Failed(path);
  close(fd);
  unlink(partial.c_str());
  return Status::Ok();
}

Status ReplaceFile(const std::string& path, const std::string& text) {
  const bool special = IsSpecial(path);
  const std::string target = special ? path : PartialPath(path);
  std::FILE* const file = std::fopen(target.c_str(), "we");
  if (file == nullptr) return Failed(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) return Failed(path);
  if (!special && std::rename(target.c_str(), path.c_str()) != 0) return Failed(path);
  return Status::Ok();
}

void RemoveStale(const std::string& path) {
  if (!IsSpecial(path)) unlink(path.c_str());
}

}  // namespace optireduce::bench
