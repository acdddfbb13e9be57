// Lines for people, on standard error: set-up, peers, failures. Control plane only: the data path
// counts (lib/counters.h) and records (lib/flight_recorder.h) and never logs.
//
// Threads: any. Each level is limited to a burst of lines and a few per second after it; the next
// line that passes says how many did not.
// A line must never hold a secret; nothing here can look for one.
#ifndef OPTIREDUCE_LIB_LOG_H_
#define OPTIREDUCE_LIB_LOG_H_

#include <array>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "lib/settings.h"
#include "optireduce/time.h"

namespace optireduce {

// Allows a burst, then one per interval. Not thread-safe.
class RateLimit {
 public:
  RateLimit(std::uint64_t burst, Duration interval) : burst_(burst), interval_(interval) {}

  // True when one more may pass at `now`; counts it as left out when not.
  bool Allow(Instant now);
  // How many were left out since the last call.
  std::uint64_t TakeLeftOut();

 private:
  std::uint64_t burst_;
  Duration interval_;
  std::uint64_t used_ = 0;     // of the burst
  Instant refilled_at_{};      // when `used_` was last true
  std::uint64_t left_out_ = 0;
};

// One stream of lines. The process-wide one is behind Log() below; tests make their own.
class Logger {
 public:
  explicit Logger(std::FILE* out);

  void SetRank(int rank);  // < 0: not known yet
  void SetLevel(LogLevel level);

  // Writes "[optireduce r3] warning: text". False: below the level, or limited.
  bool Write(LogLevel level, std::string_view text, Instant now);
  // Writes "[optireduce r3] text" whatever the level and however often: only what was asked for.
  void WriteAsked(std::string_view text);

 private:
  static constexpr std::size_t kLevels = 4;
  void Put(std::string_view head, std::string_view text, std::uint64_t left_out);

  std::FILE* const out_;
  std::mutex mutex_;
  int rank_ = -1;
  LogLevel level_ = LogLevel::kWarning;
  std::array<RateLimit, kLevels> limits_;
};

// The process's log, on standard error. Set once at start, before which it has no rank and the
// level `warning`.
void SetLogRank(int rank);
void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view text);
void LogAsked(std::string_view text);

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_LOG_H_
