#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "lib/check.h"
#include "test/fuzz/input.h"
#include "test/fuzz/targets.h"
#include "transport/control/frame.h"
#include "transport/control/proof.h"
#include "transport/control/roster.h"

namespace optireduce::fuzz {
namespace {

using control::FrameReader;
using control::FrameType;

struct Read {
  std::vector<control::Frame> frames;
  FrameReader::Fault fault = FrameReader::Fault::kNone;
};

Read ReadInPieces(InputBytes stream, std::size_t list_bytes_max, std::size_t piece_bytes) {
  FrameReader reader(list_bytes_max);
  Read out;
  Input rest(stream);
  while (!rest.empty()) {
    const InputBytes piece = rest.Raw(piece_bytes);
    reader.Feed(piece);
    while (auto frame = reader.Next()) {
      const bool list =
          frame->type == FrameType::kWelcome || frame->type == FrameType::kShared;
      OR_CHECK(frame->body.size() <= (list ? list_bytes_max : control::kBodyBytesMax));
      out.frames.push_back(std::move(*frame));
    }
    OR_CHECK(reader.held_bytes() <= control::kFrameHeaderBytes + piece.size() +
                                        std::max(list_bytes_max, control::kBodyBytesMax));
  }
  out.fault = reader.fault();
  return out;
}

// What was understood of a body is understood in the same way once more.
template <typename Body>
void ExpectStable(InputBytes body, std::optional<Body> (*parse)(InputBytes)) {
  const std::optional<Body> first = parse(body);
  if (!first) return;
  const control::Bytes written = control::Serialize(*first);
  const std::optional<Body> second = parse(written);
  OR_CHECK(second.has_value());
  OR_CHECK(control::Serialize(*second) == written);
}

// A roster of two, of which one claims what came in.
void Judge(const control::Claim& claim) {
  control::Roster roster(2);
  control::Claim own;
  own.world_size = 2;
  own.version = "1";
  own.endpoint = "127.0.0.1:1";
  own.config_text = "mode=exact\n";
  roster.Put(own);
  roster.Put(claim);
  (void)roster.Agreement();
  (void)roster.Addresses();
  (void)roster.Missing();
  if (roster.Complete()) OR_CHECK(roster.Members().size() == 2);
}

void CheckClaim(InputBytes body) {
  ExpectStable(body, control::ParseClaim);
  if (const auto claim = control::ParseClaim(body)) Judge(*claim);
  const auto proven = control::SplitProof(body);
  if (!proven) return;
  std::array<std::byte, 32> key;
  key.fill(std::byte{0x17});
  OR_CHECK(!control::ProofHolds(wire::JobKey(key), control::Proves::kClaim, {}, {}, proven->body,
                                proven->proof));
  if (const auto claim = control::ParseClaim(proven->body)) Judge(*claim);
}

void CheckBody(const control::Frame& frame) {
  switch (frame.type) {
    case FrameType::kHello:
      return ExpectStable(frame.body, control::ParseHello);
    case FrameType::kChallenge:
      return ExpectStable(frame.body, control::ParseChallenge);
    case FrameType::kClaim:
      return CheckClaim(frame.body);
    case FrameType::kRefused:
      return ExpectStable(frame.body, control::ParseRefused);
    case FrameType::kWaiting:
      return ExpectStable(frame.body, control::ParseWaiting);
    case FrameType::kWelcome:
      if (const auto proven = control::SplitProof(frame.body)) {
        ExpectStable(proven->body, control::ParseWelcome);
      }
      return ExpectStable(frame.body, control::ParseWelcome);
    case FrameType::kLost:
      return ExpectStable(frame.body, control::ParseLost);
    case FrameType::kLeft:
      return ExpectStable(frame.body, control::ParseLeft);
    case FrameType::kAbort:
      return ExpectStable(frame.body, control::ParseAbort);
    case FrameType::kPropose:
      return ExpectStable(frame.body, control::ParseChange);
    case FrameType::kPrepare:
      return ExpectStable(frame.body, control::ParsePrepare);
    case FrameType::kReady:
      return ExpectStable(frame.body, control::ParseReady);
    case FrameType::kDecision:
      return ExpectStable(frame.body, control::ParseDecision);
    case FrameType::kShared:
      if (const auto shares = control::ParseShared(frame.body)) {
        OR_CHECK(control::SerializeShared(*shares) == frame.body);
      }
      return;
    default:  // no body, or any
      return;
  }
}

}  // namespace

void Control(InputBytes input) {
  Input choices(input);
  const std::uint8_t choice = choices.Number();
  const std::size_t list_bytes_max = (choice & 1) != 0 ? control::kListBytesMax : 0;
  const std::size_t piece_bytes = 1 + std::size_t{choice} / 2;
  const InputBytes stream = choices.rest();
  const Read whole = ReadInPieces(stream, list_bytes_max, stream.size());
  const Read pieces = ReadInPieces(stream, list_bytes_max, piece_bytes);
  OR_CHECK(whole.fault == pieces.fault);
  OR_CHECK(whole.frames.size() == pieces.frames.size());
  for (std::size_t i = 0; i < whole.frames.size(); ++i) {
    OR_CHECK(whole.frames[i].type == pieces.frames[i].type);
    OR_CHECK(whole.frames[i].body == pieces.frames[i].body);
    CheckBody(whole.frames[i]);
  }
}

}  // namespace optireduce::fuzz
