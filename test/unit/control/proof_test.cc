#include "transport/control/proof.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace optireduce::control {
namespace {

// A file that is removed with the object.
class KeyFile {
 public:
  explicit KeyFile(const std::string& content)
      : path_(testing::TempDir() + "control_key_" + std::to_string(getpid())) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~KeyFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

wire::JobKey KeyOf(const std::string& content) {
  const Result<wire::JobKey> key = ReadJobKey(KeyFile(content).path());
  EXPECT_TRUE(key.ok()) << key.status().text();
  return *key;
}

TEST(JobKeyTest, TheContentDecidesButNotWhiteSpaceAtItsEnd) {
  EXPECT_EQ(KeyOf("0123456789abcdef"), KeyOf("0123456789abcdef\n"));
  EXPECT_FALSE(KeyOf("0123456789abcdef") == KeyOf("0123456789abcdeg"));
}

TEST(JobKeyTest, RefusesWhatIsNoKeyWithoutShowingIt) {
  for (const std::string& content : {std::string(), std::string("short secret\n"),
                                     std::string(5000, 's'), std::string(100, ' ')}) {
    const Result<wire::JobKey> key = ReadJobKey(KeyFile(content).path());
    ASSERT_FALSE(key.ok());
    EXPECT_EQ(key.status().text().find("secret"), std::string::npos);
  }
  EXPECT_FALSE(ReadJobKey("/").ok());
  EXPECT_FALSE(ReadJobKey("/no/such/file").ok());
}

TEST(ProofTest, HoldsOnlyForWhatItWasMadeFor) {
  const wire::JobKey key = KeyOf("0123456789abcdef");
  const wire::JobKey other_key = KeyOf("another 0123456789");
  const Nonce rank = MakeNonce();
  const Nonce master = MakeNonce();
  ASSERT_NE(rank, master);
  const Bytes body(10, std::byte{1});
  Bytes other_body = body;
  other_body.back() = std::byte{2};
  const Proof proof = MakeProof(key, Proves::kClaim, rank, master, body);
  EXPECT_TRUE(ProofHolds(key, Proves::kClaim, rank, master, body, proof));
  EXPECT_FALSE(ProofHolds(other_key, Proves::kClaim, rank, master, body, proof));
  EXPECT_FALSE(ProofHolds(key, Proves::kChallenge, rank, master, body, proof));
  EXPECT_FALSE(ProofHolds(key, Proves::kClaim, master, rank, body, proof));
  EXPECT_FALSE(ProofHolds(key, Proves::kClaim, rank, master, other_body, proof));
  EXPECT_FALSE(ProofHolds(key, Proves::kClaim, rank, master, body, Proof{}));
}

TEST(ProofTest, GroupIdsAreNotZero) {
  for (int i = 0; i < 100; ++i) EXPECT_NE(MakeGroupId(), 0u);
}

}  // namespace
}  // namespace optireduce::control
