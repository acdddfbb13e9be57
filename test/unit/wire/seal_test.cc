// Keys, tags and the check: published vectors, and that what was changed is refused.
#include "transport/wire/seal.h"

#include <gtest/gtest.h>
#include <nettle/umac.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "test/unit/wire/samples.h"
#include "transport/wire/crc32c.h"
#include "transport/wire/parse.h"
#include "transport/wire/serialize.h"

namespace optireduce::wire {
namespace {

constexpr std::uint64_t kCookie = 0x0123456789abcdef;
constexpr OpNumber kOp = 0x00000005'c1c2c3c4;
constexpr PacketNumber kNumber = 0x00000007'e1e2e3e4;

JobKey SampleJobKey() {
  std::array<std::byte, 32> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return JobKey(bytes);
}

PairKey SamplePairKey(Rank from = 1, Rank to = 2) {
  return DerivePairKey(DeriveGroupKey(SampleJobKey(), 0xa1a2a3a4, 3), from, to);
}

Sealer SampleSealer(TagMode mode, bool check) {
  return Sealer(SamplePairKey(), kCookie, mode, check);
}

std::span<std::byte, kHeaderBytes> HeaderOf(std::vector<std::byte>& packet) {
  return std::span(packet).first<kHeaderBytes>();
}

std::span<const std::byte> RestOf(const std::vector<std::byte>& packet) {
  return std::span(packet).subspan(kHeaderBytes);
}

std::vector<std::byte> Sealed(Sealer& sealer, MessageType type, std::span<const std::byte> rest) {
  auto packet = Packet(SampleHeader(type), rest);
  sealer.Seal(HeaderOf(packet), rest, {}, kOp, kNumber);
  return packet;
}

std::uint64_t TagOf(const std::vector<std::byte>& packet) {
  Header header;
  EXPECT_EQ(ParseHeader(packet, &header), ParseResult::kOk);
  return header.tag;
}

std::uint64_t Umac64(const std::string& key, std::span<const std::byte> nonce,
                     std::span<const std::byte> message) {
  umac64_ctx context;
  umac64_set_key(&context, reinterpret_cast<const std::uint8_t*>(key.data()));
  umac64_set_nonce(&context, nonce.size(), reinterpret_cast<const std::uint8_t*>(nonce.data()));
  umac64_update(&context, message.size(), reinterpret_cast<const std::uint8_t*>(message.data()));
  std::array<std::uint8_t, 8> digest;
  umac64_digest(&context, digest.size(), digest.data());
  std::uint64_t tag = 0;
  for (const std::uint8_t octet : digest) tag = tag << 8 | octet;
  return tag;
}

// RFC 4418, appendix.
TEST(WireUmac, PublishedVectors) {
  const std::string key = "abcdefghijklmnop";
  const auto nonce = Text("bcdefghi");
  const auto tag = [&](const std::string& message) { return Umac64(key, nonce, Text(message)); };
  EXPECT_EQ(tag(""), 0x6E155FAD26900BE1u);
  EXPECT_EQ(tag("aaa"), 0x44B5CB542F220104u);
  EXPECT_EQ(tag(std::string(1 << 10, 'a')), 0x26BF2F5D60118BD9u);
  EXPECT_EQ(tag(std::string(1 << 15, 'a')), 0x27F8EF643B0D118Du);
  EXPECT_EQ(tag("abc"), 0xD4D7B9F6BD4FBFCFu);
  std::string abc;
  for (int i = 0; i < 500; ++i) abc += "abc";
  EXPECT_EQ(tag(abc), 0xD4CF26DDEFD5C01Au);
}

TEST(WireCrc32c, PublishedVectors) {
  EXPECT_EQ(Crc32c({}), 0u);
  EXPECT_EQ(Crc32c(Text("123456789")), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32)), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(Text("56789"), Crc32c(Text("1234"))), 0xE3069283u);
}

