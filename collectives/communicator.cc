#include "optireduce/communicator.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "collectives/call.h"
#include "collectives/driver.h"
#include "collectives/engine.h"
#include "collectives/path_probe.h"
#include "collectives/state.h"
#include "collectives/state_signal.h"
#include "collectives/version.h"
#include "lib/config.h"
#include "lib/environment.h"
#include "lib/log.h"
#include "transport/control/control.h"
#include "transport/ports.h"

namespace optireduce {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long a rank that leaves serves repairs, and then waits for the others' goodbyes.
constexpr Duration kLinger = seconds(1);
// The largest value of option op_timeout.
constexpr Duration kTimeoutMax = std::chrono::hours(24);

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

// Runs the callers' on_end functions, which must not run on the engine. Its thread starts with the
// first one.
class CallbackThread {
 public:
  ~CallbackThread() { Stop(); }

  // Runs what is pending; what is pushed later runs at once, on the pusher's thread.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void Push(std::shared_ptr<Call> call) {
    std::unique_lock lock(mutex_);
    if (stop_) {
      lock.unlock();
      call->on_end(call->report);
      return;
    }
    calls_.push_back(std::move(call));
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    wake_.notify_all();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !calls_.empty(); });
      if (calls_.empty()) return;
      const std::shared_ptr<Call> call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call->on_end(call->report);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Call>> calls_;
  bool stop_ = false;
  std::thread thread_;
};

// One rank: the result is its own contribution, rounded as every result is.
void ReduceAlone(Call& call) {
  const Kernels kernels = KernelsFor(call.type, call.reduce);
  constexpr std::uint64_t kPiece = 1024;
  std::array<std::byte, kPiece * 16> accumulators;
  const std::size_t element_bytes = ElementBytes(call.type);
  for (std::uint64_t first = 0; first < call.count; first += kPiece) {
    const std::size_t count = std::min(kPiece, call.count - first);
    kernels.load(accumulators.data(), call.in + first * element_bytes, count);
    kernels.finish(call.out + first * element_bytes, accumulators.data(), count, 1);
  }
  call.report.entries = call.count;
}

}  // namespace

// ---- Work -------------------------------------------------------------------------------------

Work::Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

bool Work::Finished() const { return state_->finished.load(std::memory_order_acquire); }

const Report& Work::Wait() {
  if (!Finished()) state_->driver->Await(*state_);
  return state_->report;
}

bool LauncherSeen(std::string* several) {
  return control::LauncherSeen(ReadEnvironment(), several);
}

// ---- Communicator -----------------------------------------------------------------------------

struct Communicator::Impl {
  explicit Impl(Config config_in) : config(std::move(config_in)) {}

  void OnCallEnd(std::shared_ptr<Call> call);
  void OnControlEvent(const control::Event& event);
  void OnNarrowing(const ubt::Narrowing& narrowing);
  Status Join(const control::Launch& launch);
  Status AgreeOnPacketSize();
  void StartEngine();
  Status CheckArguments(const void* in, const void* out, std::size_t count, DataType type,
                        ReduceOp op, const AllReduceOptions& options) const;
  Mode ModeOf(std::size_t count, DataType type, ReduceOp op, const AllReduceOptions& options) const;
  Work Submit(std::shared_ptr<Call> call);
  // The four below: only while nobody else turns the engine.
  Stats CollectStats() const;
  std::string State() const;
  std::string FlightRecord() const;
  void LeaveFlightRecord(const Status& cause);
  void WatchSignal();

  const Config config;
  const pid_t owner = getpid();  // the process that made it
  std::string transport = "none (one rank)";  // as it was when the group met
  Rank rank = 0;
  std::uint32_t ranks = 1;
  std::vector<std::string> hosts;
  std::vector<std::string> endpoints;
  std::vector<std::string> rank_names;

  // In the order in which they are made; taken apart by the destructor in its own order.
  std::unique_ptr<BoundPort> port;
  std::unique_ptr<control::ControlPlane> control;
  Counters probe_counters;
  std::uint32_t packet_bytes_asked = 0;  // by the last changeover; the control thread's
  CallbackThread callbacks;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Driver> driver;
  std::mutex submit_mutex;  // calls enter the engine in one order
  std::atomic<bool> closing{false};  // what ends now has not failed
  std::unique_ptr<StateSignal> state_signal;
};

