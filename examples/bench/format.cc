#include "examples/bench/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "examples/bench/statistics.h"

namespace optireduce::bench {
namespace {

// The percentiles that machine-readable results always have.
constexpr std::array kStandardPercentiles = {50.0, 90.0, 99.0};

// The shortest text that reads back as the same number.
std::string NumberText(double value) {
  std::array<char, 64> text{};
  const auto [stop, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), stop) : "0";
}

__attribute__((format(printf, 1, 2))) std::string Printed(const char* format, ...) {
  std::array<char, 256> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += Printed("\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// One name per host with how many ranks it has: "a x4, b x4".
std::string HostsText(const std::vector<std::string>& hosts) {
  std::string text;
  for (std::size_t first = 0; first < hosts.size();) {
    std::size_t next = first;
    while (next < hosts.size() && hosts[next] == hosts[first]) ++next;
    if (!text.empty()) text += ", ";
    text += hosts[first];
    if (next - first > 1) text += " x" + std::to_string(next - first);
    first = next;
  }
  return text;
}

// In 9 columns: four digits at least, no more decimals than a clock has.
std::string MicrosText(double value) {
  return Printed(value < 1e5 ? "%9.1f" : "%9.0f", value);
}

std::vector<double> Sorted(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples;
}

// The percentiles that results for machines have beside the standard ones.
std::vector<double> Extra(const std::vector<double>& percentiles) {
  std::vector<double> extra;
  for (const double percent : percentiles) {
    const auto& standard = kStandardPercentiles;
    if (std::find(standard.begin(), standard.end(), percent) == standard.end()) {
      extra.push_back(percent);
    }
  }
  return extra;
}

std::string JoinedSamples(const Row& row, std::string_view separator) {
  std::string text;
  for (const double sample : row.samples_us) {
    if (!text.empty()) text += separator;
    text += NumberText(sample);
  }
  return text;
}

// (name, value) of all numbers of a row, in the order of the JSON and the CSV.
std::vector<std::pair<std::string, std::string>> Fields(const Row& row, int world_size,
                                                        const std::vector<double>& percentiles,
                                                        std::string_view nothing) {
  const Summary summary = Summarize(row.samples_us);
  const double algorithm_bandwidth = AlgorithmBandwidth(row.bytes, summary.p50);
  std::vector<std::pair<std::string, std::string>> fields = {
      {"min_us", NumberText(summary.min)},
      {"p50_us", NumberText(summary.p50)},
      {"p90_us", NumberText(summary.p90)},
      {"p99_us", NumberText(summary.p99)},
  };
  const std::vector<double> sorted = Sorted(row.samples_us);
  for (const double percent : Extra(percentiles)) {
    const double value = sorted.empty() ? 0 : Percentile(sorted, percent);
    fields.emplace_back(PercentileName(percent) + "_us", NumberText(value));
  }
  fields.insert(fields.end(), {
      {"max_us", NumberText(summary.max)},
      {"algbw_GBps", NumberText(algorithm_bandwidth)},
      {"busbw_GBps", NumberText(BusBandwidth(algorithm_bandwidth, world_size))},
      {"wrong", row.wrong ? std::to_string(*row.wrong) : std::string(nothing)},
      {"max_rel_err", row.max_relative_error ? NumberText(*row.max_relative_error)
                                             : std::string(nothing)},
      {"late_entries", std::to_string(row.late_entries)},
      {"lost_entries", std::to_string(row.lost_entries)},
      {"loss_pct", NumberText(row.loss_pct())},
      {"cpu_s_per_GB", NumberText(row.cpu_s_per_gb)},
  });
  return fields;
}

}  // namespace

const char* OpName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAvg:
      return "avg";
    case ReduceOp::kProduct:
      return "prod";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kBitAnd:
      return "band";
    case ReduceOp::kBitOr:
      return "bor";
    case ReduceOp::kBitXor:
      return "bxor";
  }
  return "?";
}

std::string PercentileName(double percent) { return "p" + NumberText(percent); }

std::string TableHead(const RunInfo& info, const std::vector<double>& percentiles) {
  std::string head = "# optireduce-bench " + info.version + ", " +
                     std::to_string(info.world_size) +
                     (info.world_size == 1 ? " rank on " : " ranks on ") + HostsText(info.hosts) +
                     ", " + info.transport + "\n";
  std::string changed;
  for (const Communicator::SettingView& setting : info.settings) {
    if (setting.origin == "default") continue;
    changed += " " + setting.name + "=" + setting.value;
    if (setting.origin != "the program") changed += " (" + setting.origin + ")";
  }
  head += "# config:" + (changed.empty() ? " all defaults" : changed) + "\n";
  head +=
      "# times in us: an iteration is the longest of the ranks' own durations; p99 of fewer than "
      "100 is the maximum\n"
      "# algbw = size / p50, busbw = algbw * 2(n-1)/n, in GB/s; GB = 1e9 B\n";
  head += "#     size      count     type   op place iters       min";
  for (const double percent : percentiles) {
    head += Printed(" %9s", PercentileName(percent).c_str());
  }
  return head + "       max   algbw   busbw #wrong max rel err  loss % CPU s/GB\n";
}