TEST(WireKeys, EveryInputMatters) {
  const JobKey job = SampleJobKey();
  const GroupKey group = DeriveGroupKey(job, 7, 3);
  EXPECT_TRUE(group == DeriveGroupKey(job, 7, 3));
  EXPECT_FALSE(group == DeriveGroupKey(job, 8, 3));
  EXPECT_FALSE(group == DeriveGroupKey(job, 7, 4));
  EXPECT_FALSE(group == DeriveGroupKey(MakeJobKey(), 7, 3));
  const PairKey pair = DerivePairKey(group, 1, 2);
  EXPECT_TRUE(pair == DerivePairKey(group, 1, 2));
  EXPECT_FALSE(pair == DerivePairKey(group, 2, 1));
  EXPECT_FALSE(pair == DerivePairKey(group, 1, 3));
  EXPECT_FALSE(pair == DerivePairKey(DeriveGroupKey(job, 7, 4), 1, 2));
  EXPECT_EQ(DeriveCookie(group), DeriveCookie(group));
  EXPECT_NE(DeriveCookie(group), DeriveCookie(DeriveGroupKey(job, 7, 4)));
}

// Ranks of one job may run builds of different days: the derivation is wire format.
TEST(WireKeys, Golden) {
  const GroupKey group = DeriveGroupKey(SampleJobKey(), 0xa1a2a3a4, 3);
  EXPECT_EQ(ToHex(group.bytes()),
            "67e79e31d346e0547187e1932f34bf535218afc0b5caa908e4db493fd05df31a");
  EXPECT_EQ(ToHex(DerivePairKey(group, 1, 2).bytes()), "70a3ae7ccbf4bd18ef47b4821a17747e");
  EXPECT_EQ(DeriveCookie(group), 0x7c3817e852988cebu);
}

TEST(WireKeys, JobKeysDiffer) {
  EXPECT_FALSE(MakeJobKey() == MakeJobKey());
  const JobKey key = MakeJobKey();
  const JobKey copy(key.bytes());
  EXPECT_TRUE(copy == key);
}

TEST(WireKeys, WipedAtTheEnd) {
  alignas(JobKey) std::array<std::byte, sizeof(JobKey)> memory;
  memory.fill(std::byte{0xff});
  JobKey* const key = new (memory.data()) JobKey(SampleJobKey());
  key->~JobKey();
  const std::span<const volatile std::byte> left(memory);
  for (const volatile std::byte& b : left) EXPECT_EQ(std::byte{b}, std::byte{0});
}

TEST(WireSeal, TagIsUmacOfTheWidenedHeader) {
  const auto key = SamplePairKey();
  const std::string key_text(reinterpret_cast<const char*>(key.bytes().data()), 16);
  const auto nonce = FromHex("00000007e1e2e3e4");
  const auto payload = Text("eleven of it");
  auto message = FromHex(
      "12 00 0102 a1a2a3a4 b1b2 0203 00000005c1c2c3c4 d1d2d3d4 00000007e1e2e3e4");
  ASSERT_EQ(message.size(), 32u);

  Sealer header_only = SampleSealer(TagMode::kHeader, false);
  EXPECT_EQ(TagOf(Sealed(header_only, MessageType::kData, payload)),
            Umac64(key_text, nonce, message));

  Sealer full = SampleSealer(TagMode::kFull, false);
  auto whole = message;
  whole.insert(whole.end(), payload.begin(), payload.end());
  EXPECT_EQ(TagOf(Sealed(full, MessageType::kData, payload)), Umac64(key_text, nonce, whole));

  Sealer checked = SampleSealer(TagMode::kHeader, true);
  const std::uint32_t crc = Crc32c(payload);
  for (int shift = 24; shift >= 0; shift -= 8) {
    message.push_back(static_cast<std::byte>(crc >> shift));
  }
  EXPECT_EQ(TagOf(Sealed(checked, MessageType::kData, payload)),
            Umac64(key_text, nonce, message));
}

