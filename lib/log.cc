#include "lib/log.h"

#include <chrono>
#include <string>
#include <type_traits>

namespace optireduce {
namespace {

constexpr std::uint64_t kBurst = 20;
constexpr Duration kInterval = std::chrono::milliseconds(200);

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "unknown level";
}

Logger& ProcessLogger() {
  // Threads may still log while the process ends: it must have no destructor to run.
  static_assert(std::is_trivially_destructible_v<Logger>);
  static Logger logger(stderr);
  return logger;
}

}  // namespace

bool RateLimit::Allow(Instant now) {
  if (used_ == 0) {
    refilled_at_ = now;
  } else if (now > refilled_at_) {
    const auto intervals = static_cast<std::uint64_t>((now - refilled_at_) / interval_);
    const std::uint64_t refill = intervals < used_ ? intervals : used_;
    used_ -= refill;
    refilled_at_ = used_ == 0 ? now : refilled_at_ + interval_ * static_cast<Duration::rep>(refill);
  }
  if (used_ >= burst_) {
    ++left_out_;
    return false;
  }
  ++used_;
  return true;
}

std::uint64_t RateLimit::TakeLeftOut() {
  const std::uint64_t count = left_out_;
  left_out_ = 0;
  return count;
}

Logger::Logger(std::FILE* out)
    : out_(out),
      limits_{RateLimit(kBurst, kInterval), RateLimit(kBurst, kInterval),
              RateLimit(kBurst, kInterval), RateLimit(kBurst, kInterval)} {}

void Logger::SetRank(int rank) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
}

void Logger::SetLevel(LogLevel level) {
  const std::lock_guard lock(mutex_);
  level_ = level;
}

bool Logger::Write(LogLevel level, std::string_view text, Instant now) {
  const std::lock_guard lock(mutex_);
  if (level > level_) return false;
  RateLimit& limit = limits_[static_cast<std::size_t>(level)];
  if (!limit.Allow(now)) return false;

  Put(std::string(LevelName(level)) + ": ", text, limit.TakeLeftOut());
  return true;
}

void Logger::WriteAsked(std::string_view text) {
  const std::lock_guard lock(mutex_);
  Put("", text, 0);
}

void Logger::Put(std::string_view head, std::string_view text, std::uint64_t left_out) {
  std::string line = "[optireduce";
  if (rank_ >= 0) line += " r" + std::to_string(rank_);
  line += "] ";
  line += head;
  for (const char c : text) {
    line += c;
    if (c == '\n') line += "    ";  // what follows is of this line
  }
  if (left_out > 0) {
    line += " (" + std::to_string(left_out) + " lines of this level left out before)";
  }
  line += '\n';
  // One write, so that the lines of several ranks on one terminal do not mix.
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

void SetLogRank(int rank) { ProcessLogger().SetRank(rank); }

void SetLogLevel(LogLevel level) { ProcessLogger().SetLevel(level); }

void Log(LogLevel level, std::string_view text) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  ProcessLogger().Write(level, text, Instant{std::chrono::duration_cast<Duration>(now)});
}

void LogAsked(std::string_view text) { ProcessLogger().WriteAsked(text); }

}  // namespace optireduce
