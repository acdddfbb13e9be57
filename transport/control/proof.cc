#include "transport/control/proof.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/check.h"
#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

constexpr std::size_t kKeyFileBytesMin = 16;
constexpr std::size_t kKeyFileBytesMax = 4096;
// Of equal length, so that no two inputs are alike.
constexpr std::string_view kKeyLabel = "optireduce/job_key";
constexpr std::string_view kProofLabel = "optireduce/control";
static_assert(kKeyLabel.size() == kProofLabel.size());

class Hash {
 public:
  explicit Hash(std::span<const std::byte> key) {
    OR_CHECK(sodium_init() >= 0);
    const auto* octets = reinterpret_cast<const unsigned char*>(key.data());
    OR_CHECK(crypto_generichash_init(&state_, octets, key.size(), 32) == 0);
  }
  ~Hash() { sodium_memzero(&state_, sizeof state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void Add(std::span<const std::byte> bytes) {
    const auto* octets = reinterpret_cast<const unsigned char*>(bytes.data());
    OR_CHECK(crypto_generichash_update(&state_, octets, bytes.size()) == 0);
  }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text.data(), text.size()))); }
  std::array<std::byte, 32> Take() {
    std::array<std::byte, 32> out;
    auto* octets = reinterpret_cast<unsigned char*>(out.data());
    OR_CHECK(crypto_generichash_final(&state_, octets, out.size()) == 0);
    return out;
  }

 private:
  crypto_generichash_state state_;
};

// Reads at most `bytes.size()`; the count, or -1 with errno.
ssize_t ReadAll(int fd, std::span<std::byte> bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(used);
}

}  // namespace

Result<wire::JobKey> ReadJobKey(const std::string& path) {
  const std::string who = "job key file " + Quoted(path);
  // Non-blocking: opening a pipe nobody writes to must not hang.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Status(Code::kInvalidArgument, who + ": " + std::strerror(errno));
  struct stat kind {};
  std::array<std::byte, kKeyFileBytesMax + 1> content;
  const bool regular = fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode);
  const ssize_t got = regular ? ReadAll(fd, content) : -1;
  const int error = errno;
  close(fd);
  if (!regular) return Status(Code::kInvalidArgument, who + " is not a regular file");
  if (got < 0) return Status(Code::kInvalidArgument, who + ": " + std::strerror(error));
  std::size_t size = static_cast<std::size_t>(got);
  const bool too_long = size > kKeyFileBytesMax;
  const auto is_space = [](std::byte b) {
    return b == std::byte{' '} || b == std::byte{'\n'} || b == std::byte{'\r'} ||
           b == std::byte{'\t'};
  };
  while (size > 0 && is_space(content[size - 1])) --size;
  if (too_long || size < kKeyFileBytesMin) {
    wire::Wipe(content);
    return Status(Code::kInvalidArgument, who + " must hold 16 to 4096 bytes (try: head -c 32 "
                                                "/dev/urandom | base64)");
  }
  Hash hash({});
  hash.Add(kKeyLabel);
  hash.Add(std::span(content).first(size));
  std::array<std::byte, 32> out = hash.Take();
  const wire::JobKey key(out);
  wire::Wipe(out);
  wire::Wipe(content);
  return key;
}

Nonce MakeNonce() {
  OR_CHECK(sodium_init() >= 0);
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::uint32_t MakeGroupId() {
  OR_CHECK(sodium_init() >= 0);
  return std::max(randombytes_random(), std::uint32_t{1});
}

Proof MakeProof(const wire::JobKey& key, Proves what, const Nonce& from_rank,
                const Nonce& from_master, std::span<const std::byte> body) {
  Hash hash(key.bytes());
  hash.Add(kProofLabel);
  const std::array<std::byte, 1> kind{static_cast<std::byte>(what)};
  hash.Add(kind);
  hash.Add(from_rank);
  hash.Add(from_master);
  hash.Add(body);
  return hash.Take();
}

bool ProofHolds(const wire::JobKey& key, Proves what, const Nonce& from_rank,
                const Nonce& from_master, std::span<const std::byte> body, const Proof& proof) {
  return wire::EqualInConstantTime(MakeProof(key, what, from_rank, from_master, body), proof);
}

}  // namespace optireduce::control
