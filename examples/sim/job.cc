#include "examples/sim/job.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/check.h"

namespace optireduce::sim {
namespace {

using std::chrono::milliseconds;

// The keys of simulated jobs are always the same: nothing in a simulation may be random.
wire::JobKey SimKey(std::uint8_t key) {
  std::array<std::byte, wire::JobKey::kBytes> bytes{};
  bytes[0] = std::byte{key};
  return wire::JobKey(bytes);
}

// As rank 0 of the control plane has it.
constexpr Duration kAnswerLimit = milliseconds(1000);
constexpr Duration kTryAgain = milliseconds(2000);

// Sizes to ask a path for, whatever the packets of the job are.
const std::vector<std::uint32_t> kProbeBytes = {8972, 4052, 1472, 1452, 1372, 1232,
                                                1000, 548,  400,  300,  200};

constexpr std::int64_t kMillion = 1'000'000;

constexpr std::byte kGuard{0xc3};
constexpr std::byte kOverwritten{0x5a};

bool AllAre(std::span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](std::byte b) { return b == value; });
}

}  // namespace

Instant RankClock::Local(Instant world) const {
  const std::int64_t ns = Nanos(world);
  return world + offset + Duration{ns / kMillion * ppm + ns % kMillion * ppm / kMillion};
}

Instant RankClock::World(Instant local) const {
  if (local == kNever) return kNever;
  const std::int64_t ns = Nanos(local - offset);
  // Near it, and then what rounding is off.
  Instant world = InstantFromNanos(ns - ns / (kMillion + ppm) * ppm);
  while (Local(world) > local) world -= Local(world) - local;
  while (Local(world) < local) world += local - Local(world);
  return world;
}

Tensor::Tensor(std::size_t bytes) : bytes_(bytes) {
  OR_CHECK(bytes <= std::size_t{1} << 40);
  memory_.assign(bytes + 2 * kGuardBytes, kGuard);
}

void Tensor::Overwrite() {
  for (std::byte& byte : bytes()) byte = kOverwritten;
}

bool Tensor::GuardsIntact() const {
  const std::span<const std::byte> all(memory_);
  return AllAre(all.first(kGuardBytes), kGuard) && AllAre(all.last(kGuardBytes), kGuard);
}

bool Tensor::StillOverwritten() const { return AllAre(bytes(), kOverwritten); }

Job::Job(const JobOptions& options, World* world, Network* network)
    : options_(options), world_(world), network_(network), changeover_(options.ranks) {
  OR_CHECK(network->nodes() == options.ranks);
  OR_CHECK(options.clocks.empty() || options.clocks.size() == options.ranks);
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    nodes_.push_back(std::make_unique<Node>());
    if (!options.clocks.empty()) nodes_[rank]->clock = options.clocks[rank];
  }
}

void Job::Start(Rank rank) {
  const Settings& settings = options_.settings;
  Node& node = *nodes_[rank];
  OR_CHECK(node.engine == nullptr);
  network_->BringUp(rank);
  node.port = std::make_unique<SimPort>(network_, rank);
  EngineOptions engine(SimKey(options_.key));
  engine.group = MakeGroupSettings(settings, node.port->limits(), rank, options_.ranks);
  engine.group.group_id = 7;
  engine.group.epoch = options_.epoch;
  engine.group.ops_before = options_.ops_before;
  engine.group.first_number = options_.first_number;
  engine.arena_bytes = settings.arena_bytes_max;
  engine.bucket_bytes_max = settings.bucket_bytes_max;
  engine.calls_queued_max = 1024;
  engine.tag = settings.security_tag;
  // As the communicator has it.
  engine.check = settings.security_check != CheckMode::kOff;
  engine.on_failure = [this, rank](const Status& cause, bool found_here) {
    if (found_here) OnFailure(rank, cause);
  };
  if (options_.watch_paths) engine.group.probe_bytes = kProbeBytes;
  engine.on_narrowing = [this](const ubt::Narrowing& narrowing) {
    After(options_.control_delay, [this, bytes = narrowing.to_bytes] {
      changeover_.Propose({bytes});
      BeginChangeover();
    });
  };
  engine.on_ready = [this, rank](const control::Ready& ready) {
    After(options_.control_delay, [this, rank, ready] { Tell(changeover_.OnReady(rank, ready)); });
  };
  engine.on_call_end = [this, rank](std::shared_ptr<Call> call) { OnCallEnd(rank, call); };
  node.engine = std::make_unique<Engine>(std::move(engine), node.port.get());
  network_->SetWake(rank, [this, rank] { TurnBy(rank, world_->now()); });
}

void Job::Kill(Rank rank) {
  Node& node = *nodes_[rank];
  if (node.engine == nullptr) return;
  if (node.turn) world_->Cancel(*node.turn);
  node.turn.reset();
  network_->SetWake(rank, nullptr);
  node.engine.reset();
  node.port.reset();
  network_->TakeDown(rank);
}

Job::~Job() {
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (nodes_[rank]->engine != nullptr) network_->SetWake(rank, nullptr);
  }
}