std::string TableRow(const Row& row, int world_size, const std::vector<double>& percentiles,
                     bool samples) {
  const std::vector<double> sorted = Sorted(row.samples_us);
  const Summary summary = Summarize(row.samples_us);
  const double algorithm_bandwidth = AlgorithmBandwidth(row.bytes, summary.p50);
  std::string text = Printed("%10llu %10llu %8s %4s %5s %5zu ",
                             static_cast<unsigned long long>(row.bytes),
                             static_cast<unsigned long long>(row.count),
                             std::string(Name(row.type)).c_str(), OpName(row.op),
                             row.in_place ? "in" : "out", row.samples_us.size());
  text += MicrosText(summary.min);
  for (const double percent : percentiles) {
    text += " " + MicrosText(sorted.empty() ? 0 : Percentile(sorted, percent));
  }
  text += " " + MicrosText(summary.max);
  text += Printed(" %7.3f %7.3f", algorithm_bandwidth,
                  BusBandwidth(algorithm_bandwidth, world_size));
  text += row.wrong ? Printed(" %6llu", static_cast<unsigned long long>(*row.wrong)) : "      -";
  text += row.max_relative_error ? Printed(" %11.2g", *row.max_relative_error) : "           -";
  text += Printed(" %7.4g %8.3g\n", row.loss_pct(), row.cpu_s_per_gb);
  if (samples) text += "# samples: " + JoinedSamples(row, " ") + "\n";
  return text;
}

std::string TableFoot(std::span<const Row> rows, int world_size) {
  std::uint64_t wrong = 0;
  std::uint64_t divergent = 0;
  bool checked = false;
  double bus_bandwidth = 0;
  for (const Row& row : rows) {
    checked = checked || row.wrong.has_value();
    wrong += row.wrong.value_or(0);
    divergent += row.divergent_ops;
    bus_bandwidth += BusBandwidth(
        AlgorithmBandwidth(row.bytes, Summarize(row.samples_us).p50), world_size);
  }
  std::string foot = "# wrong elements: ";
  if (checked) {
    foot += std::to_string(wrong) + (wrong == 0 ? " OK\n" : " FAILED\n");
  } else {
    foot += "not checked\n";
  }
  if (divergent > 0) {
    foot += "# ops that ended divergent on at least one rank: " + std::to_string(divergent) + "\n";
  }
  if (!rows.empty()) {
    foot += Printed("# average bus bandwidth: %.3f GB/s\n",
                    bus_bandwidth / static_cast<double>(rows.size()));
  }
  return foot;
}

std::string Json(const RunInfo& info, std::span<const Row> rows,
                 const std::vector<double>& percentiles, bool complete) {
  std::string json = "{\n  \"schema\": \"optireduce-bench/1\",\n  \"version\": " +
                     Quoted(info.version) + ",\n  \"complete\": " + (complete ? "true" : "false") +
                     ",\n  \"hosts\": [";
  for (std::size_t i = 0; i < info.hosts.size(); ++i) {
    json += (i == 0 ? "" : ", ") + Quoted(info.hosts[i]);
  }
  json += "],\n  \"world_size\": " + std::to_string(info.world_size) +
          ",\n  \"transport\": " + Quoted(info.transport) + ",\n  \"config\": {";
  for (std::size_t i = 0; i < info.settings.size(); ++i) {
    json += (i == 0 ? "\n    " : ",\n    ") + Quoted(info.settings[i].name) + ": " +
            Quoted(info.settings[i].value);
  }
  json += "\n  },\n  \"results\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    json += (i == 0 ? "\n    {" : ",\n    {") + ("\"bytes\": " + std::to_string(row.bytes)) +
            ", \"count\": " + std::to_string(row.count) +
            ", \"type\": " + Quoted(Name(row.type)) + ", \"op\": " + Quoted(OpName(row.op)) +
            ", \"in_place\": " + (row.in_place ? "true" : "false");
    for (const auto& [name, value] : Fields(row, info.world_size, percentiles, "null")) {
      json += ", " + Quoted(name) + ": " + value;
    }
    json += ",\n     \"samples_us\": [" + JoinedSamples(row, ", ") + "]}";
  }
  return json + (rows.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

std::string CsvHead(const std::vector<double>& percentiles, bool samples) {
  std::string head = "bytes,count,type,op,in_place,iterations";
  for (const auto& [name, value] : Fields({}, 1, percentiles, "")) head += "," + name;
  return head + (samples ? ",samples_us\n" : "\n");
}

std::string CsvRow(const Row& row, int world_size, const std::vector<double>& percentiles,
                   bool samples) {
  std::string text = std::to_string(row.bytes) + "," + std::to_string(row.count) + "," +
                     std::string(Name(row.type)) + "," + OpName(row.op) + "," +
                     (row.in_place ? "true" : "false") + "," +
                     std::to_string(row.samples_us.size());
  for (const auto& [name, value] : Fields(row, world_size, percentiles, "")) text += "," + value;
  if (samples) text += "," + JoinedSamples(row, " ");
  return text + "\n";
}

}  // namespace optireduce::bench