TEST(WireSeal, OffIsCookieAndCrc) {
  const auto payload = Text("payload");
  Sealer off = SampleSealer(TagMode::kOff, false);
  EXPECT_EQ(TagOf(Sealed(off, MessageType::kData, payload)), kCookie);
  auto packet = Sealed(off, MessageType::kData, payload);
  EXPECT_TRUE(off.Verify(packet, kOp, kNumber));
  Sealer other(SamplePairKey(), kCookie + 1, TagMode::kOff, false);
  EXPECT_FALSE(other.Verify(packet, kOp, kNumber));

  Sealer checked = SampleSealer(TagMode::kOff, true);
  auto bytes = FromHex("12 00 0102 a1a2a3a4 b1b2 0203 00000005c1c2c3c4 d1d2d3d4 00000007e1e2e3e4");
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  EXPECT_EQ(TagOf(Sealed(checked, MessageType::kData, payload)), kCookie ^ Crc32c(bytes));
}

class WireSealModes : public testing::TestWithParam<std::tuple<TagMode, bool, MessageType>> {
 protected:
  TagMode mode() const { return std::get<0>(GetParam()); }
  bool check() const { return std::get<1>(GetParam()); }
  MessageType type() const { return std::get<2>(GetParam()); }
  // Whether a change behind the header shows.
  bool covers_rest() const {
    if (check() || mode() == TagMode::kFull) return true;
    return mode() == TagMode::kHeader && !IsPayloadType(type());
  }
  // Whether a change of the header shows: not with the bare cookie.
  bool covers_header() const { return mode() != TagMode::kOff || check(); }
};

TEST_P(WireSealModes, FlippedBitsAreRefused) {
  Sealer signer = SampleSealer(mode(), check());
  Sealer verifier = SampleSealer(mode(), check());
  std::vector<std::byte> rest(100);
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = static_cast<std::byte>(i * 7);
  auto packet = Sealed(signer, type(), rest);
  ASSERT_TRUE(verifier.Verify(packet, kOp, kNumber));

  for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
    // A flip of the type may move the packet to a kind that is covered otherwise: the header
    // shows it. The numbers' low halves are compared with the caller's in all modes.
    const std::size_t at = bit / 8;
    const bool number = (at >= 12 && at < 16) || (at >= 20 && at < 24);
    const bool tag = at >= kTagOffset && at < kHeaderBytes;
    const bool refused = at < kHeaderBytes ? covers_header() || number || tag : covers_rest();
    packet[at] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_EQ(verifier.Verify(packet, kOp, kNumber), !refused) << bit;
    packet[at] ^= static_cast<std::byte>(1u << bit % 8);
  }
  for (int bit = 0; bit < 64; ++bit) {
    const bool refused = covers_header() || bit < 32;
    EXPECT_EQ(verifier.Verify(packet, kOp ^ (1ull << bit), kNumber), !refused) << bit;
    EXPECT_EQ(verifier.Verify(packet, kOp, kNumber ^ (1ull << bit)), !refused) << bit;
  }
  EXPECT_TRUE(verifier.Verify(packet, kOp, kNumber));
}

TEST_P(WireSealModes, ChangedLengthIsRefused) {
  Sealer sealer = SampleSealer(mode(), check());
  const std::vector<std::byte> rest(40);
  auto packet = Sealed(sealer, type(), rest);
  const std::span<const std::byte> whole(packet);
  EXPECT_EQ(sealer.Verify(whole.first(packet.size() - 1), kOp, kNumber), !covers_rest());
  EXPECT_FALSE(sealer.Verify(whole.first(kHeaderBytes - 1), kOp, kNumber));
  EXPECT_FALSE(sealer.Verify({}, kOp, kNumber));
  packet.push_back(std::byte{0});
  EXPECT_EQ(sealer.Verify(packet, kOp, kNumber), !covers_rest());
}