JobCall& Job::CallAt(Instant at, Rank rank, const CallSpec& spec, std::span<const std::byte> in,
                     bool in_place) {
  OR_CHECK(in.size() < (std::size_t{1} << 40));
  auto& calls = nodes_[rank]->calls;
  calls.push_back(std::make_unique<JobCall>());
  JobCall& entry = *calls.back();
  entry.index = calls.size() - 1;
  entry.in_place = in_place;
  entry.in = Tensor(in.size());
  if (!in.empty()) std::memcpy(entry.in.bytes().data(), in.data(), in.size());
  entry.out = Tensor(in_place ? 0 : in.size());
  entry.call = std::make_shared<Call>();
  Call& call = *entry.call;
  call.in = entry.in.bytes().data();
  call.out = in_place ? entry.in.bytes().data() : entry.out.bytes().data();
  call.count = spec.count;
  call.type = spec.type;
  call.reduce = spec.reduce;
  call.mode = spec.mode;
  call.key = spec.key;
  call.timeout = spec.timeout;
  ++open_calls_;
  world_->Schedule(at, [this, rank, &entry] { Submit(rank, &entry); });
  return entry;
}

void Job::Submit(Rank rank, JobCall* entry) {
  Node& node = *nodes_[rank];
  if (node.engine == nullptr) return;  // killed meanwhile
  if (node.pauses > 0) {
    node.waiting.push_back(entry);  // a stopped process calls nothing
    return;
  }
  entry->called_at = world_->now();
  OR_CHECK(node.engine->Submit(entry->call));
  TurnBy(rank, world_->now());
}

void Job::OnFailure(Rank rank, const Status& cause) {
  for (Rank other = 0; other < ranks(); ++other) {
    if (other != rank) PostFailureAt(world_->now() + options_.control_delay, other, cause);
  }
}

void Job::PostFailureAt(Instant at, Rank rank, const Status& cause) {
  world_->Schedule(at, [this, rank, cause] {
    if (nodes_[rank]->engine == nullptr) return;
    nodes_[rank]->engine->PostFailure(cause);
    TurnBy(rank, world_->now());
  });
}

void Job::BeginChangeover() {
  const std::optional<control::Prepare> prepare = changeover_.Begin();
  if (!prepare) return;
  After(options_.control_delay, [this, prepare] {
    for (Rank rank = 0; rank < ranks(); ++rank) {
      if (nodes_[rank]->engine == nullptr) continue;
      nodes_[rank]->engine->PostPrepare(*prepare);
      TurnBy(rank, world_->now());
    }
  });
  After(kAnswerLimit, [this, id = prepare->id] {
    if (!changeover_.under_way() || changeover_.id() != id) return;
    Tell(changeover_.GiveUp());
    After(kTryAgain, [this] { BeginChangeover(); });
  });
}

void Job::Tell(const std::optional<control::Decision>& decision) {
  if (!decision) return;
  After(options_.control_delay, [this, decision] {
    for (Rank rank = 0; rank < ranks(); ++rank) {
      if (nodes_[rank]->engine == nullptr) continue;
      nodes_[rank]->engine->PostDecision(*decision);
      TurnBy(rank, world_->now());
    }
  });
  if (decision->commit) BeginChangeover();
}

void Job::After(Duration delay, std::function<void()> act) {
  world_->Schedule(world_->now() + delay, std::move(act));
}

void Job::PauseAt(Instant begin, Instant end, Rank rank) {
  world_->Schedule(begin, [this, rank] {
    ++nodes_[rank]->pauses;
    network_->Pause(rank);
  });
  world_->Schedule(end, [this, rank] {
    Node& node = *nodes_[rank];
    if (--node.pauses > 0) return;
    node.resumed_at = world_->now();
    network_->Resume(rank);
    for (JobCall* entry : std::exchange(node.waiting, {})) Submit(rank, entry);
    TurnBy(rank, world_->now());
  });
}

// Makes sure that the rank's engine turns at `at` or before, but not while its CPU is busy.
void Job::TurnBy(Rank rank, Instant at) {
  Node& node = *nodes_[rank];
  if (node.engine == nullptr) return;
  at = std::max(at, node.busy_until);
  if (node.turn && node.turn_at <= at) return;
  if (node.turn) world_->Cancel(*node.turn);
  node.turn_at = at;
  node.turn = world_->Schedule(at, [this, rank] { Turn(rank); });
}

void Job::Turn(Rank rank) {
  Node& node = *nodes_[rank];
  node.turn.reset();
  if (network_->paused(rank) || network_->down(rank)) return;
  if (node.engine->Turn(node.clock.Local(world_->now()))) {
    node.busy_until = world_->now() + options_.turn_cost;
    TurnBy(rank, node.busy_until);
  } else if (node.engine->NextWake() != kNever) {
    TurnBy(rank, std::max(node.clock.World(node.engine->NextWake()), world_->now() + Duration{1}));
  }
}

void Job::OnCallEnd(Rank rank, const std::shared_ptr<Call>& call) {
  for (const auto& entry : nodes_[rank]->calls) {
    if (entry->call != call) continue;
    entry->ended_at = world_->now();
    call->finished = true;
    --open_calls_;
    if (on_end) on_end(rank, *entry);
    return;
  }
  OR_CHECK(false);
}

bool Job::RunUntilEnded(Instant limit) {
  while (open_calls_ > 0 && world_->next_event() <= limit) world_->Step();
  return open_calls_ == 0;
}

bool Job::Settled() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->engine && node->engine->Settled(); });
}

bool Job::RunUntilSettled(Instant limit) {
  while (!Settled() && world_->now() < limit) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
      Node& node = *nodes_[rank];
      if (!node.engine || node.engine->Settled() || network_->paused(rank)) continue;
      node.engine->AskToSettle(node.clock.Local(world_->now()));
      TurnBy(rank, world_->now());
    }
    world_->RunUntil(std::min(limit, world_->now() + milliseconds(10)));
  }
  return Settled();
}

}  // namespace optireduce::sim
