#include "examples/sim/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "examples/sim/swarm.h"
#include "lib/values.h"

namespace optireduce::sim {
namespace {

using Outcome = Report::Outcome;

std::string Hex(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

double Micros(Duration d) { return static_cast<double>(d.count()) * 1e-3; }

// Writes objects and lists; commas are its business.
class Json {
 public:
  void Open(std::string_view name, char bracket) {
    Key(name);
    text_ += bracket;
    fresh_ = true;
  }
  void Close(char bracket) {
    text_ += bracket;
    fresh_ = false;
  }
  void Add(std::string_view name, std::uint64_t value) {
    Key(name);
    text_ += std::to_string(value);
  }
  void Add(std::string_view name, bool value) {
    Key(name);
    text_ += value ? "true" : "false";
  }
  void Add(std::string_view name, double value) {
    Key(name);
    text_ += std::isfinite(value) ? FormatNumber(value) : "null";
  }
  void Add(std::string_view name, std::string_view value) {
    Key(name);
    Quote(value);
  }
  const std::string& text() const { return text_; }

 private:
  void Key(std::string_view name) {
    if (!fresh_) text_ += ", ";
    fresh_ = false;
    if (name.empty()) return;
    Quote(name);
    text_ += ": ";
  }
  void Quote(std::string_view value) {
    text_ += '"';
    for (const char c : value) {
      if (static_cast<unsigned char>(c) < 0x20) {
        text_ += ' ';
        continue;
      }
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }

  std::string text_;
  bool fresh_ = true;
};

std::uint64_t Sum(const Evidence& evidence, Counter counter) {
  std::uint64_t sum = 0;
  for (const RankEvidence& rank : evidence.by_rank) sum += rank.count(counter);
  return sum;
}

void AddError(const CallsEvidence& calls, const CallEvidence& call, Summary* summary) {
  const bool random = calls.plan.values == ValueKind::kRandom;
  const std::uint64_t count = calls.plan.spec.count;
  std::uint64_t i = 0;
  while (true) {
    if (!random) i = calls.values->NextUnlikeAll(call.result, i);
    if (i >= count) return;
    // Elements unlike all come in runs; of random ones each is looked at.
    for (const std::uint64_t end = std::min<std::uint64_t>(i + 1024, count); i < end; ++i) {
      const double exact = calls.values->Exact(i);
      const double error = std::fabs(calls.values->ValueOf(call.result, i) - exact);
      summary->max_abs_error = std::max(summary->max_abs_error, error);
      const double size = exact == 0 ? 1 : std::fabs(exact);
      summary->max_rel_error = std::max(summary->max_rel_error, error / size);
    }
  }
}

std::string_view NameOf(const CallEvidence& call) {
  if (!call.ended) return "not ended";
  switch (call.report.outcome) {
    case Outcome::kAgreed: return "agreed";
    case Outcome::kDivergent: return "divergent";
    case Outcome::kFailed: return "failed";
  }
  return "?";
}

void AddDrops(const Evidence& evidence, Json* json) {
  json->Open("dropped", '{');
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    json->Add(Name(static_cast<DropReason>(i)), evidence.network.dropped[i]);
  }
  json->Close('}');
}

void AddCounters(const Evidence& evidence, Json* json) {
  json->Open("counters", '[');
  for (const RankEvidence& rank : evidence.by_rank) {
    json->Open("", '{');
    for (const CounterRow& row : kCounterRows) json->Add(row.name, rank.count(row.counter));
    json->Close('}');
  }
  json->Close(']');
}

std::string CallLine(const CallsEvidence& calls, std::size_t index) {
  Duration least = Duration::max();
  Duration most{};
  std::uint64_t lost = 0;
  std::array<std::uint64_t, 4> ends{};
  for (const CallEvidence& call : calls.by_rank) {
    least = std::min(least, call.report.elapsed);
    most = std::max(most, call.report.elapsed);
    lost = std::max(lost, call.report.lost_entries);
    ++ends[call.ended ? static_cast<std::size_t>(call.report.outcome) : 3];
  }
  const CallSpec& spec = calls.plan.spec;
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(),
                "%5zu  %9llu %-8s %-7s %-7s  %10.1f %10.1f  %6llu %9llu %6llu  %12llu\n", index,
                static_cast<unsigned long long>(spec.count),
                std::string(optireduce::Name(spec.type)).c_str(),
                std::string(optireduce::Name(spec.reduce)).c_str(),
                std::string(optireduce::Name(spec.mode)).c_str(), Micros(least), Micros(most),
                static_cast<unsigned long long>(ends[0]), static_cast<unsigned long long>(ends[1]),
                static_cast<unsigned long long>(ends[2] + ends[3]),
                static_cast<unsigned long long>(lost));
  return line.data();
}

}  // namespace

Summary Summarize(const Evidence& evidence) {
  Summary s;
  s.same_bits = CheckSameBits(evidence).empty();
  for (const CallsEvidence& calls : evidence.calls) {
    std::uint64_t late = 0;
    std::uint64_t lost = 0;
    for (const CallEvidence& call : calls.by_rank) {
      late = std::max(late, call.report.late_entries);
      lost = std::max(lost, call.report.lost_entries);
      if (!call.ended) {
        ++s.not_ended;
        continue;
      }
      s.divergent += call.report.outcome == Outcome::kDivergent ? 1 : 0;
      s.failed += call.report.outcome == Outcome::kFailed ? 1 : 0;
      if (call.report.outcome == Outcome::kAgreed) AddError(calls, call, &s);
    }
    s.entries += calls.plan.spec.count * calls.by_rank.size();
    s.late_entries += late;
    s.lost_entries += lost;
  }
  return s;
}

std::string TextOf(const Scenario& scenario, const Evidence& evidence, const Findings& findings) {
  const Summary s = Summarize(evidence);
  std::string text =
      " call   elements type     op      mode        min us     max us  agreed divergent failed"
      "  entries lost\n";
  for (std::size_t i = 0; i < evidence.calls.size(); ++i) text += CallLine(evidence.calls[i], i);
  const auto number = [&text](std::string_view name, const std::string& value) {
    text += std::string(name) + ": " + value + "\n";
  };
  text += "\n";
  number("ranks", std::to_string(scenario.job.ranks));
  number("seed", std::to_string(scenario.job.seed));
  number("virtual time", evidence.ended_at == kNever
                             ? "not all calls ended"
                             : FormatDuration(evidence.ended_at - Instant{}));
  number("trace_hash", Hex(evidence.trace_hash));
  number("same_bits", s.same_bits ? "yes" : "no");
  number("max error against the exact sum",
         FormatNumber(s.max_abs_error) + " (relative " + FormatNumber(s.max_rel_error) + ")");
  number("late_entries", std::to_string(s.late_entries) + " of " + std::to_string(s.entries));
  number("lost_entries", std::to_string(s.lost_entries) + " of " + std::to_string(s.entries));
  number("divergent", std::to_string(s.divergent));
  number("packets", std::to_string(evidence.network.sent) + " sent, " +
                        std::to_string(evidence.network.dropped_total()) + " dropped, " +
                        std::to_string(Sum(evidence, Counter::kDataRepeated) +
                                       Sum(evidence, Counter::kResultRepeated)) +
                        " repeated, " + std::to_string(Sum(evidence, Counter::kDuplicate)) +
                        " in vain");
  for (const std::string& finding : findings) number("WRONG", finding);
  if (findings.empty()) text += "all checkers are content\n";
  return text;
}

std::string JsonOf(const Scenario& scenario, const Evidence& evidence, const Findings& findings) {
  const Summary s = Summarize(evidence);
  Json json;
  json.Open("", '{');
  json.Add("schema", std::string_view("optireduce-sim/1"));
  json.Add("ranks", std::uint64_t{scenario.job.ranks});
  json.Add("seed", scenario.job.seed);
  json.Add("trace_hash", std::string_view(Hex(evidence.trace_hash)));
  json.Add("same_bits", s.same_bits);
  json.Add("max_abs_err", s.max_abs_error);
  json.Add("max_rel_err", s.max_rel_error);
  json.Add("entries", s.entries);
  json.Add("late_entries", s.late_entries);
  json.Add("lost_entries", s.lost_entries);
  json.Add("divergent", s.divergent);
  json.Add("failed", s.failed);
  json.Add("not_ended", s.not_ended);
  json.Add("packets_sent", evidence.network.sent);
  json.Add("packets_delivered", evidence.network.delivered);
  json.Add("packets_duplicated", evidence.network.duplicated);
  json.Add("packets_corrupted", evidence.network.corrupted);
  AddDrops(evidence, &json);
  json.Open("calls", '[');
  for (const CallsEvidence& calls : evidence.calls) {
    json.Open("", '{');
    json.Add("bytes", calls.plan.spec.count * calls.values->element_bytes());
    json.Add("count", calls.plan.spec.count);
    json.Add("type", optireduce::Name(calls.plan.spec.type));
    json.Add("op", optireduce::Name(calls.plan.spec.reduce));
    json.Add("mode", optireduce::Name(calls.plan.spec.mode));
    json.Add("in_place", calls.plan.in_place);
    json.Open("ranks", '[');
    for (const CallEvidence& call : calls.by_rank) {
      json.Open("", '{');
      json.Add("outcome", NameOf(call));
      json.Add("elapsed_us", Micros(call.report.elapsed));
      json.Add("after_deadline_us", Micros(call.report.after_deadline));
      json.Add("late_entries", call.report.late_entries);
      json.Add("lost_entries", call.report.lost_entries);
      json.Add("missing_elements", call.report.missing_elements);
      json.Close('}');
    }
    json.Close(']');
    json.Close('}');
  }
  json.Close(']');
  AddCounters(evidence, &json);
  json.Open("findings", '[');
  for (const std::string& finding : findings) json.Add("", std::string_view(finding));
  json.Close(']');
  json.Close('}');
  return json.text() + "\n";
}

void AddCalls(const Evidence& evidence, TraceEvents* events) {
  const auto micros = [](Instant at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1e3;
  };
  for (Rank rank = 0; rank < evidence.ranks; ++rank) {
    std::vector<Instant> free_from;  // by lane
    for (std::size_t i = 0; i < evidence.calls.size(); ++i) {
      const CallEvidence& call = evidence.calls[i].by_rank[rank];
      if (call.called_at == kNever || call.ended_at == kNever) continue;
      std::size_t lane = 0;
      while (lane < free_from.size() && free_from[lane] > call.called_at) ++lane;
      if (lane == free_from.size()) free_from.emplace_back();
      free_from[lane] = call.ended_at;
      events->Span(rank, lane, "call " + std::to_string(i), micros(call.called_at),
                   micros(call.ended_at) - micros(call.called_at));
      if (call.admitted_at != kNever && call.admitted_at >= call.called_at &&
          call.admitted_at <= call.ended_at) {
        events->Span(rank, lane, "reduce " + std::to_string(i), micros(call.admitted_at),
                     micros(call.ended_at) - micros(call.admitted_at));
      }
    }
  }
}

std::string JsonOfSwarm(std::uint64_t first, std::uint64_t last, const FailingSeeds& failing) {
  Json json;
  json.Open("", '{');
  json.Add("schema", std::string_view("optireduce-sim-swarm/1"));
  json.Add("first", first);
  json.Add("last", last);
  json.Open("failing", '[');
  for (const auto& [seed, findings] : failing) {
    json.Open("", '{');
    json.Add("seed", seed);
    json.Add("replay", std::string_view(ReplayCommand(seed)));
    json.Open("findings", '[');
    for (const std::string& finding : findings) json.Add("", std::string_view(finding));
    json.Close(']');
    json.Close('}');
  }
  json.Close(']');
  json.Close('}');
  return json.text() + "\n";
}

}  // namespace optireduce::sim
