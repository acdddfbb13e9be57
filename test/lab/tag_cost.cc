// What the tag of a packet costs: nanoseconds and bytes a second, on one core, of the MACs that
// could make it, and of what the library itself does per packet (wire/seal.h) by its options.
// docs/decisions/0001 says which was chosen. A program of Google Benchmark: --help lists its flags.
#include <benchmark/benchmark.h>
#include <nettle/aes.h>
#include <nettle/gcm.h>
#include <nettle/poly1305.h>
#include <nettle/umac.h>
#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "transport/wire/crc32c.h"
#include "transport/wire/keys.h"
#include "transport/wire/seal.h"
#include "transport/wire/serialize.h"

namespace optireduce::lab {
namespace {

constexpr std::array<std::uint8_t, 32> kKey{1, 2, 3, 4, 5, 6, 7, 8};

// Packets of other bytes and at other places each time, within what the cache holds.
class Packets {
 public:
  explicit Packets(std::size_t bytes) : bytes_(bytes), memory_(bytes + kPlaces * kStep) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<std::uint8_t>(i * 167 >> 3);
    }
  }
  const std::uint8_t* Next() { return memory_.data() + (++number_ % kPlaces) * kStep; }
  std::uint64_t number() const { return number_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kPlaces = 32;
  static constexpr std::size_t kStep = 64;
  const std::size_t bytes_;
  std::uint64_t number_ = 0;
  std::vector<std::uint8_t> memory_;
};

// `tag` gets a packet and the number to use as nonce, in big-endian bytes.
template <typename Tag>
void Run(benchmark::State& state, Tag tag) {
  Packets packets(static_cast<std::size_t>(state.range(0)));
  std::array<std::uint8_t, 8> digest{};
  for (auto unused : state) {
    const std::uint8_t* const packet = packets.Next();
    std::array<std::uint8_t, 16> nonce{};
    for (std::size_t i = 0; i < 8; ++i) {
      nonce[8 + i] = static_cast<std::uint8_t>(packets.number() >> (56 - 8 * i));
    }
    tag(packet, packets.bytes(), nonce, digest);
    benchmark::DoNotOptimize(digest);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

using Nonce = std::array<std::uint8_t, 16>;
using Digest = std::array<std::uint8_t, 8>;

void Umac64(benchmark::State& state) {
  umac64_ctx context;
  umac64_set_key(&context, kKey.data());
  Run(state, [&](const std::uint8_t* packet, std::size_t bytes, const Nonce& nonce, Digest& out) {
    umac64_set_nonce(&context, 8, nonce.data() + 8);
    umac64_update(&context, bytes, packet);
    umac64_digest(&context, out.size(), out.data());
  });
}

void Gmac(benchmark::State& state) {
  gcm_aes128_ctx context;
  gcm_aes128_set_key(&context, kKey.data());
  Run(state, [&](const std::uint8_t* packet, std::size_t bytes, const Nonce& nonce, Digest& out) {
    gcm_aes128_set_iv(&context, GCM_IV_SIZE, nonce.data() + 4);
    gcm_aes128_update(&context, bytes, packet);
    gcm_aes128_digest(&context, out.size(), out.data());
  });
}

void Poly1305Aes(benchmark::State& state) {
  poly1305_aes_ctx context;
  poly1305_aes_set_key(&context, kKey.data());
  Run(state, [&](const std::uint8_t* packet, std::size_t bytes, const Nonce& nonce, Digest& out) {
    poly1305_aes_set_nonce(&context, nonce.data());
    poly1305_aes_update(&context, bytes, packet);
    poly1305_aes_digest(&context, out.size(), out.data());
  });
}

void SipHash24(benchmark::State& state) {
  Run(state, [](const std::uint8_t* packet, std::size_t bytes, const Nonce&, Digest& out) {
    crypto_shorthash(out.data(), packet, bytes, kKey.data());
  });
}

void Blake2b(benchmark::State& state) {
  Run(state, [](const std::uint8_t* packet, std::size_t bytes, const Nonce&, Digest& out) {
    std::array<std::uint8_t, crypto_generichash_BYTES_MIN> digest;
    crypto_generichash(digest.data(), digest.size(), packet, bytes, kKey.data(), kKey.size());
    std::memcpy(out.data(), digest.data(), out.size());
  });
}

void Crc32cAlone(benchmark::State& state) {
  Run(state, [](const std::uint8_t* packet, std::size_t bytes, const Nonce&, Digest& out) {
    const std::uint32_t crc = wire::Crc32c(std::as_bytes(std::span(packet, bytes)));
    std::memcpy(out.data(), &crc, sizeof(crc));
  });
}

wire::Sealer MakeSealer(TagMode mode, bool check) {
  const wire::JobKey job_key(std::as_bytes(std::span(kKey)));
  const auto group_key = wire::DeriveGroupKey(job_key, 1, 1);
  return {wire::DerivePairKey(group_key, Rank{0}, Rank{1}), wire::DeriveCookie(group_key), mode,
          check};
}

// A packet of DATA; its payload fills it to the size that is measured.
wire::Header HeaderOf(std::uint64_t number) {
  wire::Header header;
  header.type = wire::MessageType::kData;
  header.number_low = static_cast<std::uint32_t>(number);
  return header;
}

// What the sender of a packet does: writes the header, and the tag into it.
void Seal(benchmark::State& state, TagMode mode, bool check) {
  wire::Sealer sealer = MakeSealer(mode, check);
  Packets packets(static_cast<std::size_t>(state.range(0)) - wire::kHeaderBytes);
  std::array<std::byte, wire::kHeaderBytes> header;
  for (auto unused : state) {
    const std::uint8_t* const payload = packets.Next();
    wire::WriteHeader(HeaderOf(packets.number()), header);
    sealer.Seal(header, {}, std::as_bytes(std::span(payload, packets.bytes())), OpNumber{0},
                packets.number());
    benchmark::DoNotOptimize(header);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// What its receiver does, with packets in the order in which they were sent.
void Verify(benchmark::State& state, TagMode mode, bool check) {
  constexpr std::uint64_t kPackets = 32;
  wire::Sealer sealer = MakeSealer(mode, check);
  std::vector<std::vector<std::byte>> packets;
  for (std::uint64_t number = 0; number < kPackets; ++number) {
    auto& packet = packets.emplace_back(static_cast<std::size_t>(state.range(0)), std::byte{42});
    const auto header = std::span(packet).first<wire::kHeaderBytes>();
    wire::WriteHeader(HeaderOf(number), header);
    sealer.Seal(header, {}, std::span(packet).subspan(wire::kHeaderBytes), OpNumber{0}, number);
  }
  std::uint64_t number = 0;
  for (auto unused : state) {
    if (!sealer.Verify(packets[number], OpNumber{0}, number)) {
      state.SkipWithError("a right packet was refused");
      break;
    }
    number = (number + 1) % kPackets;
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Bytes of a packet: a small one, and about what fills a path MTU of 1500 and of 9000.
const std::vector<std::int64_t> kSizes{64, 1440, 8936};


BENCHMARK(Umac64)->ArgsProduct({kSizes});
BENCHMARK(Gmac)->ArgsProduct({kSizes});
BENCHMARK(Poly1305Aes)->ArgsProduct({kSizes});
BENCHMARK(SipHash24)->ArgsProduct({kSizes});
BENCHMARK(Blake2b)->ArgsProduct({kSizes});
BENCHMARK(Crc32cAlone)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Seal, tag_header_check_on, TagMode::kHeader, true)
    ->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Verify, tag_header_check_on, TagMode::kHeader, true)
    ->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Seal, tag_full, TagMode::kFull, false)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Verify, tag_full, TagMode::kFull, false)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Seal, tag_off_check_on, TagMode::kOff, true)
    ->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Verify, tag_off_check_on, TagMode::kOff, true)
    ->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(Seal, tag_off_check_off, TagMode::kOff, false)
    ->ArgsProduct({kSizes});

}  // namespace
}  // namespace optireduce::lab

int main(int argc, char** argv) {
  if (sodium_init() < 0) return 1;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
