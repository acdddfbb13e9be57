#include "examples/bench/flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "examples/bench/sizes.h"

// All values are text: our own parsers name every fault of a command line at once, while gflags
// ends the process with a code of its own.
DEFINE_string(b, "4K", "SIZE: smallest tensor in bytes, with K M G T as powers of 1024");
DEFINE_string(e, "32M", "SIZE: largest tensor");
DEFINE_string(f, "8", "N: each size is the one before times N");
DEFINE_string(i, "0", "SIZE: each size is the one before plus SIZE, in the place of -f; 0: use -f");
DEFINE_string(n, "200", "N: timed iterations of a row (ended early by --time_cap)");
DEFINE_string(w, "5", "N: warm-up iterations before each row (ended early by part of --time_cap)");
DEFINE_string(c, "1", "N: check every Nth result; 0: none");
DEFINE_string(d, "float32", "TYPES: a list of float16 bfloat16 float32 float64 int8 int16 int32 "
              "int64 uint8 bool, or all");
DEFINE_string(o, "sum", "OPS: a list of sum avg prod min max band bor bxor, or all");
DEFINE_string(np, "0", "N: fork N ranks on this machine; 0: this process is the rank that the "
              "variables of torchrun, mpirun or srun say");
DEFINE_string(mode, "", "exact or bounded (option mode)");
DEFINE_string(deadline, "", "DURATION: the bound of a bounded op, such as 50ms (option "
              "bounded.bound)");
DEFINE_string(loss, "", "PERCENT of the packets that are dropped (option fault.loss_pct)");
DEFINE_string(duplicate, "", "PERCENT of the packets that come twice (option "
              "fault.duplicate_pct)");
DEFINE_string(reorder, "", "PERCENT of the packets that are overtaken (option fault.reorder_pct)");
DEFINE_string(corrupt, "", "PERCENT of the packets with a flipped bit (option fault.corrupt_pct)");
DEFINE_string(delay, "", "DURATION added to the way of every packet (option fault.delay)");
DEFINE_string(seed, "1", "N: seed of the values and of the injected faults (option fault.seed)");
DEFINE_string(set, "", "OPTION=VALUE,...: any option of the library (see --print-config); may be "
              "given more than once");
DEFINE_string(config, "", "FILE of the library's options, in the place of OPTIREDUCE_CONFIG_FILE");
DEFINE_string(values, "integers", "integers: sums are exact in any order; random: floating point, "
              "for the error that rounding makes");
DEFINE_string(time_cap, "4s", "DURATION: end the iterations of a row after this time");
DEFINE_string(percentiles, "50,90,99", "LIST of percentiles to print");
DEFINE_string(json, "", "FILE to write the results to as JSON; -: standard output, without the "
              "table");
DEFINE_string(csv, "", "FILE to write the results to as CSV");
DEFINE_string(trace, "", "FILE to write what each rank did when to, as JSON trace events for "
              "ui.perfetto.dev (the first 20000 spans of each rank)");
DEFINE_bool(samples, false, "print every row's samples too, and put them into the CSV (the JSON "
            "always has them)");
DEFINE_bool(print_config, false, "print all options of the library with value and origin, and end");

