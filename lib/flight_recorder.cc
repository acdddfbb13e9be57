#include "lib/flight_recorder.h"

#include <bit>
#include <cinttypes>
#include <span>

#include "lib/check.h"

namespace optireduce {
namespace {

constexpr std::size_t kLineBytesMax = 256;
using Line = std::array<char, kLineBytesMax>;

// snprintf behind what is in `line` already; keeps what fits.
template <typename... Args>
void Append(Line& line, std::size_t& used, const char* format, Args... args) {
  const std::span<char> rest = std::span(line).subspan(used);
  const int wanted = std::snprintf(rest.data(), rest.size(), format, args...);
  if (wanted < 0) return;
  const auto bytes = static_cast<std::size_t>(wanted);
  used += bytes < rest.size() ? bytes : rest.size() - 1;
}

std::string_view HeadLine(Line& line, std::string_view who, std::size_t held,
                          std::uint64_t written) {
  std::size_t used = 0;
  Append(line, used, "flight recorder of %.*s: the last %zu of %" PRIu64 " events\n",
         static_cast<int>(who.size() < 100 ? who.size() : 100), who.data(), held, written);
  return {line.data(), used};
}

std::string_view RecordLine(Line& line, const FlightRecord& record, Instant first) {
  std::size_t used = 0;
  Append(line, used, "%+16.3f us  ",
         static_cast<double>((record.at - first).count()) / 1000.0);
  const auto id = static_cast<std::size_t>(record.event);
  if (id >= kEventRows.size()) {
    // Only a half-written record can say so.
    Append(line, used, "event %zu\n", id);
    return {line.data(), used};
  }
  const EventRow& row = kEventRows[id];
  Append(line, used, "%-22.*s", static_cast<int>(row.name.size()), row.name.data());
  if (record.op != 0) Append(line, used, " op=%" PRIu64, record.op);
  if (record.peer != kNoRank) Append(line, used, " peer=%" PRIu32, record.peer);
  if (!row.a.empty()) {
    Append(line, used, " %.*s=%" PRIu64, static_cast<int>(row.a.size()), row.a.data(), record.a);
  }
  if (!row.b.empty()) {
    Append(line, used, " %.*s=%" PRIu64, static_cast<int>(row.b.size()), row.b.data(), record.b);
  }
  Append(line, used, "%s", "\n");
  return {line.data(), used};
}

template <typename Emit>
void DumpLines(const FlightRecorder& recorder, std::string_view who, Emit emit) {
  Line line;
  emit(HeadLine(line, who, recorder.held(), recorder.written()));
  for (std::size_t i = 0; i < recorder.held(); ++i) {
    emit(RecordLine(line, recorder.At(i), recorder.At(0).at));
  }
}

}  // namespace

FlightRecorder::FlightRecorder(std::size_t records_min)
    : ring_(records_min == 0 ? 0 : std::bit_ceil(records_min)) {}

const FlightRecord& FlightRecorder::At(std::size_t i) const {
  OR_CHECK(i < held());
  const std::uint64_t oldest = written_ - held();
  return ring_[static_cast<std::size_t>(oldest + i) & (ring_.size() - 1)];
}

std::string FlightRecorder::Dump(std::string_view who) const {
  std::string out;
  DumpLines(*this, who, [&out](std::string_view line) { out += line; });
  return out;
}

void FlightRecorder::Dump(std::string_view who, std::FILE* out) const {
  DumpLines(*this, who,
            [out](std::string_view line) { std::fwrite(line.data(), 1, line.size(), out); });
  std::fflush(out);
}

}  // namespace optireduce
