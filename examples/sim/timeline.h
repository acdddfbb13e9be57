// What happened in a run, as lines for people: calls and their ends, messages decoded, packets that
// the network lost or changed. Packets of one burst share a line.
//
// It only looks: neither the run nor its trace hash changes by it.
#ifndef OPTIREDUCE_EXAMPLES_SIM_TIMELINE_H_
#define OPTIREDUCE_EXAMPLES_SIM_TIMELINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "examples/sim/run.h"
#include "transport/wire/message.h"

namespace optireduce::sim {

class Timeline {
 public:
  // Gives `write` each line, without its end; no more than `lines_max`.
  Timeline(const Scenario& scenario, std::uint64_t lines_max,
           std::function<void(const std::string&)> write);

  // To be called by the run (see Watch).
  void OnPacket(const TraceRecord& record);
  void OnCall(Instant now, Rank rank, const JobCall& call);
  // After the run: the last line, and how many were left out.
  void End();

 private:
  // Cells of one burst of DATA or RESULT.
  struct Burst {
    std::string what;  // all but the cells
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t packets = 0;
  };

  void Line(const std::string& text);
  void EndBurst();
  void AddCell(const std::string& what, std::uint32_t cell);
  std::string OpName(std::uint32_t op_low) const;
  std::string Body(const wire::Header& header, std::span<const std::byte> body) const;

  const std::uint32_t ranks_;
  const std::uint32_t ops_before_low_;
  const std::uint64_t lines_max_;
  std::function<void(const std::string&)> write_;
  std::uint64_t lines_ = 0;
  std::uint64_t left_out_ = 0;
  std::optional<Burst> burst_;
};

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_TIMELINE_H_