TEST_P(WireSealModes, PiecesDoNotMatter) {
  Sealer sealer = SampleSealer(mode(), check());
  std::vector<std::byte> rest(1440);
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = static_cast<std::byte>(i % 251);
  const auto packet = Sealed(sealer, type(), rest);
  for (const std::size_t cut : {0u, 1u, 31u, 32u, 1023u, 1440u}) {
    auto header = Packet(SampleHeader(type()), {});
    sealer.Seal(HeaderOf(header), std::span(rest).first(cut), std::span(rest).subspan(cut), kOp,
                kNumber);
    header.insert(header.end(), rest.begin(), rest.end());
    EXPECT_EQ(header, packet) << cut;
    EXPECT_TRUE(sealer.Verify(header, kOp, kNumber));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WireSealModes,
    testing::Combine(testing::Values(TagMode::kHeader, TagMode::kFull, TagMode::kOff),
                     testing::Bool(),
                     testing::Values(MessageType::kData, MessageType::kResult, MessageType::kOpen,
                                     MessageType::kNack)));

TEST(WireSeal, OtherKeysAreRefused) {
  Sealer sealer = SampleSealer(TagMode::kHeader, true);
  const auto packet = Sealed(sealer, MessageType::kData, Text("payload"));
  Sealer reverse(SamplePairKey(2, 1), kCookie, TagMode::kHeader, true);
  EXPECT_FALSE(reverse.Verify(packet, kOp, kNumber));
  Sealer third(SamplePairKey(1, 3), kCookie, TagMode::kHeader, true);
  EXPECT_FALSE(third.Verify(packet, kOp, kNumber));
  Sealer unchecked = SampleSealer(TagMode::kHeader, false);
  EXPECT_FALSE(unchecked.Verify(packet, kOp, kNumber));
}

// A sealer that goes from number to number keeps the cipher block of the last one: its tags must
// be those of a sealer that starts afresh, in whatever order the numbers come.
TEST(WireSeal, StateDoesNotShowInTags) {
  const std::vector<PacketNumber> numbers = {0,   1,   2,   3,    254,   255,   256, 257, 255, 255,
                                             256, 254, 0xffffffff, 0x100000000, ~0ull - 1, ~0ull,
                                             0,   1,   7,   6,    5,     8,     9};
  Sealer sealer = SampleSealer(TagMode::kFull, false);
  for (const PacketNumber number : numbers) {
    Header header = SampleHeader(MessageType::kReport);
    header.number_low = static_cast<std::uint32_t>(number);
    auto packet = Packet(header, Text("body"));
    Sealer fresh = SampleSealer(TagMode::kFull, false);
    fresh.Seal(HeaderOf(packet), RestOf(packet), {}, kOp, number);
    EXPECT_TRUE(sealer.Verify(packet, kOp, number)) << number;
    EXPECT_FALSE(sealer.Verify(packet, kOp, number + (1ull << 32))) << number;
  }
}

TEST(WireSeal, SuperPacket) {
  Sealer signer = SampleSealer(TagMode::kHeader, true);
  Sealer verifier = SampleSealer(TagMode::kHeader, true);
  std::vector<std::vector<std::byte>> segments;
  for (std::uint32_t i = 0; i < 44; ++i) {
    Header header = SampleHeader(MessageType::kData);
    header.number_low = i;
    header.cell = i;
    auto packet = Packet(header, std::vector<std::byte>(1440, static_cast<std::byte>(i)));
    signer.Seal(HeaderOf(packet), {}, RestOf(packet), kOp, (1ull << 40) + i);
    segments.push_back(std::move(packet));
  }
  for (std::uint32_t i = 44; i-- > 0;) {  // any order, some missing
    if (i % 5 == 0) continue;
    EXPECT_TRUE(verifier.Verify(segments[i], kOp, (1ull << 40) + i));
    EXPECT_FALSE(verifier.Verify(segments[i], kOp, (1ull << 41) + i));
  }
}

TEST(WireSeal, Movable) {
  Sealer sealer = SampleSealer(TagMode::kHeader, false);
  const auto packet = Sealed(sealer, MessageType::kData, Text("payload"));
  Sealer moved(std::move(sealer));
  EXPECT_TRUE(moved.Verify(packet, kOp, kNumber));
}

TEST(WireSealDeathTest, NumbersMustWidenTheHeader) {
  Sealer sealer = SampleSealer(TagMode::kHeader, false);
  auto packet = Packet(SampleHeader(MessageType::kData), Text("x"));
  EXPECT_DEATH(sealer.Seal(HeaderOf(packet), RestOf(packet), {}, kOp + 1, kNumber), "");
  EXPECT_DEATH(sealer.Seal(HeaderOf(packet), RestOf(packet), {}, kOp, kNumber + 1), "");
}

}  // namespace
}  // namespace optireduce::wire