namespace optireduce::bench {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLongNames = {{
    {"minbytes", "b"},
    {"maxbytes", "e"},
    {"stepfactor", "f"},
    {"stepbytes", "i"},
    {"iters", "n"},
    {"warmup_iters", "w"},
    {"check", "c"},
    {"datatype", "d"},
    {"op", "o"},
}};

constexpr std::array<std::pair<std::string_view, DataType>, 14> kTypes = {{
    {"float16", DataType::kFloat16},
    {"bfloat16", DataType::kBFloat16},
    {"float32", DataType::kFloat32},
    {"float64", DataType::kFloat64},
    {"int8", DataType::kInt8},
    {"int16", DataType::kInt16},
    {"int32", DataType::kInt32},
    {"int64", DataType::kInt64},
    {"uint8", DataType::kUInt8},
    {"bool", DataType::kBool},
    // What nccl-tests calls them; not part of "all".
    {"half", DataType::kFloat16},
    {"float", DataType::kFloat32},
    {"double", DataType::kFloat64},
    {"int", DataType::kInt32},
}};

constexpr std::array<std::pair<std::string_view, ReduceOp>, 8> kOps = {{
    {"sum", ReduceOp::kSum},
    {"avg", ReduceOp::kAvg},
    {"prod", ReduceOp::kProduct},
    {"min", ReduceOp::kMin},
    {"max", ReduceOp::kMax},
    {"band", ReduceOp::kBitAnd},
    {"bor", ReduceOp::kBitOr},
    {"bxor", ReduceOp::kBitXor},
}};

constexpr std::uint64_t kIterationsMax = 10'000'000;
constexpr int kLocalRanksMax = 128;

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

// The value at `name` in a list of names, or nothing.
template <typename Table>
auto Find(const Table& table, std::string_view name)
    -> std::optional<typename Table::value_type::second_type> {
  for (const auto& [key, value] : table) {
    if (key == name) return value;
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// "4s", "500ms", "2m"; a bare number is seconds.
std::optional<Duration> ParseSeconds(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  double seconds = 0;
  if (unit.empty() || unit == "s") {
    seconds = value;
  } else if (unit == "ms") {
    seconds = value / 1000;
  } else if (unit == "m") {
    seconds = value * 60;
  } else {
    return std::nullopt;
  }
  if (seconds > 1e6) return std::nullopt;
  return Duration{static_cast<std::int64_t>(seconds * 1e9)};
}

bool IsOurs(const gflags::CommandLineFlagInfo& info) {
  return info.filename.find("bench/flags.cc") != std::string::npos;
}

// Puts the values of a command line into the flags.
class Reader {
 public:
  Reader(int argc, char** argv) : arguments_(argv + 1, argv + argc) {}

  void Read() {
    for (; next_ < arguments_.size(); ++next_) ReadOne(arguments_[next_]);
  }

  const std::vector<std::string>& faults() const { return faults_; }
  const std::vector<std::string>& sets() const { return sets_; }
  bool wants_help() const { return wants_help_; }
  bool wants_version() const { return wants_version_; }

 private:
  void ReadOne(const std::string& argument) {
    if (argument.size() < 2 || argument[0] != '-') {
      faults_.push_back("'" + argument + "' is not a flag");
      return;
    }
    std::string name = argument.substr(argument[1] == '-' ? 2 : 1);
    std::optional<std::string> value;
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    std::replace(name.begin(), name.end(), '-', '_');
    if (const auto letter = Find(kLongNames, name)) name = *letter;
    wants_help_ = wants_help_ || name == "help" || name == "h";
    wants_version_ = wants_version_ || name == "version";
    if (wants_help_ || wants_version_) return;
    // "-b4K", as getopt has it.
    const bool glued = argument[1] != '-' && !value && name.size() > 1 &&
                       std::isdigit(static_cast<unsigned char>(name[1])) != 0;
    if (glued) {
      value = name.substr(1);
      name.resize(1);
    }
    Set(argument, name, value);
  }

  void Set(const std::string& argument, std::string name, std::optional<std::string> value) {
    gflags::CommandLineFlagInfo info;
    bool known = gflags::GetCommandLineFlagInfo(name.c_str(), &info) && IsOurs(info);
    if (!known && name.starts_with("no") && !value) {
      known = gflags::GetCommandLineFlagInfo(name.c_str() + 2, &info) && info.type == "bool";
      name = name.substr(2);
      value = "false";
    }
    if (!known) {
      faults_.push_back("unknown flag " + argument + " (--help lists them)");
      return;
    }
    if (!value && info.type == "bool") value = "true";
    if (!value) {
      // "-1" is a value (if a wrong one); "-n" and "--np" are the next flag.
      const bool has_value = next_ + 1 < arguments_.size() && !LooksLikeFlag(arguments_[next_ + 1]);
      if (!has_value) {
        faults_.push_back(argument + " lacks its value");
        return;
      }
      value = arguments_[++next_];
    }
    if (name == "set") {
      for (std::string& part : SplitList(*value)) sets_.push_back(std::move(part));
    } else if (gflags::SetCommandLineOption(name.c_str(), value->c_str()).empty()) {
      faults_.push_back(argument + ": '" + *value + "' is neither true nor false");
    }
  }

  static bool LooksLikeFlag(const std::string& text) {
    return text.size() > 1 && text[0] == '-' &&
           std::isdigit(static_cast<unsigned char>(text[1])) == 0;
  }

  const std::vector<std::string> arguments_;
  std::size_t next_ = 0;
  std::vector<std::string> faults_;
  std::vector<std::string> sets_;
  bool wants_help_ = false;
  bool wants_version_ = false;
};

// Turns the flags into options and collects what is wrong with them.
class Checker {
 public:
  Checker(Options* options, std::vector<std::string>* faults)
      : options_(*options), faults_(*faults) {}

  void CheckAll(const std::vector<std::string>& sets) {
    CheckSizes();
    CheckKinds();
    options_.iterations = Whole("n", FLAGS_n, 1, kIterationsMax);
    options_.warm_up_iterations = Whole("w", FLAGS_w, 0, kIterationsMax);
    options_.check_every = Whole("c", FLAGS_c, 0, kIterationsMax);
    options_.seed = Whole("-seed", FLAGS_seed, 0, ~std::uint64_t{0});
    if (!gflags::GetCommandLineFlagInfoOrDie("np").is_default) {
      options_.local_ranks = static_cast<int>(Whole("-np", FLAGS_np, 1, kLocalRanksMax));
    }
    CheckTimeCap();
    if (FLAGS_values != "integers" && FLAGS_values != "random") {
      faults_.push_back("--values: '" + FLAGS_values + "' is neither integers nor random");
    }
    options_.values = FLAGS_values == "random" ? ValueKind::kRandom : ValueKind::kIntegers;
    CheckPercentiles();
    options_.json_path = FLAGS_json;
    options_.csv_path = FLAGS_csv;
    options_.trace_path = FLAGS_trace;
    CheckPathsDiffer({{"--json", FLAGS_json}, {"--csv", FLAGS_csv}, {"--trace", FLAGS_trace}});
    options_.config_file = FLAGS_config;
    options_.samples = FLAGS_samples;
    options_.print_config = FLAGS_print_config;
    CollectSettings(sets);
  }

 private:
  void CheckPathsDiffer(const std::vector<std::pair<const char*, std::string>>& paths) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (std::size_t j = i + 1; j < paths.size(); ++j) {
        if (paths[i].second.empty() || paths[i].second != paths[j].second) continue;
        faults_.push_back(std::string(paths[i].first) + " and " + paths[j].first +
                          " name the same file");
      }
    }
  }

  std::uint64_t Whole(const char* name, const std::string& text, std::uint64_t min,
                      std::uint64_t max) {
    const auto value = ParseNumber<std::uint64_t>(text);
    if (value && *value >= min && *value <= max) return *value;
    faults_.push_back("-" + std::string(name) + ": '" + text + "' is not a whole number from " +
                      std::to_string(min) + " to " + std::to_string(max));
    return min;
  }

  std::optional<std::uint64_t> Size(const char* name, const std::string& text) {
    const auto value = ParseSize(text);
    if (!value) {
      faults_.push_back("-" + std::string(name) + ": '" + text +
                        "' is not a size, such as 1500, 64K, 25M or 1G");
    }
    return value;
  }

  void CheckSizes() {
    const auto min = Size("b", FLAGS_b);
    const auto max = Size("e", FLAGS_e);
    const auto step = Size("i", FLAGS_i);
    const std::uint64_t factor = Whole("f", FLAGS_f, step == 0U ? 2 : 0, 1 << 20);
    if (!min || !max || !step) return;
    // "-b 64M" alone means that one size, not an empty sweep.
    const bool only_min = *min > *max && gflags::GetCommandLineFlagInfoOrDie("e").is_default;
    auto sizes = SweepSizes({*min, only_min ? *min : *max, factor < 2 ? 2 : factor, *step});
    if (sizes.ok()) {
      options_.sizes = *std::move(sizes);
    } else {
      faults_.push_back(sizes.status().text());
    }
  }

  void CheckKinds() {
    const auto types = Names<DataType>("-d", FLAGS_d, std::span(kTypes).first(kDataTypes), kTypes);
    const auto ops = Names<ReduceOp>("-o", FLAGS_o, std::span(kOps), kOps);
    for (const DataType type : types) {
      for (const ReduceOp op : ops) {
        if (Supported(type, op)) options_.kinds.emplace_back(type, op);
      }
    }
    if (options_.kinds.empty() && !types.empty() && !ops.empty()) {
      faults_.push_back("-o " + FLAGS_o + " is not defined for -d " + FLAGS_d);
    }
  }

  // The values of the names in a list; "all": those of `all`.
  template <typename Value, typename All, typename Table>
  std::vector<Value> Names(const char* flag, const std::string& text, const All& all,
                           const Table& table) {
    std::vector<Value> values;
    if (text == "all") {
      for (const auto& [name, value] : all) values.push_back(value);
      return values;
    }
    for (const std::string& name : SplitList(text)) {
      if (const auto value = Find(table, name)) {
        values.push_back(*value);
      } else {
        std::string known;
        for (const auto& [other, value2] : all) known += " " + std::string(other);
        faults_.push_back(std::string(flag) + ": '" + name + "' is none of" + known);
      }
    }
    if (text.empty()) faults_.push_back(std::string(flag) + " is empty");
    return values;
  }

  void CheckTimeCap() {
    const auto cap = ParseSeconds(FLAGS_time_cap);
    if (cap && *cap > Duration{0}) {
      options_.time_cap = *cap;
    } else {
      faults_.push_back("--time_cap: '" + FLAGS_time_cap + "' is not a duration, such as 4s or 2m");
    }
  }

  void CheckPercentiles() {
    options_.percentiles.clear();
    for (const std::string& text : SplitList(FLAGS_percentiles)) {
      const auto value = ParseNumber<double>(text);
      if (value && *value > 0 && *value <= 100) {
        options_.percentiles.push_back(*value);
      } else {
        faults_.push_back("--percentiles: '" + text + "' is not a number above 0 and up to 100");
      }
    }
    auto& all = options_.percentiles;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }

  // The library judges the values; a later setting of an option wins.
  void CollectSettings(const std::vector<std::string>& sets) {
    const auto add = [this](const char* path, const std::string& value) {
      if (!value.empty()) options_.settings.emplace_back(path, value);
    };
    const auto add_percent = [&add](const char* path, std::string value) {
      if (value.size() > 1 && value.back() == '%') value.pop_back();
      add(path, value);
    };
    add("mode", FLAGS_mode);
    add("bounded.bound", FLAGS_deadline);
    add_percent("fault.loss_pct", FLAGS_loss);
    add_percent("fault.duplicate_pct", FLAGS_duplicate);
    add_percent("fault.reorder_pct", FLAGS_reorder);
    add_percent("fault.corrupt_pct", FLAGS_corrupt);
    add("fault.delay", FLAGS_delay);
    if (!gflags::GetCommandLineFlagInfoOrDie("seed").is_default) add("fault.seed", FLAGS_seed);
    for (const std::string& set : sets) {
      const std::size_t equals = set.find('=');
      if (equals == std::string::npos || equals == 0) {
        faults_.push_back("--set: '" + set + "' is not OPTION=VALUE");
      } else {
        options_.settings.emplace_back(set.substr(0, equals), set.substr(equals + 1));
      }
    }
  }

  Options& options_;
  std::vector<std::string>& faults_;
};

std::string HelpText() {
  std::string text =
      "optireduce-bench: how long an all-reduce takes, and whether it is right.\n\n"
      "  optireduce-bench --np 4 -b 4K -e 32M -f 8           four ranks on this machine\n"
      "  optireduce-bench --np 4 --loss 1 --json result.json\n"
      "  torchrun --no-python --nproc_per_node 4 optireduce-bench -b 1M -e 1M\n\n"
      "A sample is one iteration: the longest of the ranks' own durations, after a barrier that\n"
      "is not timed. algbw = bytes / p50 and busbw = algbw * 2(n-1)/n, in GB/s (GB = 1e9 bytes).\n"
      "Results go to standard output, progress and errors to standard error. The exit code is 0\n"
      "only when every rank ended well and no element was wrong.\n\n";
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (!IsOurs(flag)) continue;
    std::string name = (flag.name.size() == 1 ? "-" : "--") + flag.name;
    for (const auto& [long_name, letter] : kLongNames) {
      if (letter == flag.name) name += ", --" + std::string(long_name);
    }
    text += "  " + name + "\n      " + flag.description;
    if (!flag.default_value.empty() && flag.type != "bool") {
      text += " (default " + flag.default_value + ")";
    }
    text += "\n";
  }
  return text;
}

}  // namespace

CommandLine ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  Reader reader(argc, argv);
  reader.Read();
  if (reader.wants_help()) {
    line.answer = HelpText();
    return line;
  }
  if (reader.wants_version()) {
    line.answer = "optireduce-bench " OPTIREDUCE_VERSION "\n";
    return line;
  }
  line.faults = reader.faults();
  Checker(&line.options, &line.faults).CheckAll(reader.sets());
  return line;
}

}  // namespace optireduce::bench
