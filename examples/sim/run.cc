#include "examples/sim/run.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_set>
#include <utility>

#include "lib/check.h"
#include "transport/wire/message.h"
#include "transport/wire/parse.h"

namespace optireduce::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Repeats of last reports stop within this time after everybody is done.
constexpr Duration kDrain = seconds(2);
constexpr Duration kSettleWithin = seconds(5);
// Super-packets of 64 KiB that an engine gives its port in one turn, and one that is on its way.
constexpr std::uint64_t kPortBytes = 17 << 16;

// With sends that are refused for a while: each of what a turn sends, several times in a row.
constexpr Duration kBusyLag = milliseconds(15);

// How long what a turn sends may wait for a full uplink.
Duration PortLag(const LinkConfig& uplink) {
  if (uplink.rate_bits_per_s == 0) return Duration{0};
  return Duration{static_cast<Duration::rep>(
      (uplink.queue_bytes_max + kPortBytes) * 8 * 1'000'000 /
      std::max<std::uint64_t>(uplink.rate_bits_per_s / 1000, 1))};
}

NetworkConfig ForJob(const JobOptions& options) {
  NetworkConfig config = options.network;
  config.nodes = options.ranks;
  config.seed = options.seed;
  return config;
}

class Runner {
 public:
  Runner(const Scenario& scenario, const Watch& watch)
      : scenario_(scenario),
        watch_(watch),
        network_(&world_, ForJob(scenario.job)),
        job_(scenario.job, &world_, &network_),
        callers_(scenario.job.ranks) {
    for (const CallPlan& plan : scenario.calls) {
      CallsEvidence calls;
      calls.plan = plan;
      calls.ops = OpsOf(scenario, plan.spec);
      calls.values = std::make_shared<CallValues>(plan.values, plan.spec.type, plan.spec.reduce,
                                                  scenario.job.ranks, plan.values_seed);
      calls.by_rank.resize(scenario.job.ranks);
      for (const NeverCall& never : scenario.never_calls) {
        if (never.call <= evidence_.calls.size()) calls.missed_by.push_back(never.rank);
      }
      for (const Rank rank : calls.missed_by) calls.by_rank[rank].never = true;
      for (std::uint64_t i = 0; i < calls.ops; ++i) call_of_op_.push_back(evidence_.calls.size());
      evidence_.calls.push_back(std::move(calls));
    }
  }

  Evidence Run() {
    Prepare();
    const Instant limit = QuietFrom(scenario_) + scenario_.ends_within;
    const auto started = [](const Caller& caller) { return caller.started; };
    while (!std::all_of(callers_.begin(), callers_.end(), started)) world_.Step();
    const bool ended = job_.RunUntilEnded(limit);
    if (ended) evidence_.ended_at = world_.now();
    job_.RunUntilSettled(world_.now() + kSettleWithin);
    world_.RunUntil(world_.now() + kDrain);
    Collect();
    return std::move(evidence_);
  }

 private:
  // What the network had counted when a rank was started.
  struct Before {
    std::uint64_t sent = 0;
    std::uint64_t delivered = 0;
    std::uint64_t receive_drops = 0;
  };
  struct Caller {
    bool started = false;
    Before before;
    std::vector<JobCall*> calls;
    std::uint64_t ended = 0;
    Instant last_call_at{};
  };

