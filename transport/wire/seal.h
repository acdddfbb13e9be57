// Tags packets, and verifies tags, of one ordered pair of ranks.
//
// What the tag is, by `security.tag` and `security.check`, which all ranks of a group share:
//   header   UMAC-64 (RFC 4418) under the pair's key, nonce = packet number, over the header with
//            op and packet number in 64 bits, and over the body of every message but DATA and
//            RESULT. With check: also over the CRC-32C of their payload.
//   full     the same over the whole of every packet; check has nothing to add.
//   off      the group's cookie; with check XOR the CRC-32C of the whole packet in its low half,
//            numbers in 64 bits: no protection against who sees packets, only against who does not.
//
// **A packet number never comes twice under one key with different bytes**, at the side that signs:
// a repeated nonce gives the hash key away. The caller counts per ordered pair, repeats included,
// and an epoch brings new keys. Verifying takes any number; it tells nothing but yes or no.
//
// A Sealer belongs to one thread: tagging and verifying change scratch state inside. It holds
// about 2.6 KiB for the MAC (of which a header tag touches some 600 bytes), made once, wiped at the
// end; nothing allocates after construction. Consecutive packet numbers share one AES block
// between two packets, so a super-packet costs no more than its packets.
#ifndef OPTIREDUCE_TRANSPORT_WIRE_SEAL_H_
#define OPTIREDUCE_TRANSPORT_WIRE_SEAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/ids.h"
#include "lib/settings.h"
#include "transport/wire/keys.h"
#include "transport/wire/message.h"

namespace optireduce::wire {

class Sealer {
 public:
  // `key` is that of the direction the packets travel, at both ends.
  Sealer(const PairKey& key, std::uint64_t cookie, TagMode mode, bool check);
  ~Sealer();
  Sealer(Sealer&&) noexcept;
  Sealer& operator=(Sealer&&) noexcept;

  // The tag of the packet that consists of `header` (as written by WriteHeader; the tag field is
  // not looked at), `body` and `payload`, which may both be empty: the bytes behind the header in
  // two pieces. The low halves of `op` and `number` must be those of the header.
  std::uint64_t Tag(std::span<const std::byte, kHeaderBytes> header,
                    std::span<const std::byte> body, std::span<const std::byte> payload,
                    OpNumber op, PacketNumber number);

  // Puts the tag into the header.
  void Seal(std::span<std::byte, kHeaderBytes> header, std::span<const std::byte> body,
            std::span<const std::byte> payload, OpNumber op, PacketNumber number);

  // True where the packet's tag is the one it should have. False for whatever is too short, and
  // where `op` or `number` is not a widening of the header's own.
  bool Verify(std::span<const std::byte> packet, OpNumber op, PacketNumber number);

 private:
  struct Mac;

  std::unique_ptr<Mac> mac_;  // null: tag = off
  std::uint64_t cookie_;
  TagMode mode_;
  bool check_;
};

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TRANSPORT_WIRE_SEAL_H_
