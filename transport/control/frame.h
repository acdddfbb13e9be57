// Control frames, byte by byte: what master and ranks tell each other over TCP. Pure: no socket,
// no clock. Network byte order.
//
// Frame: magic 4, version 1, type 1, zero 2, body length 4, body. Header and REFUSED keep their
// form in every version, so that an older or newer peer can still be told why it may not join.
// Nothing here trusts a length: a reader never holds more than what has really come in, and refuses
// a frame by its header alone.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_FRAME_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ids.h"
#include "optireduce/status.h"
#include "transport/control/changeover.h"

namespace optireduce::control {

inline constexpr std::uint32_t kFrameMagic = 0x4f504354;  // "OPCT"
inline constexpr std::uint8_t kControlVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 12;
// Of every frame but WELCOME and SHARED, which list up to kRanksMax members.
inline constexpr std::size_t kBodyBytesMax = 4096;
inline constexpr std::size_t kListBytesMax = 1 << 20;

enum class FrameType : std::uint8_t {
  kHello = 1,      // rank → master: who, and a nonce
  kChallenge = 2,  // master → rank: a nonce, and the proof that the master has the key
  kClaim = 3,      // rank → master: all about the rank, and the proof that it has the key
  kRefused = 4,    // master → rank: why not
  kWaiting = 5,    // master → rank: who is missing
  kWelcome = 6,    // master → rank: all members; from here on the group lives
  kPing = 7,       // both: nothing but a sign of life
  kBye = 8,        // both: a clean end follows
  kLost = 9,       // master → rank: the connection of a rank broke
  kLeft = 10,      // master → rank: a rank said bye
  kAbort = 11,     // rank → master: a cause; master → all: the first cause
  kShare = 12,     // rank → master: what it has for all, at most kShareBytesMax bytes
  kShared = 13,    // master → all: what each rank had
  kPropose = 14,   // rank → master: a change that all should make
  kPrepare = 15,   // master → all: open no further op, and answer
  kReady = 16,     // rank → master: the answer
  kDecision = 17,  // master → all: from which op on the change holds, or that it does not
};

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
using Nonce = std::array<std::byte, kNonceBytes>;
using Proof = std::array<std::byte, kProofBytes>;

// Longest texts; longer ones are cut when written and refused when read.
inline constexpr std::size_t kVersionBytesMax = 64;
inline constexpr std::size_t kHostBytesMax = 255;
inline constexpr std::size_t kEndpointBytesMax = 96;
inline constexpr std::size_t kConfigBytesMax = 3072;
inline constexpr std::size_t kReasonBytesMax = 3072;
inline constexpr std::size_t kMissingListedMax = 32;
inline constexpr std::size_t kShareBytesMax = 512;

struct Hello {
  Nonce nonce{};
  Rank rank = 0;
  std::uint32_t world_size = 0;
  bool has_key = false;
};

struct Challenge {
  Nonce nonce{};
  bool has_key = false;
  Proof proof{};  // zero without a key
};

struct Claim {
  Rank rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t pid = 0;
  std::uint64_t config_hash = 0;
  std::string version;
  std::string host;
  std::string endpoint;     // of the data plane
  std::string config_text;  // "path=value" lines
};

struct Refused {
  bool retry = false;  // the same claim may succeed later
  Code code = Code::kInternal;
  std::string reason;
};

struct Waiting {
  std::uint32_t missing = 0;
  std::vector<Rank> listed;  // the first kMissingListedMax of them
};

struct Member {
  std::string host;
  std::string data_endpoint;  // "ip:port", "[ip]:port"
  std::uint64_t pid = 0;
  friend bool operator==(const Member&, const Member&) = default;
};

struct Welcome {
  std::uint32_t group_id = 0;
  std::vector<std::byte> job_key;  // empty where a key file gives it
  std::vector<Member> members;     // by rank
};

struct Lost {
  Rank rank = 0;
  std::string reason;
};

struct Left {
  Rank rank = 0;
};

struct Abort {
  Rank origin = 0;
  Code code = Code::kInternal;
  std::string text;
};

using Bytes = std::vector<std::byte>;

// Whole frames, header included.
Bytes FrameOf(FrameType type, std::span<const std::byte> body = {});
// Bodies. Those of claim and welcome end with `kProofBytes` more (see AppendProof).
Bytes Serialize(const Hello& hello);
Bytes Serialize(const Challenge& challenge);
Bytes Serialize(const Claim& claim);
Bytes Serialize(const Refused& refused);
Bytes Serialize(const Waiting& waiting);
Bytes Serialize(const Welcome& welcome);
Bytes Serialize(const Lost& lost);
Bytes Serialize(const Left& left);
Bytes Serialize(const Abort& abort);
Bytes Serialize(const Change& change);
Bytes Serialize(const Prepare& prepare);
Bytes Serialize(const Ready& ready);
Bytes Serialize(const Decision& decision);
// By rank; each at most kShareBytesMax long.
Bytes SerializeShared(std::span<const Bytes> shares);
void AppendProof(Bytes& body, const Proof& proof);

// A body that ends with a proof, taken apart; nothing when it is too short for one.
struct Proven {
  std::span<const std::byte> body;
  Proof proof;
};
std::optional<Proven> SplitProof(std::span<const std::byte> body_and_proof);

// Nothing unless `body` is exactly one well-formed body of that kind. Texts come out printable.
std::optional<Hello> ParseHello(std::span<const std::byte> body);
std::optional<Challenge> ParseChallenge(std::span<const std::byte> body);
std::optional<Claim> ParseClaim(std::span<const std::byte> body);
std::optional<Refused> ParseRefused(std::span<const std::byte> body);
std::optional<Waiting> ParseWaiting(std::span<const std::byte> body);
std::optional<Welcome> ParseWelcome(std::span<const std::byte> body);
std::optional<Lost> ParseLost(std::span<const std::byte> body);
std::optional<Left> ParseLeft(std::span<const std::byte> body);
std::optional<Abort> ParseAbort(std::span<const std::byte> body);
std::optional<std::vector<Bytes>> ParseShared(std::span<const std::byte> body);
std::optional<Change> ParseChange(std::span<const std::byte> body);
std::optional<Prepare> ParsePrepare(std::span<const std::byte> body);
std::optional<Ready> ParseReady(std::span<const std::byte> body);
std::optional<Decision> ParseDecision(std::span<const std::byte> body);

struct Frame {
  FrameType type{};
  Bytes body;
};

// Cuts a stream of bytes into frames. Not thread-safe. After a fault it yields nothing more.
class FrameReader {
 public:
  enum class Fault : std::uint8_t { kNone, kMagic, kVersion, kType, kLength };

  // `list_bytes_max`, of WELCOME and SHARED, is 0 on the master, whom nobody sends these.
  explicit FrameReader(std::size_t list_bytes_max) : list_bytes_max_(list_bytes_max) {}

  // Takes what came in. Between two calls, Next() must have been called until it gave nothing; so
  // what is held is at most one frame and one feed.
  void Feed(std::span<const std::byte> bytes);
  std::optional<Frame> Next();
  Fault fault() const { return fault_; }
  // What the other side spoke, when the fault is kVersion.
  std::uint8_t foreign_version() const { return foreign_version_; }
  std::size_t held_bytes() const { return held_.size(); }

 private:
  bool CheckHeader();

  std::size_t list_bytes_max_;
  Bytes held_;
  Fault fault_ = Fault::kNone;
  std::uint8_t foreign_version_ = 0;
};

std::string_view FaultName(FrameReader::Fault fault);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_FRAME_H_