  void Prepare() {
    network_.SetTraceSink([this](const TraceRecord& record) { OnPacket(record); });
    job_.on_end = [this](Rank rank, JobCall& call) { OnEnd(rank, call); };
    for (const PausePlan& pause : scenario_.pauses) {
      job_.PauseAt(pause.begin, pause.end, pause.rank);
    }
    for (const BlockPlan& block : scenario_.partitions) {
      network_.Partition(block.pairs, block.begin, block.end);
    }
    for (const BlockPlan& block : scenario_.clogs) {
      network_.Clog(block.pairs, block.begin, block.end);
    }
    for (const NarrowPlan& narrow : scenario_.narrows) {
      world_.Schedule(narrow.at, [this, narrow] {
        network_.Narrow(narrow.pair, narrow.packet_bytes_max);
      });
    }
    for (const LinkPlan& link : scenario_.links) {
      network_.SetUplink(link.rank, link.uplink);
      network_.SetDownlink(link.rank, link.downlink);
    }
    for (const WayPlan& way : scenario_.ways) network_.SetConditions(way.pair, way.conditions);
    if (scenario_.heal_at != kNever) {
      world_.Schedule(scenario_.heal_at, [this] { network_.Heal(); });
    }
    if (scenario_.restart) {
      RunEarlier();
    } else {
      for (Rank rank = 0; rank < job_.ranks(); ++rank) job_.Start(rank);
    }
    if (watch_.on_start) watch_.on_start(job_);
    if (scenario_.restart) return;
    for (Rank rank = 0; rank < job_.ranks(); ++rank) BeginCalls(rank);
  }

  void BeginCalls(Rank rank) {
    Caller& caller = callers_[rank];
    caller.started = true;
    caller.last_call_at = world_.now() + Duration{1};
    if (rank < scenario_.start_after.size()) caller.last_call_at += scenario_.start_after[rank];
    MakeCalls(rank);
  }

  // The run before this one, of the same ranks, until its end; and the start of this one.
  void RunEarlier() {
    const RestartPlan& restart = *scenario_.restart;
    JobOptions options = scenario_.job;
    if (restart.same_key) {
      OR_CHECK(options.epoch > 0);
      --options.epoch;
    } else {
      ++options.key;
    }
    earlier_ = std::make_unique<Job>(options, &world_, &network_);
    for (Rank rank = 0; rank < job_.ranks(); ++rank) {
      earlier_->Start(rank);
      for (const CallsEvidence& calls : evidence_.calls) {
        const CallSpec& spec = calls.plan.spec;
        contribution_.assign(spec.count * ElementBytes(spec.type), std::byte{0x11});
        earlier_->CallAt(Instant{} + Duration{1}, rank, spec, contribution_, calls.plan.in_place);
      }
      const Instant told_at = restart.killed_at + options.control_delay;
      Instant killed_at = restart.killed_at;
      if (rank != restart.rank) {
        earlier_->PostFailureAt(told_at, rank, {Code::kPeerLost, "a rank was killed"});
        killed_at = told_at + restart.dead_after[rank];
      }
      world_.Schedule(killed_at, [this, rank] { earlier_->Kill(rank); });
      world_.Schedule(StartOf(scenario_, rank), [this, rank] { StartAgain(rank); });
    }
  }

  void StartAgain(Rank rank) {
    earlier_->Kill(rank);
    callers_[rank].before = Counted(rank);
    job_.Start(rank);
    BeginCalls(rank);
  }

  Before Counted(Rank rank) const {
    Before counted;
    for (Rank peer = 0; peer < job_.ranks(); ++peer) {
      if (peer == rank) continue;
      counted.sent += network_.counters({rank, peer}).sent;
      counted.delivered += network_.counters({peer, rank}).delivered;
    }
    counted.receive_drops = network_.receive_queue_drops(rank);
    return counted;
  }

  // The calls that this rank's caller makes now: as many as it wants to have in flight.
  void MakeCalls(Rank rank) {
    Caller& caller = callers_[rank];
    while (caller.calls.size() < scenario_.calls.size() &&
           caller.calls.size() - caller.ended < scenario_.calls_in_flight) {
      const std::uint64_t index = caller.calls.size();
      if (evidence_.calls[index].by_rank[rank].never) return;
      Instant at = std::max(world_.now(), caller.last_call_at);
      for (const LateCall& late : scenario_.late_calls) {
        if (late.rank == rank && late.call == index) at += late.by;
      }
      caller.last_call_at = at;
      const CallPlan& plan = scenario_.calls[index];
      contribution_.resize(plan.spec.count * ElementBytes(plan.spec.type));
      evidence_.calls[index].values->Fill(rank, contribution_);
      caller.calls.push_back(
          &job_.CallAt(at, rank, plan.spec, contribution_, plan.in_place));
      if (watch_.on_call) {
        JobCall* const call = caller.calls.back();
        world_.Schedule(at, [this, rank, call] {
          if (!call->ended()) watch_.on_call(world_.now(), rank, *call);
        });
      }
    }
  }

