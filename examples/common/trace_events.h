// Spans and instants as JSON trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing
// load. A process of the trace is a rank; spans of one lane nest.
//
// One thread. It keeps a bounded number of events, and says in the text how many it left out.
#ifndef OPTIREDUCE_EXAMPLES_COMMON_TRACE_EVENTS_H_
#define OPTIREDUCE_EXAMPLES_COMMON_TRACE_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace optireduce {

class TraceEvents {
 public:
  explicit TraceEvents(std::size_t events_max) : events_max_(events_max) {}

  void NameRank(std::uint64_t rank, std::string_view name) {
    Add("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + std::to_string(rank) +
        ", \"tid\": 0, \"args\": {\"name\": " + Quoted(name) + "}}");
  }
  void Span(std::uint64_t rank, std::uint64_t lane, std::string_view name, double start_us,
            double duration_us) {
    Add("{\"ph\": \"X\", \"name\": " + Quoted(name) + Place(rank, lane, start_us) +
        ", \"dur\": " + Micros(duration_us) + "}");
  }
  void Mark(std::uint64_t rank, std::string_view name, double at_us) {
    Add("{\"ph\": \"i\", \"s\": \"p\", \"name\": " + Quoted(name) + Place(rank, 0, at_us) + "}");
  }

  std::string Json() const {
    return "{\"displayTimeUnit\": \"ms\",\n \"otherData\": {\"events_left_out\": " +
           std::to_string(left_out_) + "},\n \"traceEvents\": [" + events_ + "\n]}\n";
  }

 private:
  void Add(const std::string& event) {
    if (count_ >= events_max_) {
      ++left_out_;
      return;
    }
    events_ += (count_++ == 0 ? "\n  " : ",\n  ") + event;
  }

  static std::string Micros(double us) {
    char text[48];
    std::snprintf(text, sizeof text, "%.3f", us);
    return text;
  }

  static std::string Place(std::uint64_t rank, std::uint64_t lane, double at_us) {
    return ", \"pid\": " + std::to_string(rank) + ", \"tid\": " + std::to_string(lane) +
           ", \"ts\": " + Micros(at_us);
  }

  static std::string Quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    return out + '"';
  }

  const std::size_t events_max_;
  std::size_t count_ = 0;
  std::uint64_t left_out_ = 0;
  std::string events_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_EXAMPLES_COMMON_TRACE_EVENTS_H_
