#include "transport/wire/keys.h"

#include <sodium.h>

#include <string_view>

#include "lib/check.h"
#include "transport/wire/byte_order.h"

namespace optireduce::wire {
namespace {

const unsigned char* Octets(const std::byte* p) {
  return reinterpret_cast<const unsigned char*>(p);
}

// The label is one of ours and as long as all others, so no two inputs are alike.
constexpr std::size_t kLabelBytes = 16;

// The input of a derivation: a label and two numbers.
std::array<std::byte, kLabelBytes + 8> Input(std::string_view label, std::uint32_t first,
                                             std::uint32_t second) {
  OR_CHECK(label.size() == kLabelBytes);
  std::array<std::byte, kLabelBytes + 8> input;
  for (std::size_t i = 0; i < kLabelBytes; ++i) input[i] = static_cast<std::byte>(label[i]);
  StoreBig(first, input.data() + kLabelBytes);
  StoreBig(second, input.data() + kLabelBytes + 4);
  return input;
}

template <std::size_t Bytes>
class Derived {
 public:
  Derived(std::span<const std::byte> key, std::span<const std::byte> input) {
    OR_CHECK(crypto_generichash(reinterpret_cast<unsigned char*>(bytes_.data()), Bytes,
                                Octets(input.data()), input.size(), Octets(key.data()),
                                key.size()) == 0);
  }
  Derived(const Derived&) = delete;
  Derived& operator=(const Derived&) = delete;
  ~Derived() { Wipe(bytes_); }
  std::span<const std::byte, Bytes> bytes() const { return bytes_; }

 private:
  std::array<std::byte, Bytes> bytes_;
};

}  // namespace

void Wipe(std::span<std::byte> bytes) { sodium_memzero(bytes.data(), bytes.size()); }

bool EqualInConstantTime(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

JobKey MakeJobKey() {
  OR_CHECK(sodium_init() >= 0);  // may be called again, and from several threads
  std::array<std::byte, JobKey::kBytes> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  const JobKey key(bytes);
  Wipe(bytes);
  return key;
}

GroupKey DeriveGroupKey(const JobKey& job_key, std::uint32_t group, std::uint16_t epoch) {
  const auto input = Input("optireduce/group", group, epoch);
  return GroupKey(Derived<GroupKey::kBytes>(job_key.bytes(), input).bytes());
}

PairKey DerivePairKey(const GroupKey& group_key, Rank from, Rank to) {
  const auto input = Input("optireduce/pair_", from, to);
  return PairKey(Derived<PairKey::kBytes>(group_key.bytes(), input).bytes());
}

std::uint64_t DeriveCookie(const GroupKey& group_key) {
  const auto input = Input("optireduce/plain", 0, 0);
  // 16 bytes is the shortest hash there is; the cookie is its first half.
  const Derived<16> hash(group_key.bytes(), input);
  return LoadBig<std::uint64_t>(hash.bytes().data());
}

}  // namespace optireduce::wire
