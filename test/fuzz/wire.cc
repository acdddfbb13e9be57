#include <algorithm>
#include <array>
#include <vector>

#include "lib/check.h"
#include "test/fuzz/targets.h"
#include "transport/wire/keys.h"
#include "transport/wire/parse.h"
#include "transport/wire/seal.h"
#include "transport/wire/serialize.h"

namespace optireduce::fuzz {
namespace {

using wire::ParseResult;

// What `write` makes of a parsed body must be the body.
template <typename Message, typename Parse, typename Write>
void ExpectSameBytes(InputBytes body, Parse parse, Write write) {
  Message message;
  if (parse(body, &message) != ParseResult::kOk) return;
  std::vector<std::byte> again(body.size());
  OR_CHECK(write(message, std::span(again)) == body.size());
  OR_CHECK(std::equal(body.begin(), body.end(), again.begin(), again.end()));
}

std::vector<std::byte> WriteSets(const wire::SetsView& sets, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  wire::SetsWriter writer(out, sets.set_bytes);
  for (std::uint32_t run = 0; run < sets.run_count; ++run) {
    OR_CHECK(writer.Append(sets.range(run), sets.set(run)));
  }
  out.resize(writer.bytes_written());
  return out;
}

// The writer joins runs that continue each other; what it has written stays as it is.
void ExpectSameSets(InputBytes body, std::uint32_t ranks) {
  wire::SetsView sets;
  if (wire::ParseSets(body, ranks, &sets) != ParseResult::kOk) return;
  const std::vector<std::byte> once = WriteSets(sets, body.size());
  wire::SetsView joined;
  OR_CHECK(wire::ParseSets(once, ranks, &joined) == ParseResult::kOk);
  OR_CHECK(WriteSets(joined, once.size()) == once);
  const auto cells = [](const wire::SetsView& view) {
    std::uint64_t sum = 0;
    for (std::uint32_t run = 0; run < view.run_count; ++run) sum += view.range(run).count;
    return sum;
  };
  OR_CHECK(cells(sets) == cells(joined));
}

void CheckBodies(InputBytes body, std::uint32_t ranks) {
  ExpectSameBytes<wire::Open>(body, wire::ParseOpen, wire::WriteOpen);
  ExpectSameBytes<wire::ReportBlock>(body, wire::ParseReport, wire::WriteReport);
  ExpectSameBytes<wire::Nack>(body, wire::ParseNack, wire::WriteNack);
  ExpectSameBytes<wire::NotYet>(body, wire::ParseNotYet, wire::WriteNotYet);
  ExpectSameBytes<wire::StatementView>(body, wire::ParseStatement, wire::WriteStatement);
  ExpectSameSets(body, ranks);
  ExpectSameBytes<wire::Probe>(
      body,
      [](InputBytes bytes, wire::Probe* probe) { return wire::ParseProbe(bytes, true, probe); },
      wire::WriteProbe);
}

std::vector<wire::Sealer> MakeSealers() {
  std::array<std::byte, 16> bytes;
  bytes.fill(std::byte{0x5a});
  const wire::PairKey key(bytes);
  constexpr std::uint64_t kCookie = 0x0123456789abcdef;
  std::vector<wire::Sealer> sealers;
  for (const TagMode mode : {TagMode::kHeader, TagMode::kFull, TagMode::kOff}) {
    sealers.emplace_back(key, kCookie, mode, true);
  }
  return sealers;
}

// A sealed packet holds; with any one bit of it changed it does not.
void CheckSeal(wire::Sealer& sealer, InputBytes packet, const wire::Header& header) {
  const OpNumber op = header.op_low;
  const PacketNumber number = header.number_low;
  (void)sealer.Verify(packet, op, number);
  std::vector<std::byte> sealed(packet.begin(), packet.end());
  const auto head = std::span<std::byte>(sealed).first<wire::kHeaderBytes>();
  const auto rest = std::span<const std::byte>(sealed).subspan(wire::kHeaderBytes);
  const bool payload = wire::IsPayloadType(header.type);
  sealer.Seal(head, payload ? InputBytes{} : rest, payload ? rest : InputBytes{}, op, number);
  OR_CHECK(sealer.Verify(sealed, op, number));
  const std::size_t bit = header.tag % (sealed.size() * 8);
  sealed[bit / 8] ^= std::byte{1} << bit % 8;
  wire::Header changed;
  // The type says which part is payload: another type is another packet.
  if (wire::ParseHeader(sealed, &changed) != ParseResult::kOk) return;
  OR_CHECK(!sealer.Verify(sealed, changed.op_low, changed.number_low));
}

}  // namespace

void Wire(InputBytes input) {
  static std::vector<wire::Sealer> sealers = MakeSealers();
  for (wire::Sealer& sealer : sealers) (void)sealer.Verify(input, 1, 1);
  wire::Header header;
  if (wire::ParseHeader(input, &header) != ParseResult::kOk) return;
  std::array<std::byte, wire::kHeaderBytes> again;
  wire::WriteHeader(header, again);
  OR_CHECK(std::equal(again.begin(), again.end(), input.begin()));
  CheckBodies(input.subspan(wire::kHeaderBytes), 1 + header.epoch % kRanksMax);
  for (wire::Sealer& sealer : sealers) CheckSeal(sealer, input, header);
}

}  // namespace optireduce::fuzz
