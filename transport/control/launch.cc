#include "transport/control/launch.h"

#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

// One value with the name it is known by in error texts.
struct Source {
  std::string name;
  std::optional<std::string> text;
};

Source Choose(std::span<const std::string> environment, std::string_view variable,
              const std::optional<std::string>& explicit_text) {
  if (explicit_text) return {std::string(variable) + " (given by the caller)", explicit_text};
  Source out{std::string(variable), std::nullopt};
  for (const std::string& entry : environment) {
    const std::string_view view = entry;
    const std::size_t equals = view.find('=');
    if (equals == std::string_view::npos || view.substr(0, equals) != variable) continue;
    out.text = entry.substr(equals + 1);
    break;
  }
  return out;
}

std::optional<std::string> Text(const std::optional<int>& value) {
  if (!value) return std::nullopt;
  return std::to_string(*value);
}

// A decimal number in [low, high]; a fault is noted otherwise.
std::optional<std::uint32_t> Number(const Source& source, std::uint32_t low, std::uint32_t high,
                                    std::vector<std::string>& faults) {
  if (!source.text) {
    faults.push_back(source.name + " is not set");
    return std::nullopt;
  }
  const std::string& text = *source.text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size() || error == std::errc::invalid_argument) {
    faults.push_back(source.name + " is " + Quoted(text) + ", not a whole number");
    return std::nullopt;
  }
  if (error != std::errc{} || value < low || value > high) {
    faults.push_back(source.name + " is " + Quoted(text) + ", allowed are " + std::to_string(low) +
                     " to " + std::to_string(high));
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(value);
}

void ReadMaster(const Source& address, const Source& port, bool needed, Launch& launch,
                std::vector<std::string>& faults) {
  std::optional<std::uint16_t> glued;
  if (address.text && !address.text->empty()) {
    const Result<HostPort> split = SplitHostPort(*address.text);
    if (split.ok()) {
      launch.master_address = split->host;
      glued = split->port;
    } else {
      faults.push_back(address.name + ": " + split.status().text());
    }
  } else if (needed) {
    faults.push_back(address.name + (address.text ? " is empty" : " is not set"));
  }
  if (!port.text && (glued || !needed)) {
    launch.master_port = glued.value_or(0);
    return;
  }
  const auto number = Number(port, 1, std::numeric_limits<std::uint16_t>::max(), faults);
  if (!number) return;
  launch.master_port = static_cast<std::uint16_t>(*number);
  if (glued && *glued != launch.master_port) {
    faults.push_back(address.name + " says port " + std::to_string(*glued) + ", " + port.name +
                     " says " + std::to_string(*number));
  }
}

}  // namespace

Result<Launch> LaunchFrom(std::span<const std::string> environment,
                          const ExplicitLaunch& explicit_values) {
  const Source rank = Choose(environment, "RANK", Text(explicit_values.rank));
  const Source world = Choose(environment, "WORLD_SIZE", Text(explicit_values.world_size));
  const Source address = Choose(environment, "MASTER_ADDR", explicit_values.master_address);
  const Source port = Choose(environment, "MASTER_PORT", Text(explicit_values.master_port));

  std::vector<std::string> faults;
  Launch launch;
  launch.listen_fd = explicit_values.listen_fd;
  const auto rank_value = Number(rank, 0, kRanksMax - 1, faults);
  const auto world_value = Number(world, 1, kRanksMax, faults);
  if (rank_value) launch.rank = *rank_value;
  if (world_value) launch.world_size = *world_value;
  if (rank_value && world_value && *rank_value >= *world_value) {
    faults.push_back(rank.name + " is " + *rank.text + ", but with " + world.name + " " +
                     *world.text + " the ranks are 0 to " + std::to_string(*world_value - 1));
  }
  ReadMaster(address, port, !world_value || *world_value > 1, launch, faults);
  if (launch.listen_fd >= 0 && rank_value && *rank_value != 0) {
    faults.push_back("rank " + *rank.text + " was given a listening socket; only rank 0 listens");
  }
  if (faults.empty()) return launch;
  std::string text = "launch: ";
  for (std::size_t i = 0; i < faults.size(); ++i) text += (i == 0 ? "" : "; ") + faults[i];
  return Status(Code::kInvalidArgument, text);
}

}  // namespace optireduce::control
