// optireduce-bench: how long an all-reduce takes, and whether it is right. --help says more.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/bench/flags.h"
#include "examples/bench/launcher.h"
#include "examples/bench/publisher.h"
#include "examples/bench/result_file.h"
#include "examples/bench/runner.h"
#include "examples/bench/sizes.h"
#include "optireduce/communicator.h"

namespace optireduce::bench {
namespace {

RunInfo InfoOf(const Communicator& communicator) {
  RunInfo info;
  info.version = OPTIREDUCE_VERSION;
  info.hosts = communicator.hosts();
  info.world_size = communicator.size();
  info.transport = communicator.transport();
  info.settings = communicator.settings();
  return info;
}

// One rank, from meeting the others to its exit code.
int RunRank(const Options& options, CommunicatorOptions place) {
  place.settings = options.settings;
  place.config_file = options.config_file;
  auto communicator = Communicator::Create(place);
  if (!communicator.ok()) {
    std::fprintf(stderr, "optireduce-bench: %s\n", communicator.status().ToString().c_str());
    return communicator.status().code() == Code::kInvalidArgument ? kExitBadInput : kExitFailed;
  }
  const int rank = (*communicator)->rank();
  std::optional<Publisher> publisher;
  if (rank == 0) publisher.emplace(options, InfoOf(**communicator));
  Runner runner(options, communicator->get(), publisher ? &*publisher : nullptr);
  const Status status = runner.Run();
  if (!status.ok()) {
    if (publisher) publisher->progress().Clear();
    std::fprintf(stderr, "optireduce-bench: rank %d of %d: %s\n", rank, (*communicator)->size(),
                 status.ToString().c_str());
    (*communicator)->Abort(status);
    return kExitFailed;
  }
  return runner.wrong() == 0 ? kExitOk : kExitWrong;
}

// A group of one has the configuration that every rank here would have, and meets nobody.
Result<std::unique_ptr<Communicator>> MeetNobody(const Options& options) {
  CommunicatorOptions alone;
  alone.settings = options.settings;
  alone.config_file = options.config_file;
  alone.rank = 0;
  alone.world_size = 1;
  return Communicator::Create(alone);
}

int PrintConfig(const Communicator& communicator) {
  for (const Communicator::SettingView& setting : communicator.settings()) {
    std::printf("%s = %s  # %s\n", setting.name.c_str(), setting.value.c_str(),
                setting.origin.c_str());
  }
  return std::fflush(stdout) == 0 ? kExitOk : kExitFailed;
}

// More than the machine's memory would only end in the kernel's choice of whom to kill.
Status CheckMemory(const Options& options) {
  if (options.sizes.empty()) return Status::Ok();
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const std::uint64_t memory = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto ranks = static_cast<std::uint64_t>(options.local_ranks > 0 ? options.local_ranks : 1);
  const std::uint64_t bytes = options.sizes.back();
  if (bytes <= memory / (2 * ranks)) return Status::Ok();
  return {Code::kInvalidArgument, "two tensors of " + SizeText(bytes) + " for each of " +
                                      std::to_string(ranks) + " ranks are more than the " +
                                      SizeText(memory) + " of this machine: lower -e or --np"};
}

// Everything that is wrong with the input, as far as one process can see.
std::vector<std::string> Faults(const CommandLine& line) {
  std::vector<std::string> faults = line.faults;
  const auto add = [&faults](const Status& status) {
    if (!status.ok()) faults.push_back(status.text());
  };
  const Options& options = line.options;
  std::string several;
  const bool launcher_seen = LauncherSeen(&several);
  if (!options.print_config) add(CheckLaunch(launcher_seen, several, options.local_ranks));
  add(CheckMemory(options));
  if (options.local_ranks > 0) {
    for (const std::string& path : {options.json_path, options.csv_path, options.trace_path}) {
      if (!path.empty() && path != "-") add(CheckWritable(path));
    }
  }
  auto alone = MeetNobody(options);
  add(alone.status());
  return faults;
}

int Main(int argc, char** argv) {
  const CommandLine line = ParseCommandLine(argc, argv);
  if (!line.answer.empty()) {
    std::fputs(line.answer.c_str(), stdout);
    return std::fflush(stdout) == 0 ? kExitOk : kExitFailed;
  }
  const std::vector<std::string> faults = Faults(line);
  for (const std::string& fault : faults) {
    std::fprintf(stderr, "optireduce-bench: %s\n", fault.c_str());
  }
  if (!faults.empty()) return kExitBadInput;
  const Options& options = line.options;
  if (options.print_config) {
    auto alone = MeetNobody(options);
    return alone.ok() ? PrintConfig(**alone) : kExitFailed;
  }
  const auto body = [&options](CommunicatorOptions place) {
    return RunRank(options, std::move(place));
  };
  return options.local_ranks > 0 ? RunLocalRanks(options.local_ranks, body) : body({});
}

}  // namespace
}  // namespace optireduce::bench

int main(int argc, char** argv) { return optireduce::bench::Main(argc, argv); }
