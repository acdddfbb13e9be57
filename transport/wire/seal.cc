#include "transport/wire/seal.h"

#include <nettle/umac.h>

#include <array>
#include <cstring>

#include "lib/check.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/crc32c.h"

namespace optireduce::wire {
namespace {

// The header as the tag sees it: its first 24 bytes with both numbers at their full width. 32
// bytes, which is the step UMAC hashes in.
constexpr std::size_t kPseudoHeaderBytes = 32;
using PseudoHeader = std::array<std::byte, kPseudoHeaderBytes>;

PseudoHeader Widened(std::span<const std::byte, kHeaderBytes> header, OpNumber op,
                     PacketNumber number) {
  PseudoHeader out;
  std::memcpy(out.data(), header.data(), 12);
  StoreBig(op, out.data() + 12);
  std::memcpy(out.data() + 20, header.data() + 16, 4);
  StoreBig(number, out.data() + 24);
  return out;
}

bool WidensHeader(std::span<const std::byte, kHeaderBytes> header, OpNumber op,
                  PacketNumber number) {
  return LoadBig<std::uint32_t>(header.data() + 12) == static_cast<std::uint32_t>(op) &&
         LoadBig<std::uint32_t>(header.data() + 20) == static_cast<std::uint32_t>(number);
}

bool HasPayload(std::span<const std::byte, kHeaderBytes> header) {
  return IsPayloadType(static_cast<MessageType>(std::to_integer<unsigned>(header[0]) & 0x0f));
}

}  // namespace

// UMAC with the number that it takes as its nonce next.
struct Sealer::Mac {
  explicit Mac(const PairKey& key) {
    umac64_set_key(&context, reinterpret_cast<const std::uint8_t*>(key.bytes().data()));
    SetNonce(0);
  }
  Mac(const Mac&) = delete;
  Mac& operator=(const Mac&) = delete;
  ~Mac() { Wipe(std::as_writable_bytes(std::span(&context, 1))); }

  void SetNonce(PacketNumber number) {
    std::array<std::byte, 8> nonce;
    StoreBig(number, nonce.data());
    umac64_set_nonce(&context, nonce.size(), reinterpret_cast<const std::uint8_t*>(nonce.data()));
    next = number;
  }
  void Update(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;  // its pointer may be null, which the library would copy from
    umac64_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  }
  std::uint64_t Digest() {
    std::array<std::byte, UMAC64_DIGEST_SIZE> digest;
    umac64_digest(&context, digest.size(), reinterpret_cast<std::uint8_t*>(digest.data()));
    ++next;  // as the library does with its nonce
    return LoadBig<std::uint64_t>(digest.data());
  }

  umac64_ctx context;
  PacketNumber next = 0;
};

Sealer::Sealer(const PairKey& key, std::uint64_t cookie, TagMode mode, bool check)
    : mac_(mode == TagMode::kOff ? nullptr : std::make_unique<Mac>(key)),
      cookie_(cookie),
      mode_(mode),
      check_(check) {}

Sealer::~Sealer() = default;
Sealer::Sealer(Sealer&&) noexcept = default;
Sealer& Sealer::operator=(Sealer&&) noexcept = default;

std::uint64_t Sealer::Tag(std::span<const std::byte, kHeaderBytes> header,
                          std::span<const std::byte> body, std::span<const std::byte> payload,
                          OpNumber op, PacketNumber number) {
  OR_CHECK(WidensHeader(header, op, number));
  const PseudoHeader pseudo_header = Widened(header, op, number);
  if (mode_ == TagMode::kOff) {
    if (!check_) return cookie_;
    return cookie_ ^ Crc32c(payload, Crc32c(body, Crc32c(pseudo_header)));
  }
  // Setting the nonce anew throws away the half of its AES block that the next number needs.
  if (mac_->next != number) mac_->SetNonce(number);
  mac_->Update(pseudo_header);
  if (mode_ == TagMode::kFull || !HasPayload(header)) {
    mac_->Update(body);
    mac_->Update(payload);
  } else if (check_) {
    std::array<std::byte, 4> crc;
    StoreBig(Crc32c(payload, Crc32c(body)), crc.data());
    mac_->Update(crc);
  }
  return mac_->Digest();
}

void Sealer::Seal(std::span<std::byte, kHeaderBytes> header, std::span<const std::byte> body,
                  std::span<const std::byte> payload, OpNumber op, PacketNumber number) {
  StoreBig(Tag(header, body, payload, op, number), header.data() + kTagOffset);
}

bool Sealer::Verify(std::span<const std::byte> packet, OpNumber op, PacketNumber number) {
  if (packet.size() < kHeaderBytes) return false;
  const auto header = packet.first<kHeaderBytes>();
  if (!WidensHeader(header, op, number)) return false;
  const std::uint64_t tag = LoadBig<std::uint64_t>(header.data() + kTagOffset);
  // One comparison of whole words: its duration does not depend on where they differ.
  return (tag ^ Tag(header, packet.subspan(kHeaderBytes), {}, op, number)) == 0;
}

}  // namespace optireduce::wire
