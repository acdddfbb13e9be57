#include "transport/control/frame.h"

#include <algorithm>

#include "transport/wire/byte_order.h"

namespace optireduce::control {
namespace {

using wire::LoadBig;
using wire::StoreBig;

class Writer {
 public:
  template <std::unsigned_integral T>
  Writer& Number(T value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    StoreBig(value, bytes_.data() + bytes_.size() - sizeof(T));
    return *this;
  }
  Writer& Raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Writer& Text(std::string_view text, std::size_t bytes_max) {
    const std::string_view cut = text.substr(0, bytes_max);
    Number(static_cast<std::uint16_t>(cut.size()));
    const auto* first = reinterpret_cast<const std::byte*>(cut.data());
    return Raw({first, cut.size()});
  }
  Bytes Take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Reads from the front; the first read past the end, or value out of range, spoils all.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral T>
  T Number() {
    const std::span<const std::byte> bytes = Raw(sizeof(T));
    return ok_ ? LoadBig<T>(bytes.data()) : T{0};
  }
  bool Flag() {
    const auto value = Number<std::uint8_t>();
    if (value > 1) ok_ = false;
    return value == 1;
  }
  std::span<const std::byte> Raw(std::size_t bytes) {
    if (!ok_ || bytes > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::span<const std::byte> out = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return out;
  }
  template <std::size_t N>
  void Fill(std::array<std::byte, N>& out) {
    const std::span<const std::byte> bytes = Raw(N);
    std::copy(bytes.begin(), bytes.end(), out.begin());
  }
  // Control characters of strangers reach neither logs nor terminals.
  std::string Text(std::size_t bytes_max, bool many_lines = false) {
    const auto size = Number<std::uint16_t>();
    if (size > bytes_max) ok_ = false;
    const std::span<const std::byte> bytes = Raw(size);
    std::string out;
    for (const std::byte b : bytes) {
      const char c = static_cast<char>(b);
      const bool plain = (static_cast<unsigned char>(c) >= 0x20 && c != '\x7f') ||
                         (many_lines && (c == '\n' || c == '\t'));
      out += plain ? c : '?';
    }
    return out;
  }
  Rank RankNumber() {
    const auto rank = Number<std::uint32_t>();
    if (rank >= kRanksMax) ok_ = false;
    return rank;
  }
  Code FailureCode() {
    const auto value = Number<std::uint8_t>();
    if (value == 0) ok_ = false;
    // A newer peer's code that we do not know still is a failure.
    if (value > static_cast<std::uint8_t>(Code::kInternal)) return Code::kInternal;
    return static_cast<Code>(value);
  }
  std::size_t rest_bytes() const { return rest_.size(); }
  bool ok() const { return ok_; }
  bool Done() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

std::uint8_t Octet(bool flag) { return flag ? 1 : 0; }
std::uint8_t Octet(Code code) { return static_cast<std::uint8_t>(code); }

// Whole lines only: half a line would show as a difference that is none.
std::string_view CutLines(std::string_view text) {
  if (text.size() <= kConfigBytesMax) return text;
  const std::size_t end = text.rfind('\n', kConfigBytesMax - 1);
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

constexpr std::size_t kMemberBytesMin = 2 + 2 + 8;

bool IsList(FrameType type) { return type == FrameType::kWelcome || type == FrameType::kShared; }

}  // namespace

Bytes FrameOf(FrameType type, std::span<const std::byte> body) {
  Writer writer;
  writer.Number(kFrameMagic).Number(kControlVersion).Number(static_cast<std::uint8_t>(type));
  writer.Number(std::uint16_t{0}).Number(static_cast<std::uint32_t>(body.size())).Raw(body);
  return writer.Take();
}

Bytes Serialize(const Hello& hello) {
  Writer writer;
  writer.Raw(hello.nonce).Number(hello.rank).Number(hello.world_size);
  return writer.Number(Octet(hello.has_key)).Take();
}

Bytes Serialize(const Challenge& challenge) {
  Writer writer;
  return writer.Raw(challenge.nonce).Number(Octet(challenge.has_key)).Raw(challenge.proof).Take();
}

Bytes Serialize(const Claim& claim) {
  Writer writer;
  writer.Number(claim.rank).Number(claim.world_size).Number(claim.pid).Number(claim.config_hash);
  writer.Text(claim.version, kVersionBytesMax).Text(claim.host, kHostBytesMax);
  writer.Text(claim.endpoint, kEndpointBytesMax);
  return writer.Text(CutLines(claim.config_text), kConfigBytesMax).Take();
}

Bytes Serialize(const Refused& refused) {
  Writer writer;
  writer.Number(Octet(refused.retry)).Number(Octet(refused.code));
  return writer.Text(refused.reason, kReasonBytesMax).Take();
}

Bytes Serialize(const Waiting& waiting) {
  Writer writer;
  const std::size_t listed = std::min(waiting.listed.size(), kMissingListedMax);
  writer.Number(waiting.missing).Number(static_cast<std::uint16_t>(listed));
  for (std::size_t i = 0; i < listed; ++i) writer.Number(waiting.listed[i]);
  return writer.Take();
}

Bytes Serialize(const Welcome& welcome) {
  Writer writer;
  writer.Number(welcome.group_id).Number(static_cast<std::uint8_t>(welcome.job_key.size()));
  writer.Raw(welcome.job_key).Number(static_cast<std::uint32_t>(welcome.members.size()));
  for (const Member& member : welcome.members) {
    writer.Text(member.host, kHostBytesMax).Text(member.data_endpoint, kEndpointBytesMax);
    writer.Number(member.pid);
  }
  return writer.Take();
}

Bytes Serialize(const Lost& lost) {
  Writer writer;
  return writer.Number(lost.rank).Text(lost.reason, kReasonBytesMax).Take();
}

Bytes Serialize(const Change& change) { return Writer().Number(change.packet_bytes).Take(); }

Bytes Serialize(const Prepare& prepare) {
  return Writer().Number(prepare.id).Number(prepare.change.packet_bytes).Take();
}

Bytes Serialize(const Ready& ready) {
  return Writer().Number(ready.id).Number(ready.newest).Take();
}

Bytes Serialize(const Decision& decision) {
  return Writer()
      .Number(decision.id)
      .Number(Octet(decision.commit))
      .Number(decision.first)
      .Take();
}

Bytes Serialize(const Left& left) {
  Writer writer;
  return writer.Number(left.rank).Take();
}

Bytes Serialize(const Abort& abort) {
  Writer writer;
  writer.Number(abort.origin).Number(Octet(abort.code));
  return writer.Text(abort.text, kReasonBytesMax).Take();
}

void AppendProof(Bytes& body, const Proof& proof) {
  body.insert(body.end(), proof.begin(), proof.end());
}

std::optional<Proven> SplitProof(std::span<const std::byte> body_and_proof) {
  if (body_and_proof.size() < kProofBytes) return std::nullopt;
  Proven out{body_and_proof.first(body_and_proof.size() - kProofBytes), {}};
  const auto proof = body_and_proof.last(kProofBytes);
  std::copy(proof.begin(), proof.end(), out.proof.begin());
  return out;
}

std::optional<Hello> ParseHello(std::span<const std::byte> body) {
  Reader reader(body);
  Hello out;
  reader.Fill(out.nonce);
  out.rank = reader.RankNumber();
  out.world_size = reader.Number<std::uint32_t>();
  out.has_key = reader.Flag();
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Challenge> ParseChallenge(std::span<const std::byte> body) {
  Reader reader(body);
  Challenge out;
  reader.Fill(out.nonce);
  out.has_key = reader.Flag();
  reader.Fill(out.proof);
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Claim> ParseClaim(std::span<const std::byte> body) {
  Reader reader(body);
  Claim out;
  out.rank = reader.RankNumber();
  out.world_size = reader.Number<std::uint32_t>();
  out.pid = reader.Number<std::uint64_t>();
  out.config_hash = reader.Number<std::uint64_t>();
  out.version = reader.Text(kVersionBytesMax);
  out.host = reader.Text(kHostBytesMax);
  out.endpoint = reader.Text(kEndpointBytesMax);
  out.config_text = reader.Text(kConfigBytesMax, true);
  if (!reader.Done() || out.world_size == 0 || out.world_size > kRanksMax) return std::nullopt;
  if (out.rank >= out.world_size) return std::nullopt;
  return out;
}

std::optional<Refused> ParseRefused(std::span<const std::byte> body) {
  Reader reader(body);
  Refused out;
  out.retry = reader.Flag();
  out.code = reader.FailureCode();
  out.reason = reader.Text(kReasonBytesMax, true);
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Waiting> ParseWaiting(std::span<const std::byte> body) {
  Reader reader(body);
  Waiting out;
  out.missing = reader.Number<std::uint32_t>();
  const auto listed = reader.Number<std::uint16_t>();
  if (listed > kMissingListedMax || listed > out.missing) return std::nullopt;
  for (std::uint16_t i = 0; i < listed; ++i) out.listed.push_back(reader.RankNumber());
  if (!reader.Done() || out.missing > kRanksMax) return std::nullopt;
  return out;
}

std::optional<Welcome> ParseWelcome(std::span<const std::byte> body) {
  Reader reader(body);
  Welcome out;
  out.group_id = reader.Number<std::uint32_t>();
  const std::span<const std::byte> key = reader.Raw(reader.Number<std::uint8_t>());
  out.job_key.assign(key.begin(), key.end());
  const auto count = reader.Number<std::uint32_t>();
  if (!reader.ok() || count == 0 || count > kRanksMax) return std::nullopt;
  if (reader.rest_bytes() / kMemberBytesMin < count) return std::nullopt;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    Member member;
    member.host = reader.Text(kHostBytesMax);
    member.data_endpoint = reader.Text(kEndpointBytesMax);
    member.pid = reader.Number<std::uint64_t>();
    out.members.push_back(std::move(member));
  }
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Lost> ParseLost(std::span<const std::byte> body) {
  Reader reader(body);
  Lost out;
  out.rank = reader.RankNumber();
  out.reason = reader.Text(kReasonBytesMax, true);
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Left> ParseLeft(std::span<const std::byte> body) {
  Reader reader(body);
  const Left out{reader.RankNumber()};
  if (!reader.Done()) return std::nullopt;
  return out;
}

Bytes SerializeShared(std::span<const Bytes> shares) {
  Writer writer;
  writer.Number(static_cast<std::uint32_t>(shares.size()));
  for (const Bytes& share : shares) {
    writer.Number(static_cast<std::uint16_t>(share.size())).Raw(share);
  }
  return writer.Take();
}

std::optional<std::vector<Bytes>> ParseShared(std::span<const std::byte> body) {
  Reader reader(body);
  const auto count = reader.Number<std::uint32_t>();
  if (count > kRanksMax || count * sizeof(std::uint16_t) > reader.rest_bytes()) {
    return std::nullopt;
  }
  std::vector<Bytes> out;
  out.reserve(count);
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto bytes = reader.Number<std::uint16_t>();
    if (bytes > kShareBytesMax) return std::nullopt;
    const std::span<const std::byte> share = reader.Raw(bytes);
    out.emplace_back(share.begin(), share.end());
  }
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Abort> ParseAbort(std::span<const std::byte> body) {
  Reader reader(body);
  Abort out;
  out.origin = reader.RankNumber();
  out.code = reader.FailureCode();
  out.text = reader.Text(kReasonBytesMax, true);
  if (!reader.Done()) return std::nullopt;
  return out;
}

// A packet that has no room for a header is none.
std::optional<Change> ParseChange(std::span<const std::byte> body) {
  Reader reader(body);
  const Change out{reader.Number<std::uint32_t>()};
  if (!reader.Done() || out.packet_bytes < kPacketBytesLeast) return std::nullopt;
  return out;
}

std::optional<Prepare> ParsePrepare(std::span<const std::byte> body) {
  Reader reader(body);
  Prepare out;
  out.id = reader.Number<std::uint32_t>();
  out.change.packet_bytes = reader.Number<std::uint32_t>();
  if (!reader.Done() || out.change.packet_bytes < kPacketBytesLeast) return std::nullopt;
  return out;
}

std::optional<Ready> ParseReady(std::span<const std::byte> body) {
  Reader reader(body);
  Ready out;
  out.id = reader.Number<std::uint32_t>();
  out.newest = reader.Number<std::uint64_t>();
  if (!reader.Done()) return std::nullopt;
  return out;
}

std::optional<Decision> ParseDecision(std::span<const std::byte> body) {
  Reader reader(body);
  Decision out;
  out.id = reader.Number<std::uint32_t>();
  out.commit = reader.Flag();
  out.first = reader.Number<std::uint64_t>();
  if (!reader.Done()) return std::nullopt;
  return out;
}

void FrameReader::Feed(std::span<const std::byte> bytes) {
  if (fault_ == Fault::kNone) held_.insert(held_.end(), bytes.begin(), bytes.end());
}

// Judges what is there of a header, byte by byte: a stranger that speaks first and then waits for
// an answer is known by its first bytes.
bool FrameReader::CheckHeader() {
  std::array<std::byte, 4> magic;
  StoreBig(kFrameMagic, magic.data());
  const std::size_t known = std::min(held_.size(), magic.size());
  if (!std::equal(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(known),
                  magic.begin())) {
    fault_ = Fault::kMagic;
    return false;
  }
  if (held_.size() < kFrameHeaderBytes) return false;
  const auto type = std::to_integer<std::uint8_t>(held_[5]);
  // REFUSED is for every version.
  const bool refused = type == static_cast<std::uint8_t>(FrameType::kRefused);
  if (held_[4] != std::byte{kControlVersion} && !refused) {
    foreign_version_ = std::to_integer<std::uint8_t>(held_[4]);
    fault_ = Fault::kVersion;
  } else if (type < static_cast<std::uint8_t>(FrameType::kHello) ||
             type > static_cast<std::uint8_t>(FrameType::kDecision) ||
             LoadBig<std::uint16_t>(held_.data() + 6) != 0) {
    fault_ = Fault::kType;
  } else {
    const auto body_bytes = LoadBig<std::uint32_t>(held_.data() + 8);
    const bool list = IsList(static_cast<FrameType>(type));
    if (body_bytes > (list ? list_bytes_max_ : kBodyBytesMax)) fault_ = Fault::kLength;
  }
  return fault_ == Fault::kNone;
}

std::optional<Frame> FrameReader::Next() {
  if (fault_ != Fault::kNone) return std::nullopt;
  if (!CheckHeader()) {
    if (fault_ != Fault::kNone) held_ = {};
    return std::nullopt;
  }
  const std::size_t whole = kFrameHeaderBytes + LoadBig<std::uint32_t>(held_.data() + 8);
  if (held_.size() < whole) return std::nullopt;
  Frame out;
  out.type = static_cast<FrameType>(held_[5]);
  const auto end = held_.begin() + static_cast<std::ptrdiff_t>(whole);
  out.body.assign(held_.begin() + static_cast<std::ptrdiff_t>(kFrameHeaderBytes), end);
  held_.erase(held_.begin(), end);
  return out;
}

std::string_view FaultName(FrameReader::Fault fault) {
  switch (fault) {
    case FrameReader::Fault::kNone:
      return "no fault";
    case FrameReader::Fault::kMagic:
      return "it does not speak the OptiReduce control protocol";
    case FrameReader::Fault::kVersion:
      return "it speaks another version of the control protocol";
    case FrameReader::Fault::kType:
      return "it sent a frame of no known type";
    case FrameReader::Fault::kLength:
      return "it sent an oversize frame";
  }
  return "unknown fault";
}

}  // namespace optireduce::control