void Communicator::Impl::OnCallEnd(std::shared_ptr<Call> call) {
  Call& ended = *call;
  if (config.settings().log_ops == Toggle::kOn) LogAsked(CallText(ended));
  const bool has_callback = static_cast<bool>(ended.on_end);
  driver->OnCallEnd(ended);
  if (has_callback) callbacks.Push(std::move(call));
}

void Communicator::Impl::OnControlEvent(const control::Event& event) {
  switch (event.kind) {
    case control::Event::Kind::kPeerLeft:
      engine->PostPeerLeft(event.rank);
      break;
    case control::Event::Kind::kPeerLost:
      engine->PostFailure(Status(event.status.code(), event.status.text())
                              .Context(rank_names[event.rank] + " is lost"));
      break;
    case control::Event::Kind::kAborted:
      engine->PostFailure(event.status.Context("aborted by " + rank_names[event.rank]));
      break;
    case control::Event::Kind::kPrepare:
      packet_bytes_asked = event.prepare.change.packet_bytes;
      engine->PostPrepare(event.prepare);
      break;
    case control::Event::Kind::kDecided:
      if (event.decision.commit && rank == 0) {
        Log(LogLevel::kWarning, "path MTU " + std::to_string(port->IpBytes(packet_bytes_asked)) +
                                    " for all ranks from op " +
                                    std::to_string(event.decision.first) + " on");
      }
      engine->PostDecision(event.decision);
      break;
  }
  driver->Notify();
}

// A path has become narrow: all ranks are to send smaller packets, from some op on.
void Communicator::Impl::OnNarrowing(const ubt::Narrowing& narrowing) {
  const auto ip = [&](std::uint32_t bytes) { return std::to_string(port->IpBytes(bytes)); };
  Log(LogLevel::kWarning, "path MTU from " + rank_names[rank] + " to " +
                              rank_names[narrowing.peer] + " has shrunk: IP packets of " +
                              ip(narrowing.from_bytes) + " bytes are lost, those of " +
                              ip(narrowing.to_bytes) + " pass");
  control->Propose({narrowing.to_bytes});
}

Status Communicator::Impl::Join(const control::Launch& launch) {
  rank = launch.rank;
  ranks = launch.world_size;
  const Settings& settings = config.settings();
  control::LocalInfo info;
  info.version = kVersion;
  info.wire_config_text = config.WireText();
  info.wire_config_hash = config.WireHash();
  info.host = HostName();
  info.job_key_file = settings.job_key_file;
  info.bind_address = settings.net_bind;
  info.advertise_address = settings.net_advertise;
  info.family = settings.net_family;
  const auto bind = [&](const std::string& address) -> Result<std::string> {
    Result<std::unique_ptr<BoundPort>> bound =
        BindPort(settings, address, settings.net_advertise, rank);
    if (!bound.ok()) return bound.status();
    port = *std::move(bound);
    return port->endpoint();
  };
  auto joined = control::ControlPlane::Join(launch, info, settings.rendezvous_timeout, bind);
  if (!joined.ok()) return joined.status();
  control = *std::move(joined);
  for (const control::Member& member : control->membership().members) {
    hosts.push_back(member.host);
    endpoints.push_back(member.data_endpoint);
    rank_names.push_back("rank " + std::to_string(rank_names.size()) + " (" + member.host + ", " +
                         member.data_endpoint + ")");
  }
  if (ranks == 1) return Status::Ok();
  OR_RETURN_IF_ERROR(port->SetPeers(endpoints, rank));
  OR_RETURN_IF_ERROR(AgreeOnPacketSize());
  transport = port->Describe();
  for (const std::string& notice : port->notices()) Log(LogLevel::kWarning, notice);
  return Status::Ok();
}

Status Communicator::Impl::AgreeOnPacketSize() {
  PathProbeParts parts;
  parts.membership = &control->membership();
  parts.rank = rank;
  parts.rank_names = rank_names;
  parts.tag = config.settings().security_tag;
  parts.counters = &probe_counters;
  const Result<PathAgreement> paths = ProbePaths(parts, *port, *control);
  if (!paths.ok()) return paths.status().Context("probe the paths");
  if (rank == 0 && !paths->odd.empty()) {
    Log(LogLevel::kWarning, "path MTU " + std::to_string(port->IpBytes(paths->packet_bytes)) +
                                " for all ranks: " + paths->odd +
                                " passes no larger packets, others do");
  }
  return Status::Ok();
}