  void OnEnd(Rank rank, JobCall& call) {
    CallEvidence& evidence = evidence_.calls[call.index].by_rank[rank];
    OR_CHECK(!evidence.ended);
    evidence.ended = true;
    evidence.report = call.call->report;
    evidence.called_at = call.called_at;
    evidence.ended_at = call.ended_at;
    evidence.resumed_at = job_.resumed_at(rank);
    evidence.result.assign(call.result().begin(), call.result().end());
    if (watch_.on_call) watch_.on_call(world_.now(), rank, call);
    call.in.Overwrite();
    call.out.Overwrite();
    ++callers_[rank].ended;
    MakeCalls(rank);
  }

  // Which call an op number on the wire belongs to; nothing when it is none of ours.
  CallsEvidence* CallOf(std::uint32_t op_low) {
    const auto index = op_low - static_cast<std::uint32_t>(scenario_.job.ops_before) - 1;
    return index < call_of_op_.size() ? &evidence_.calls[call_of_op_[index]] : nullptr;
  }

  void OnPacket(const TraceRecord& record) {
    if (record.kind == TraceKind::kCorrupt) corrupted_.insert(record.packet);
    if (scenario_.restart) NoteOld(record);
    const bool delivered = record.kind == TraceKind::kDeliver && callers_[record.to].started;
    const bool old = !old_.empty() && old_.contains(record.packet);
    const bool corrupted = delivered && !corrupted_.empty() && corrupted_.contains(record.packet);
    if (old && delivered) {
      ++old_delivered_[record.to];
    } else if (corrupted) {
      ++corrupted_delivered_[record.to];
    }
    const bool passes = record.kind == TraceKind::kSend || record.kind == TraceKind::kDeliver;
    if (passes && !old && !corrupted) {
      NoteMessage(record);
    }
    if (watch_.on_packet) watch_.on_packet(record);
  }

  // What ranks of the earlier run send, and copies of it.
  void NoteOld(const TraceRecord& record) {
    const bool sent = record.kind == TraceKind::kSend && !callers_[record.from].started;
    const bool copied = record.kind == TraceKind::kDuplicate && old_.contains(record.copy_of);
    if (sent || copied) old_.insert(record.packet);
  }

  // OPEN and NOT_YET move the instant until which a bounded op may take.
  void NoteMessage(const TraceRecord& record) {
    const auto type = static_cast<wire::MessageType>(std::to_integer<unsigned>(record.bytes[0]) &
                                                     0xfU);
    const bool opens = type == wire::MessageType::kOpen;
    const bool holds = type == wire::MessageType::kNotYet && record.kind == TraceKind::kDeliver;
    wire::Header header;
    if ((!opens && !holds) ||
        wire::ParseHeader(record.bytes, &header) != wire::ParseResult::kOk) {
      return;
    }
    CallsEvidence* const calls = CallOf(header.op_low);
    if (calls == nullptr) return;
    if (opens && record.kind == TraceKind::kSend) {
      const std::uint64_t key = std::uint64_t{record.from} << 32 | header.op_low;
      if (opened_.insert(key).second) calls->by_rank[record.from].admitted_at = record.at;
      return;
    }
    CallEvidence& call = calls->by_rank[record.to];
    if (call.ended) return;
    wire::NotYet not_yet;
    if (opens) {
      // It may be refused for lack of room and come again, so the last one counts.
      call.opened_at = record.at;
    } else if (wire::ParseNotYet(record.bytes.subspan(wire::kHeaderBytes), &not_yet) ==
                   wire::ParseResult::kOk &&
               not_yet.reason == wire::NotYet::Reason::kHeld) {
      call.held_at = record.at;
    }
  }

