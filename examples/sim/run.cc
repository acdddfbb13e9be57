#include "examples/sim/run.h"

#include <algorithm>
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

class Runner {
 public:
  Runner(const Scenario& scenario, const Watch& watch)
      : scenario_(scenario), watch_(watch), job_(scenario.job), callers_(scenario.job.ranks) {
    for (const CallPlan& plan : scenario.calls) {
      CallsEvidence calls;
      calls.plan = plan;
      calls.ops = OpsOf(scenario, plan.spec);
      calls.values = std::make_shared<CallValues>(plan.values, plan.spec.type, plan.spec.reduce,
                                                  scenario.job.ranks, plan.values_seed);
      calls.by_rank.resize(scenario.job.ranks);
      for (std::uint64_t i = 0; i < calls.ops; ++i) call_of_op_.push_back(evidence_.calls.size());
      evidence_.calls.push_back(std::move(calls));
    }
  }

  Evidence Run() {
    Prepare();
    const Instant limit = QuietFrom(scenario_) + scenario_.ends_within;
    const bool ended = job_.RunUntilEnded(limit);
    if (ended) evidence_.ended_at = job_.world().now();
    job_.RunUntilSettled(job_.world().now() + kSettleWithin);
    job_.world().RunUntil(job_.world().now() + kDrain);
    Collect();
    return std::move(evidence_);
  }

 private:
  struct Caller {
    std::vector<JobCall*> calls;
    std::uint64_t ended = 0;
    Instant last_call_at{};
  };

  void Prepare() {
    job_.network().SetTraceSink([this](const TraceRecord& record) { OnPacket(record); });
    job_.on_end = [this](Rank rank, JobCall& call) { OnEnd(rank, call); };
    for (const PausePlan& pause : scenario_.pauses) {
      job_.PauseAt(pause.begin, pause.end, pause.rank);
    }
    for (const PartitionPlan& partition : scenario_.partitions) {
      job_.network().Partition(partition.pairs, partition.begin, partition.end);
    }
    if (scenario_.heal_at != kNever) {
      job_.world().Schedule(scenario_.heal_at, [this] { job_.network().Heal(); });
    }
    if (watch_.on_start) watch_.on_start(job_);
    for (Rank rank = 0; rank < job_.ranks(); ++rank) {
      callers_[rank].last_call_at = Instant{} + Duration{1};
      if (rank < scenario_.start_after.size()) {
        callers_[rank].last_call_at += scenario_.start_after[rank];
      }
      MakeCalls(rank);
    }
  }

  // The calls that this rank's caller makes now: as many as it wants to have in flight.
  void MakeCalls(Rank rank) {
    Caller& caller = callers_[rank];
    while (caller.calls.size() < scenario_.calls.size() &&
           caller.calls.size() - caller.ended < scenario_.calls_in_flight) {
      const std::uint64_t index = caller.calls.size();
      Instant at = std::max(job_.world().now(), caller.last_call_at);
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
        job_.world().Schedule(at, [this, rank, call] {
          if (!call->ended()) watch_.on_call(job_.world().now(), rank, *call);
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
    if (watch_.on_call) watch_.on_call(job_.world().now(), rank, call);
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
    const bool corrupted = record.kind == TraceKind::kDeliver && !corrupted_.empty() &&
                           corrupted_.contains(record.packet);
    if (corrupted) ++corrupted_delivered_[record.to];
    if (!corrupted && (record.kind == TraceKind::kSend || record.kind == TraceKind::kDeliver)) {
      NoteMessage(record);
    }
    if (watch_.on_packet) watch_.on_packet(record);
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
    evidence_.turn_cost = s.job.turn_cost;
    const LinkConfig& uplink = s.job.network.node.uplink;
    if (uplink.rate_bits_per_s > 0) {
      evidence_.port_lag = Duration{static_cast<Duration::rep>(
          (uplink.queue_bytes_max + kPortBytes) * 8 * 1'000'000 /
          std::max<std::uint64_t>(uplink.rate_bits_per_s / 1000, 1))};
    }
    evidence_.conservation_fault = job_.network().CheckConservation();
    evidence_.in_flight = job_.network().CountInFlight();
    evidence_.network = job_.network().totals();
    evidence_.trace_hash = job_.network().trace_hash();
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
      if (peer == rank) continue;
      e.links_sent += engine.group().link(peer).packets_sent;
      e.network_sent += job_.network().counters({rank, peer}).sent;
      e.network_delivered += job_.network().counters({peer, rank}).delivered;
    }
    e.network_receive_drops = job_.network().receive_queue_drops(rank);
    e.corrupted_delivered = corrupted_delivered_[rank];
    e.queue_bytes_left = job_.network().receive_queue_bytes(rank);
    e.settled = engine.Settled();
    e.cells_staged = engine.cells_staged();
    e.shards_held = engine.shards_held();
  }

  const Scenario& scenario_;
  const Watch& watch_;
  Job job_;
  std::vector<Caller> callers_;
  std::vector<std::size_t> call_of_op_;  // by op, counted from the first
  std::vector<std::byte> contribution_;
  std::unordered_set<std::uint64_t> corrupted_;  // by packet
  std::vector<std::uint64_t> corrupted_delivered_ = std::vector<std::uint64_t>(job_.ranks());
  std::unordered_set<std::uint64_t> opened_;  // by (rank, op)
  Evidence evidence_;
};

}  // namespace

Evidence RunScenario(const Scenario& scenario, const Watch& watch) {
  return Runner(scenario, watch).Run();
}

}  // namespace optireduce::sim
