// Writes headers and bodies of messages (wire/message.h) into memory that the caller gives.
//
// Free functions without state: any thread. Nothing allocates. A span too small for what is to be
// written, or a value that the strict parser (wire/parse.h) would refuse, is a bug of the caller
// and fails an OR_CHECK. Tags are wire/seal.h's business: WriteHeader only puts `header.tag` down.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_SERIALIZE_H_
#define OPTIREDUCE_TRANSPORT_WIRE_SERIALIZE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/wire/message.h"

namespace optireduce::wire {

void WriteHeader(const Header& header, std::span<std::byte, kHeaderBytes> out);

// Bodies: each goes right behind the header. All return the bytes written.
std::size_t WriteReport(const ReportBlock& report, std::span<std::byte> out);
std::size_t WriteOpen(const Open& open, std::span<std::byte> out);
std::size_t WriteNack(const Nack& nack, std::span<std::byte> out);
std::size_t WriteNotYet(const NotYet& not_yet, std::span<std::byte> out);
// An answer, or, without its filling, a probe.
std::size_t WriteProbe(const Probe& probe, std::span<std::byte> out);
std::size_t WriteStatement(const StatementView& statement, std::span<std::byte> out);

// Fills the body of one SETS message, run by run, until the span is full.
class SetsWriter {
 public:
  // `out` must outlive the writer; `set_bytes` is SetBytes(ranks).
  SetsWriter(std::span<std::byte> out, std::uint32_t set_bytes);

  // Appends a run; one that continues the last run with the same set extends it instead. False,
  // with nothing written, when there is no room: send this body and begin another.
  bool Append(CellRange range, std::span<const std::byte> set);

  std::uint32_t run_count() const { return run_count_; }
  // The length of the body so far. A body without runs must not be sent.
  std::size_t bytes_written() const;

 private:
  std::byte* run(std::uint32_t index) const;

  std::span<std::byte> out_;
  std::uint32_t set_bytes_;
  std::uint32_t run_count_ = 0;
};

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_SERIALIZE_H_