  void Collect() {
    const Scenario& s = scenario_;
    evidence_.ranks = job_.ranks();
    evidence_.grace = s.job.settings.bounded_bound *
                      static_cast<Duration::rep>(s.job.settings.bounded_fetch_grace_pct) / 100;
    for (const RankClock& clock : s.job.clocks) {
      const Duration grace = evidence_.grace + s.job.turn_cost;
      evidence_.clock_error = std::max(
          evidence_.clock_error, grace * std::abs(clock.ppm) / 900'000 + Duration{1'000});
    }
    evidence_.turn_cost = s.job.turn_cost;
    if (s.job.network.node.uplink_full == UplinkFull::kBusy) {
      evidence_.port_lag = PortLag(s.job.network.node.uplink);
      for (const LinkPlan& link : s.links) {
        evidence_.port_lag = std::max(evidence_.port_lag, PortLag(link.uplink));
      }
    }
    if (s.job.network.conditions.send_busy > 0) evidence_.port_lag += kBusyLag;
    evidence_.conservation_fault = network_.CheckConservation();
    evidence_.in_flight = network_.CountInFlight();
    evidence_.network = network_.totals();
    evidence_.trace_hash = network_.trace_hash();
    evidence_.quiet_from = QuietFrom(s);
    evidence_.ends_within = s.ends_within;
    for (Rank rank = 0; rank < job_.ranks(); ++rank) CollectRank(rank);
    for (Rank rank = 0; rank < job_.ranks(); ++rank) {
      for (const JobCall* call : callers_[rank].calls) {
        CallEvidence& evidence = evidence_.calls[call->index].by_rank[rank];
        if (!call->ended()) evidence.called_at = call->called_at;
        evidence.untouched_after_end = !call->ended() || (call->in.StillOverwritten() &&
                                                          call->out.StillOverwritten());
        evidence.guards_intact = call->in.GuardsIntact() && call->out.GuardsIntact();
      }
    }
  }

  void CollectRank(Rank rank) {
    RankEvidence& e = evidence_.by_rank.emplace_back();
    const Engine& engine = job_.engine(rank);
    for (const CounterRow& row : kCounterRows) {
      e.counters[static_cast<std::size_t>(row.counter)] = engine.counters().Get(row.counter);
    }
    e.port = job_.port(rank).counters();
    for (Rank peer = 0; peer < job_.ranks(); ++peer) {
      if (peer != rank) e.links_sent += engine.group().link(peer).packets_sent;
    }
    const Before& before = callers_[rank].before;
    const Before counted = Counted(rank);
    e.network_sent = counted.sent - before.sent;
    e.network_delivered = counted.delivered - before.delivered;
    e.network_receive_drops = counted.receive_drops - before.receive_drops;
    e.corrupted_delivered = corrupted_delivered_[rank];
    e.old_delivered = old_delivered_[rank];
    e.queue_bytes_left = network_.receive_queue_bytes(rank);
    e.settled = engine.Settled();
    e.cells_staged = engine.cells_staged();
    e.shards_held = engine.shards_held();
  }

  const Scenario& scenario_;
  const Watch& watch_;
  World world_;
  Network network_;
  std::unique_ptr<Job> earlier_;
  Job job_;
  std::vector<Caller> callers_;
  std::vector<std::size_t> call_of_op_;  // by op, counted from the first
  std::vector<std::byte> contribution_;
  std::unordered_set<std::uint64_t> corrupted_;  // by packet
  std::vector<std::uint64_t> corrupted_delivered_ = std::vector<std::uint64_t>(job_.ranks());
  std::unordered_set<std::uint64_t> old_;  // packets of the earlier run
  std::vector<std::uint64_t> old_delivered_ = std::vector<std::uint64_t>(job_.ranks());
  std::unordered_set<std::uint64_t> opened_;  // by (rank, op)
  Evidence evidence_;
};

}  // namespace

Evidence RunScenario(const Scenario& scenario, const Watch& watch) {
  return Runner(scenario, watch).Run();
}

}  // namespace optireduce::sim
