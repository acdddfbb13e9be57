// A job in the simulator: whole engines on a simulated network, turned by its event queue, with
// callers that call ops at given instants. Real payloads, so that results can be checked.
//
// Deterministic: one seed and one program give the same run, bit for bit. One thread.
// Stands in for the control plane in two respects: a failure of one rank's group reaches the
// others, and it carries the messages of changeovers, in order and without loss.
// It makes no decision about what is right; examples/sim/checkers does.
#ifndef OPTIREDUCE_EXAMPLES_SIM_JOB_H_
#define OPTIREDUCE_EXAMPLES_SIM_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/engine.h"
#include "lib/settings.h"
#include "transport/control/changeover.h"
#include "transport/sim/network.h"
#include "transport/sim/sim_port.h"
#include "transport/sim/world.h"

namespace optireduce::sim {

// A rank's own clock: so far ahead of the world's at its beginning, and gaining so much.
struct RankClock {
  Duration offset{};
  std::int64_t ppm = 0;  // parts per million, -1000 ... 1000

  Instant Local(Instant world) const;
  // An instant of the world at which the clock shows `local` or just more.
  Instant World(Instant local) const;
};

struct JobOptions {
  std::uint32_t ranks = 2;
  std::uint64_t seed = 1;
  Settings settings;
  NetworkConfig network;
  OpNumber ops_before = 0;         // near a wrap in half of all seeds
  PacketNumber first_number = 1;
  std::uint8_t key = 1;   // which job key
  std::uint16_t epoch = 0;
  std::vector<RankClock> clocks;  // by rank; empty: all are right
  Duration turn_cost{2'000};       // a rank's CPU is busy that long for a turn that did something
  Duration control_delay = std::chrono::milliseconds(1);  // of a message of the control plane
  bool watch_paths = true;  // whether ranks ask a path that seems to lose large packets
};

struct CallSpec {
  DataType type = DataType::kFloat32;
  ReduceOp reduce = ReduceOp::kSum;
  Mode mode = Mode::kExact;
  std::uint64_t count = 0;
  std::uint64_t key = 0;
  Duration timeout = std::chrono::seconds(30);
};

// A caller's tensor, with guards on both sides that nothing may write to.
class Tensor {
 public:
  static constexpr std::size_t kGuardBytes = 64;

  Tensor() = default;
  explicit Tensor(std::size_t bytes);
  std::span<std::byte> bytes() { return {memory_.data() + kGuardBytes, bytes_}; }
  std::span<const std::byte> bytes() const { return {memory_.data() + kGuardBytes, bytes_}; }
  // What a caller does that uses its memory for something else.
  void Overwrite();
  // Neither the guards nor, after Overwrite(), anything between them has changed.
  bool GuardsIntact() const;
  bool StillOverwritten() const;

 private:
  std::size_t bytes_ = 0;
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kGuardBytes);
};

// One call of one rank, and what became of it. Out of place, `out` is a second tensor.
struct JobCall {
  std::uint64_t index = 0;  // of this rank's calls
  bool in_place = false;
  Tensor in;
  Tensor out;
  std::shared_ptr<Call> call;
  Instant called_at = kNever;
  Instant ended_at = kNever;
  bool ended() const { return ended_at != kNever; }
  std::span<const std::byte> result() const { return in_place ? in.bytes() : out.bytes(); }
};

class Job {
 public:
  // Its ranks live on the nodes of `network`, which other jobs may have used before. None is
  // started. World and network outlive the job.
  Job(const JobOptions& options, World* world, Network* network);
  ~Job();

  World& world() { return *world_; }
  Network& network() { return *network_; }
  std::uint32_t ranks() const { return options_.ranks; }
  const JobOptions& options() const { return options_; }
  // A process starts: from now on it turns. Calls are made, and ports looked at, afterwards.
  void Start(Rank rank);
  // SIGKILL: what it sent is still on its way, what it received is gone. It does not start again;
  // its node may be another job's then.
  void Kill(Rank rank);
  const SimPort& port(Rank rank) const { return *nodes_[rank]->port; }
  Engine& engine(Rank rank) { return *nodes_[rank]->engine; }

  // Schedules a call of `rank` at `at`, or when the rank goes on where it is paused then. `in` is
  // the contribution. The entry lives as long as the job.
  JobCall& CallAt(Instant at, Rank rank, const CallSpec& spec, std::span<const std::byte> in,
                  bool in_place);
  // The others of its job hear of a process that died.
  void PostFailureAt(Instant at, Rank rank, const Status& cause);
  // Called when a call ends, after its entry is filled in; may call again or overwrite memory.
  std::function<void(Rank, JobCall&)> on_end;

  // Stops and continues a rank's process. Pauses of one rank may overlap.
  void PauseAt(Instant begin, Instant end, Rank rank);
  // When the rank last went on after a pause; the epoch: never paused.
  Instant resumed_at(Rank rank) const { return nodes_[rank]->resumed_at; }

  // Runs until every call made so far has ended, at most until `limit`. False: something has not.
  bool RunUntilEnded(Instant limit);
  // Runs until no rank owes another anything, at most until `limit`.
  bool RunUntilSettled(Instant limit);
  bool Settled() const;

 private:
  struct Node {
    std::unique_ptr<SimPort> port;
    std::unique_ptr<Engine> engine;
    std::vector<std::unique_ptr<JobCall>> calls;
    std::uint32_t pauses = 0;  // that it is in
    Instant resumed_at{};
    std::vector<JobCall*> waiting;  // calls that the pause keeps it from making
    std::optional<EventId> turn;  // the next one
    Instant turn_at = kNever;
    Instant busy_until{};
    RankClock clock;
  };

  void Submit(Rank rank, JobCall* entry);
  void OnFailure(Rank rank, const Status& cause);
  // Rank 0's part in changeovers, which does not stop when rank 0 does.
  void BeginChangeover();
  void Tell(const std::optional<control::Decision>& decision);
  void After(Duration delay, std::function<void()> act);
  void TurnBy(Rank rank, Instant at);
  void Turn(Rank rank);
  void OnCallEnd(Rank rank, const std::shared_ptr<Call>& call);

  JobOptions options_;
  World* const world_;
  Network* const network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint64_t open_calls_ = 0;
  control::Changeover changeover_;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_JOB_H_
