#include "transport/control/launch.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "lib/environment.h"
#include "lib/values.h"
#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

// One value with the name it is known by in error texts.
struct Source {
  std::string name;
  std::optional<std::string> text;

  std::string Shown() const { return name + "=" + text.value_or(""); }
};

Source Read(EnvironmentView environment, std::string_view variable) {
  return {std::string(variable), FindVariable(environment, variable)};
}

Source Choose(EnvironmentView environment, std::string_view variable,
              const std::optional<std::string>& explicit_text) {
  if (explicit_text) return {std::string(variable) + " (given by the caller)", explicit_text};
  return Read(environment, variable);
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
    faults.push_back(address.name + (address.text ? " is empty" : " is not set") +
                     " (the name or an address of rank 0's host; mpirun -x MASTER_ADDR passes it)");
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

// What one launcher says of a process.
struct Place {
  std::string_view who;
  Source rank;
  Source world;
  Source local_rank;

  bool whole() const { return rank.text && world.text; }
  bool half() const { return rank.text.has_value() != world.text.has_value(); }
  std::string Shown() const { return rank.Shown() + ", " + world.Shown(); }
};

// A number for comparing; what is none is found out where it is used.
std::optional<std::uint64_t> Count(const Source& source) {
  return source.text ? ParseCount(*source.text) : std::nullopt;
}

std::array<Place, 3> MpiPlaces(EnvironmentView environment) {
  const auto place = [&](std::string_view who, std::string_view rank, std::string_view world,
                         std::string_view local_rank) {
    return Place{who, Read(environment, rank), Read(environment, world),
                 Read(environment, local_rank)};
  };
  return {place("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK"),
          place("MPICH's mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
          place("MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                "MV2_COMM_WORLD_LOCAL_RANK")};
}

// The variables of srun. Without its mark they are those of an allocation, which runs one process
// however many tasks it has room for.
Place SlurmPlace(EnvironmentView environment) {
  Place out{"srun", Read(environment, "SLURM_PROCID"), Read(environment, "SLURM_STEP_NUM_TASKS"),
            Read(environment, "SLURM_LOCALID")};
  if (out.world.text) return out;
  out.world = Read(environment, "SLURM_NTASKS");
  if (!FindVariable(environment, "SLURM_STEP_NODELIST")) out.rank.text.reset();
  return out;
}

// Whether RANK and WORLD_SIZE come from a launcher that runs inside the other: one mpirun or srun
// process a host, say, that starts torchrun.
bool Nested(EnvironmentView environment, const Place& inner, const Place& outer) {
  if (FindVariable(environment, "TORCHELASTIC_RUN_ID")) return true;
  const auto ranks = Count(inner.world);
  const auto processes = Count(outer.world);
  return inner.local_rank.text && ranks && processes && *ranks > *processes;
}

bool Contradict(const Place& a, const Place& b) {
  return a.whole() && b.whole() &&
         (Count(a.rank) != Count(b.rank) || Count(a.world) != Count(b.world));
}

// One that starts several processes: they are the ranks, where nothing else says so.
bool Several(const Place& place) { return place.whole() && Count(place.world) != 1u; }

void CheckHalf(const Place& place, std::vector<std::string>& faults) {
  if (!place.half()) return;
  const Source& there = place.rank.text ? place.rank : place.world;
  const Source& lacking = place.rank.text ? place.world : place.rank;
  faults.push_back(there.Shown() + " is set, but " + lacking.name + " is not set (" +
                   std::string(place.who) + " sets both)");
}

// Which launcher's word counts. What else is there and does not fit is noted as a fault.
Place ChoosePlace(EnvironmentView environment, const ExplicitLaunch& values,
                  std::vector<std::string>& faults) {
  Place hand{"torchrun", Choose(environment, "RANK", Text(values.rank)),
             Choose(environment, "WORLD_SIZE", Text(values.world_size)),
             Read(environment, "LOCAL_RANK")};
  if (values.rank && values.world_size) {
    hand.local_rank.text.reset();
    return hand;
  }
  const Place slurm = SlurmPlace(environment);
  const std::array mpi = MpiPlaces(environment);
  const std::array launchers = {mpi[0], mpi[1], mpi[2], slurm};
  const auto contradiction = [&](const Place& a, const Place& b) {
    faults.push_back(a.Shown() + " and " + b.Shown() + " contradict each other: unset those that " +
                     "do not belong to this job");
  };
  // Half of srun's is what every process in an allocation has.
  for (const Place& place : mpi) {
    if (!hand.whole() || !Nested(environment, hand, place)) CheckHalf(place, faults);
  }
  if (hand.rank.text || hand.world.text) {
    for (const Place& outer : launchers) {
      if (Several(outer) && Contradict(hand, outer) && !Nested(environment, hand, outer)) {
        contradiction(hand, outer);
      }
    }
    return hand;
  }
  // mpirun starts its daemons through srun, whose variables then mean those.
  for (std::size_t i = 1; i < mpi.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (Several(mpi[j]) && Several(mpi[i]) && Contradict(mpi[j], mpi[i])) {
        contradiction(mpi[j], mpi[i]);
      }
    }
  }
  const Place* chosen = nullptr;
  for (const Place& place : launchers) {
    // A launcher that started one process started perhaps the launcher of the others.
    if (place.whole() && (chosen == nullptr || (!Several(*chosen) && Several(place)))) {
      chosen = &place;
    }
  }
  if (chosen != nullptr) return *chosen;
  if (slurm.rank.text) {
    CheckHalf(slurm, faults);
  } else if (slurm.world.text && Count(slurm.world) != 1u) {
    faults.push_back(slurm.world.Shown() + ", but srun has not started this process, which would "
                                           "wait for the others in vain: start it with srun");
  }
  return hand;
}

// "node[03-05,7],x9" is node03. Empty: no list that can be read.
std::string FirstHost(std::string_view list) {
  std::string out;
  bool inside = false;
  bool skipping = false;  // the rest of a bracket
  for (const char c : list) {
    if (c == '[') {
      if (inside) return {};
      inside = true;
      skipping = false;
    } else if (c == ']') {
      if (!inside) return {};
      inside = false;
    } else if (!inside && c == ',') {
      break;
    } else if (inside && (c == ',' || c == '-')) {
      skipping = true;
    } else if (!inside || !skipping) {
      out += c;
    }
  }
  return inside ? std::string{} : out;
}

// srun's first task runs on the step's first host, unless a file says where each task goes.
Source MasterOf(EnvironmentView environment, const ExplicitLaunch& values, const Place& place) {
  Source address = Choose(environment, "MASTER_ADDR", values.master_address);
  if (address.text || place.who != "srun") return address;
  const auto nodes = FindVariable(environment, "SLURM_STEP_NODELIST");
  if (!nodes || FindVariable(environment, "SLURM_DISTRIBUTION") == "arbitrary") return address;
  const std::string host = FirstHost(*nodes);
  if (!host.empty()) return {"SLURM_STEP_NODELIST", host};
  return address;
}

Status Faulty(const std::vector<std::string>& faults) {
  std::string text = "launch: ";
  for (std::size_t i = 0; i < faults.size(); ++i) text += (i == 0 ? "" : "; ") + faults[i];
  return {Code::kInvalidArgument, text};
}

}  // namespace

bool LauncherSeen(EnvironmentView environment, std::string* several) {
  const Place hand{"torchrun", Read(environment, "RANK"), Read(environment, "WORLD_SIZE"), {}};
  const Place slurm = SlurmPlace(environment);
  const std::array mpi = MpiPlaces(environment);
  several->clear();
  bool seen = FindVariable(environment, "SLURM_PROCID").has_value();
  for (const Place& place : {mpi[0], mpi[1], mpi[2], slurm, hand}) {
    seen = seen || place.rank.text || place.world.text;
    // An allocation has room for tasks and starts none.
    const bool started = place.world.name != "SLURM_NTASKS" || place.rank.text;
    if (several->empty() && started && Count(place.world).value_or(1) > 1) {
      *several = place.world.Shown();
    }
  }
  return seen;
}

Result<Launch> LaunchFrom(EnvironmentView environment, const ExplicitLaunch& explicit_values) {
  std::vector<std::string> faults;
  const Place place = ChoosePlace(environment, explicit_values, faults);
  if (!faults.empty()) return Faulty(faults);
  const Source address = MasterOf(environment, explicit_values, place);
  const Source port = Choose(environment, "MASTER_PORT", Text(explicit_values.master_port));

  Launch launch;
  launch.listen_fd = explicit_values.listen_fd;
  launch.origin = place.rank.name + ", " + place.world.name;
  const auto rank = Number(place.rank, 0, kRanksMax - 1, faults);
  const auto world = Number(place.world, 1, kRanksMax, faults);
  if (rank) launch.rank = *rank;
  if (world) launch.world_size = *world;
  if (rank && world && *rank >= *world) {
    faults.push_back(place.rank.name + " is " + *place.rank.text + ", but with " +
                     place.world.name + " " + *place.world.text + " the ranks are 0 to " +
                     std::to_string(*world - 1));
  }
  if (place.local_rank.text && rank && world) {
    launch.local_rank = Number(place.local_rank, 0, *world - 1, faults);
  }
  ReadMaster(address, port, !world || *world > 1, launch, faults);
  if (launch.listen_fd >= 0 && rank && *rank != 0) {
    faults.push_back("rank " + *place.rank.text +
                     " was given a listening socket; only rank 0 listens");
  }
  if (faults.empty()) return launch;
  return Faulty(faults);
}

}  // namespace optireduce::control