void Communicator::Impl::StartEngine() {
  const Settings& settings = config.settings();
  const control::Membership& membership = control->membership();
  EngineOptions options(membership.job_key);
  options.group = MakeGroupSettings(settings, port->port().limits(), rank, ranks);
  options.group.group_id = membership.group_id;
  options.group.rank_names = rank_names;
  options.group.probe_bytes = port->probe_bytes();
  options.arena_bytes = settings.arena_bytes_max;
  options.bucket_bytes_max = settings.bucket_bytes_max;
  options.calls_queued_max = static_cast<std::uint32_t>(settings.ops_in_flight_max);
  options.tag = settings.security_tag;
  // Exact ops travel in groups of either mode, and bounded ones promise the same bits too.
  options.check = settings.security_check != CheckMode::kOff;
  options.on_failure = [this](const Status& cause, bool found_here) {
    if (found_here) control->Abort(cause);
    LeaveFlightRecord(cause);
  };
  options.on_narrowing = [this](const ubt::Narrowing& narrowing) { OnNarrowing(narrowing); };
  options.on_ready = [this](const control::Ready& ready) { control->Answer(ready); };
  options.on_call_end = [this](std::shared_ptr<Call> call) { OnCallEnd(std::move(call)); };
  options.stall_after = settings.op_warning;
  options.on_stall = [](const std::string& what) { Log(LogLevel::kWarning, what); };
  engine = std::make_unique<Engine>(std::move(options), &port->port());
  driver = std::make_unique<Driver>(engine.get(), &port->port(), settings.spin);
  driver->Start();
  control->SetEventHandler([this](const control::Event& event) { OnControlEvent(event); });
  WatchSignal();
}

void Communicator::Impl::LeaveFlightRecord(const Status& cause) {
  const std::string& file = config.settings().flight_record_file;
  if (file.empty() || closing.load()) return;
  const std::string path = RankPath(file, rank);
  const Status written =
      WriteText(path, cause.ToString() + "\n" + State() + FlightRecord(), /*append=*/false);
  Log(LogLevel::kWarning, written.ok() ? "flight record: the last events are in " + path
                                       : "flight record: " + written.text());
}

void Communicator::Impl::WatchSignal() {
  const StateSignalChoice choice = config.settings().state_signal;
  if (choice == StateSignalChoice::kOff) return;
  auto watch = StateSignal::Watch(choice == StateSignalChoice::kUser1 ? SIGUSR1 : SIGUSR2, [this] {
    std::string text;
    driver->Inspect([&] { text = State(); });
    const std::string& file = config.settings().state_file;
    if (file.empty()) return LogAsked(text);
    const Status written = WriteText(RankPath(file, rank), text, /*append=*/true);
    if (!written.ok()) Log(LogLevel::kWarning, "state.file: " + written.text());
  });
  if (watch.ok()) {
    state_signal = *std::move(watch);
  } else {
    Log(LogLevel::kWarning, "state.signal: " + watch.status().text() + "; choose the other one");
  }
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Communicator>> Communicator::Create(const CommunicatorOptions& options) {
  const std::vector<std::string> environment = ReadEnvironment();
  Result<Config> config =
      Config::Load(environment, options.settings, "the program", options.config_file);
  if (!config.ok()) return config.status().Context("configuration");
  SetLogLevel(config->settings().log_level);
  control::ExplicitLaunch explicit_launch;
  explicit_launch.rank = options.rank;
  explicit_launch.world_size = options.world_size;
  explicit_launch.master_address = options.master_address;
  explicit_launch.master_port = options.master_port;
  explicit_launch.listen_fd = options.listen_fd;
  Result<control::Launch> launch = control::LaunchFrom(environment, explicit_launch);
  if (!launch.ok()) return launch.status();
  SetLogRank(static_cast<int>(launch->rank));

  if (launch->world_size > 1) {
    OR_RETURN_IF_ERROR(CheckArena(config->settings(), launch->world_size));
  }
  auto impl = std::make_unique<Impl>(*std::move(config));
  const Status joined = impl->Join(*launch);
  if (!joined.ok()) {
    return joined.Context("rank " + std::to_string(launch->rank) + " of " +
                          std::to_string(launch->world_size) + ": join the group");
  }
  if (impl->ranks > 1) impl->StartEngine();
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

Communicator::~Communicator() {
  if (getpid() != impl_->owner) {
    // A forked child has the parent's sockets, and none of its threads: it leaves all of it alone.
    (void)impl_.release();
    return;
  }
  const Status destroyed(Code::kAborted, "the communicator was destroyed");
  impl_->state_signal.reset();
  if (impl_->driver) {
    impl_->driver->Stop(kLinger);
    impl_->closing = true;
    impl_->driver->EndAll(destroyed);
  }
  impl_->callbacks.Stop();
  if (impl_->driver) impl_->driver->EndAll(destroyed);  // what callbacks began
  if (impl_->control) {
    impl_->control->SetEventHandler(nullptr);
    impl_->control->Leave(kLinger);
  }
}

int Communicator::rank() const { return static_cast<int>(impl_->rank); }

int Communicator::size() const { return static_cast<int>(impl_->ranks); }

std::string Communicator::transport() const {
  return impl_->transport;
}

const std::vector<std::string>& Communicator::hosts() const { return impl_->hosts; }

std::vector<Communicator::SettingView> Communicator::settings() const {
  std::vector<SettingView> views;
  for (const Config::Row& row : impl_->config.Rows()) {
    views.push_back({row.path, row.value, row.origin});
  }
  return views;
}

Status Communicator::Impl::CheckArguments(const void* in, const void* out, std::size_t count,
                                          DataType type, ReduceOp op,
                                          const AllReduceOptions& options) const {
  if (static_cast<std::size_t>(type) >= kDataTypes ||
      static_cast<std::size_t>(op) >= kReduceOps) {
    return {Code::kInvalidArgument, "all_reduce: unknown data type or operator"};
  }
  if (getpid() != owner) {
    return {Code::kInvalidArgument, "all_reduce: this communicator belongs to process " +
                                        std::to_string(owner) +
                                        "; a forked child must make its own"};
  }
  const std::string pair = std::string(Name(op)) + " of " + std::string(Name(type));
  if (!Supported(type, op)) {
    return {Code::kInvalidArgument, "all_reduce: " + pair + " is not defined"};
  }
  if (options.mode == Mode::kBounded && !MayBeBounded(type, op)) {
    return {Code::kInvalidArgument, "all_reduce: " + pair +
                                        " must be exact; bounded mode is for sums and averages "
                                        "of floating point"};
  }
  if (options.timeout && *options.timeout <= Duration{0}) {
    return {Code::kInvalidArgument, "all_reduce: the timeout must be longer than 0"};
  }
  if (count == 0) return Status::Ok();
  if (in == nullptr || out == nullptr) {
    return {Code::kInvalidArgument, "all_reduce: null memory for " + std::to_string(count) +
                                        " elements"};
  }
  const std::size_t bytes_max = ~std::size_t{0} / 2;
  if (count > bytes_max / ElementBytes(type)) {
    return {Code::kInvalidArgument, "all_reduce: count " + std::to_string(count) +
                                        " is more than an address space holds"};
  }
  const auto a = reinterpret_cast<std::uintptr_t>(in);
  const auto b = reinterpret_cast<std::uintptr_t>(out);
  const std::size_t bytes = count * ElementBytes(type);
  if (a != b && a < b + bytes && b < a + bytes) {
    return {Code::kInvalidArgument,
            "all_reduce: input and output overlap in part; use the same memory or apart"};
  }
  return Status::Ok();
}

// Lossy only where declared, and never for small tensors or values that are no gradients.
Mode Communicator::Impl::ModeOf(std::size_t count, DataType type, ReduceOp op,
                                const AllReduceOptions& options) const {
  if (count == 0) return Mode::kExact;  // nothing can be left out
  if (options.mode) return *options.mode;
  const Settings& settings = config.settings();
  const bool large = count * ElementBytes(type) >= settings.bounded_bytes_min;
  return settings.mode == Mode::kBounded && large && MayBeBounded(type, op) ? Mode::kBounded
                                                                           : Mode::kExact;
}

Work Communicator::AllReduce(const void* in, void* out, std::size_t count, DataType type,
                             ReduceOp op, const AllReduceOptions& options) {
  auto call = std::make_shared<Call>();
  call->on_end = options.on_end;
  const Status status = impl_->CheckArguments(in, out, count, type, op, options);
  if (!status.ok()) {
    call->report.outcome = Report::Outcome::kFailed;
    call->report.status = status;
    call->finished = true;
    if (call->on_end) impl_->callbacks.Push(call);
    return Work(std::move(call));
  }
  call->in = static_cast<const std::byte*>(in);
  call->out = static_cast<std::byte*>(out);
  call->count = count;
  call->type = type;
  call->reduce = op;
  call->mode = impl_->ModeOf(count, type, op, options);
  call->key = options.key;
  call->timeout =
      std::min(options.timeout.value_or(impl_->config.settings().op_timeout), kTimeoutMax);
  call->driver = impl_->driver.get();
  return impl_->Submit(std::move(call));
}

Work Communicator::Impl::Submit(std::shared_ptr<Call> call) {
  if (ranks == 1) {
    ReduceAlone(*call);
    call->finished = true;
    if (call->on_end) callbacks.Push(call);
    return Work(std::move(call));
  }
  const std::lock_guard lock(submit_mutex);
  while (!engine->Submit(call)) {
    // Back-pressure: as many calls as may be are waiting.
    driver->AwaitRoom();
  }
  driver->Notify();
  return Work(std::move(call));
}

Status Communicator::Barrier() {
  Report report = AllReduce(nullptr, nullptr, 0, DataType::kUInt8, ReduceOp::kMax).Wait();
  return report.outcome == Report::Outcome::kFailed ? report.status.Context("barrier")
                                                    : Status::Ok();
}

void Communicator::Abort(const Status& cause) {
  if (impl_->control) impl_->control->Abort(cause);
  if (!impl_->engine) return;
  // This rank does not wait until it hears of it: its next call must not reach the peers.
  impl_->engine->PostFailure(cause.Context("aborted by " + impl_->rank_names[impl_->rank]));
  impl_->driver->Notify();
}

Stats Communicator::Impl::CollectStats() const {
  Stats stats;
  for (const CounterRow& row : kCounterRows) {
    stats.counters.emplace_back(
        row.name, engine->counters().Get(row.counter) + probe_counters.Get(row.counter));
  }
  const Instant now = MonotonicNow();
  for (Rank r = 0; r < ranks; ++r) {
    stats.peers.push_back(
        r == rank ? PeerStats{} : PeerStatsOf(engine->group().link(r), endpoints[r], now));
  }
  const PortCounters counters = port->port().counters();
  stats.counters.emplace_back("port_send_calls", counters.send_calls);
  stats.counters.emplace_back("port_receive_calls", counters.receive_calls);
  stats.counters.emplace_back("port_waits", counters.waits);
  stats.counters.emplace_back("port_packets_received", counters.packets_received);
  stats.counters.emplace_back("port_send_refused", counters.send_refused);
  stats.counters.emplace_back("port_receive_queue_drops", counters.receive_queue_drops);
  stats.counters.emplace_back("port_foreign_packets", counters.foreign_packets);
  const control::GuestCounts& guests = control->guests();
  stats.counters.emplace_back("control_guests_malformed", guests.malformed);
  stats.counters.emplace_back("control_guests_other_version", guests.other_version);
  stats.counters.emplace_back("control_guests_wrong_key", guests.wrong_key);
  stats.counters.emplace_back("control_guests_refused", guests.refused);
  stats.counters.emplace_back("control_guests_silent", guests.silent);
  stats.counters.emplace_back("control_guests_crowded_out", guests.crowded_out);
  stats.counters.emplace_back("control_guests_left", guests.left);
  stats.counters.emplace_back("fault_dropped", counters.fault_dropped);
  stats.counters.emplace_back("fault_duplicated", counters.fault_duplicated);
  stats.counters.emplace_back("fault_corrupted", counters.fault_corrupted);
  stats.counters.emplace_back("fault_delayed", counters.fault_delayed);
  stats.counters.emplace_back("fault_reordered", counters.fault_reordered);
  return stats;
}

std::string Communicator::Impl::State() const {
  return StateText(rank_names[rank] + " of " + std::to_string(ranks) + ", " + transport,
                   OpsText(engine->group()), CollectStats());
}

std::string Communicator::Impl::FlightRecord() const {
  return engine->recorder().Dump("rank " + std::to_string(rank));
}

Stats Communicator::stats() const {
  Stats stats;
  if (impl_->driver) impl_->driver->Inspect([&] { stats = impl_->CollectStats(); });
  return stats;
}

std::string Communicator::FlightRecord() const {
  std::string text;
  if (impl_->driver) impl_->driver->Inspect([&] { text = impl_->FlightRecord(); });
  return text;
}

}  // namespace optireduce
