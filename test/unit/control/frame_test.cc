#include "transport/control/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace optireduce::control {
namespace {

Nonce NonceOf(std::uint8_t first) {
  Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::byte>(first + i);
  return nonce;
}

Claim SampleClaim() {
  Claim claim;
  claim.rank = 3;
  claim.world_size = 4;
  claim.pid = 4711;
  claim.config_hash = 0x0123456789abcdef;
  claim.version = "0.1.0";
  claim.host = "node3";
  claim.endpoint = "10.0.0.3:4000";
  claim.config_text = "mode=exact\ntransport.path_mtu=1500\n";
  return claim;
}

Welcome SampleWelcome() {
  Welcome welcome;
  welcome.group_id = 77;
  welcome.job_key.assign(32, std::byte{9});
  welcome.members = {{"a", "10.0.0.1:1", 10}, {"b", "[::1]:2", 11}};
  return welcome;
}

// Every kind of body with its parser, the parser only as "is well-formed".
std::vector<Bytes> SampleShares() { return {Bytes(3, std::byte{7}), Bytes{}, Bytes(1)}; }

struct Kind {
  const char* name;
  FrameType type;
  Bytes body;
  std::function<bool(std::span<const std::byte>)> parses;
};

std::vector<Kind> Kinds() {
  using Span = std::span<const std::byte>;
  return {
      {"hello", FrameType::kHello, Serialize(Hello{NonceOf(1), 3, 4, true}),
       [](Span s) { return ParseHello(s).has_value(); }},
      {"challenge", FrameType::kChallenge, Serialize(Challenge{NonceOf(2), true, NonceOf(3)}),
       [](Span s) { return ParseChallenge(s).has_value(); }},
      {"claim", FrameType::kClaim, Serialize(SampleClaim()),
       [](Span s) { return ParseClaim(s).has_value(); }},
      {"refused", FrameType::kRefused, Serialize(Refused{true, Code::kMismatch, "why"}),
       [](Span s) { return ParseRefused(s).has_value(); }},
      {"waiting", FrameType::kWaiting, Serialize(Waiting{3, {1, 2, 3}}),
       [](Span s) { return ParseWaiting(s).has_value(); }},
      {"welcome", FrameType::kWelcome, Serialize(SampleWelcome()),
       [](Span s) { return ParseWelcome(s).has_value(); }},
      {"lost", FrameType::kLost, Serialize(Lost{2, "killed"}),
       [](Span s) { return ParseLost(s).has_value(); }},
      {"left", FrameType::kLeft, Serialize(Left{2}),
       [](Span s) { return ParseLeft(s).has_value(); }},
      {"abort", FrameType::kAbort, Serialize(Abort{1, Code::kTimeout, "late"}),
       [](Span s) { return ParseAbort(s).has_value(); }},
      {"propose", FrameType::kPropose, Serialize(Change{1'372}),
       [](Span s) { return ParseChange(s).has_value(); }},
      {"prepare", FrameType::kPrepare, Serialize(Prepare{3, {1'372}}),
       [](Span s) { return ParsePrepare(s).has_value(); }},
      {"ready", FrameType::kReady, Serialize(Ready{3, 77}),
       [](Span s) { return ParseReady(s).has_value(); }},
      {"decision", FrameType::kDecision, Serialize(Decision{3, true, 78}),
       [](Span s) { return ParseDecision(s).has_value(); }},
      {"shared", FrameType::kShared, SerializeShared(SampleShares()),
       [](Span s) { return ParseShared(s).has_value(); }},
  };
}

TEST(FrameTest, ChangeoversComeBackAsTheyWere) {
  const auto prepare = ParsePrepare(Serialize(Prepare{3, {1'372}}));
  ASSERT_TRUE(prepare);
  EXPECT_EQ(prepare->id, 3u);
  EXPECT_EQ(prepare->change.packet_bytes, 1'372u);
  const auto ready = ParseReady(Serialize(Ready{3, std::uint64_t{1} << 40}));
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->id, 3u);
  EXPECT_EQ(ready->newest, std::uint64_t{1} << 40);
  const auto decision = ParseDecision(Serialize(Decision{3, true, 78}));
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->id, 3u);
  EXPECT_TRUE(decision->commit);
  EXPECT_EQ(decision->first, 78u);
  // No packet that could hold an element.
  EXPECT_FALSE(ParseChange(Serialize(Change{0})));
  EXPECT_FALSE(ParseChange(Serialize(Change{kPacketBytesLeast - 1})));
  EXPECT_TRUE(ParseChange(Serialize(Change{kPacketBytesLeast})));
}

TEST(FrameTest, BodiesComeBackAsTheyWere) {
  const auto hello = ParseHello(Serialize(Hello{NonceOf(1), 3, 4, true}));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->nonce, NonceOf(1));
  EXPECT_EQ(hello->rank, 3u);
  EXPECT_EQ(hello->world_size, 4u);
  EXPECT_TRUE(hello->has_key);

  const auto claim = ParseClaim(Serialize(SampleClaim()));
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->rank, 3u);
  EXPECT_EQ(claim->pid, 4711u);
  EXPECT_EQ(claim->config_hash, 0x0123456789abcdefu);
  EXPECT_EQ(claim->host, "node3");
  EXPECT_EQ(claim->endpoint, "10.0.0.3:4000");
  EXPECT_EQ(claim->config_text, SampleClaim().config_text);

  const auto welcome = ParseWelcome(Serialize(SampleWelcome()));
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->group_id, 77u);
  EXPECT_EQ(welcome->job_key, SampleWelcome().job_key);
  EXPECT_EQ(welcome->members, SampleWelcome().members);

  const auto refused = ParseRefused(Serialize(Refused{true, Code::kMismatch, "why"}));
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->retry);
  EXPECT_EQ(refused->code, Code::kMismatch);
  EXPECT_EQ(refused->reason, "why");

  const auto abort = ParseAbort(Serialize(Abort{1, Code::kTimeout, "late"}));
  ASSERT_TRUE(abort);
  EXPECT_EQ(abort->origin, 1u);
  EXPECT_EQ(abort->code, Code::kTimeout);
  EXPECT_EQ(abort->text, "late");

  EXPECT_EQ(ParseShared(SerializeShared(SampleShares())), SampleShares());

  const auto waiting = ParseWaiting(Serialize(Waiting{3, {1, 2, 3}}));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->listed, (std::vector<Rank>{1, 2, 3}));
}

TEST(FrameTest, EveryTruncationAndEveryExtensionIsRefused) {
  for (const Kind& kind : Kinds()) {
    EXPECT_TRUE(kind.parses(kind.body)) << kind.name;
    for (std::size_t size = 0; size < kind.body.size(); ++size) {
      EXPECT_FALSE(kind.parses(std::span(kind.body).first(size))) << kind.name << " " << size;
    }
    // Not by push_back, in which g++ 14 sees a write out of bounds that is not there.
    Bytes longer(kind.body.size() + 1);
    std::copy(kind.body.begin(), kind.body.end(), longer.begin());
    EXPECT_FALSE(kind.parses(longer)) << kind.name;
  }
}

TEST(FrameTest, RandomBytesNeverBreakAParser) {
  std::mt19937_64 random(20260726);
  for (int round = 0; round < 4000; ++round) {
    for (const Kind& kind : Kinds()) {
      Bytes body = kind.body;
      // Half mutated, half noise.
      if (round % 2 == 0) {
        for (int i = 0; i < 3; ++i) body[random() % body.size()] = static_cast<std::byte>(random());
      } else {
        body.resize(random() % 96);
        for (std::byte& b : body) b = static_cast<std::byte>(random());
      }
      (void)kind.parses(body);
    }
  }
}

TEST(FrameTest, RefusesNumbersOutOfRange) {
  EXPECT_FALSE(ParseHello(Serialize(Hello{NonceOf(1), kRanksMax, 4, false})));
  Claim claim = SampleClaim();
  claim.world_size = 3;  // rank 3 of 3
  EXPECT_FALSE(ParseClaim(Serialize(claim)));
  claim.world_size = 0;
  EXPECT_FALSE(ParseClaim(Serialize(claim)));
  claim.world_size = kRanksMax + 1;
  EXPECT_FALSE(ParseClaim(Serialize(claim)));
  EXPECT_FALSE(ParseAbort(Serialize(Abort{0, Code::kOk, ""})));
  EXPECT_FALSE(ParseWelcome(Serialize(Welcome{1, {}, {}})));
  // More members announced than the bytes can hold.
  Bytes body = Serialize(Welcome{1, {}, {{"a", "b", 1}}});
  body[8] = std::byte{200};
  EXPECT_FALSE(ParseWelcome(body));
}

TEST(FrameTest, ControlCharactersOfStrangersAreReplaced) {
  Claim claim = SampleClaim();
  claim.host = "a\x1b[2Jb";
  const auto parsed = ParseClaim(Serialize(claim));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->host, "a?[2Jb");
}

TEST(FrameTest, TheLargestClaimFitsTheSmallLimit) {
  Claim claim = SampleClaim();
  claim.version.assign(1000, 'v');
  claim.host.assign(1000, 'h');
  claim.endpoint.assign(1000, 'e');
  claim.config_text.clear();
  for (int i = 0; i < 1000; ++i) claim.config_text += "option" + std::to_string(i) + "=1\n";
  Bytes body = Serialize(claim);
  AppendProof(body, {});
  EXPECT_LE(body.size(), kBodyBytesMax);
  const auto parsed = ParseClaim(SplitProof(body)->body);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->config_text.back(), '\n');  // cut between lines
  EXPECT_LE(Serialize(Refused{false, Code::kMismatch, std::string(9000, 'x')}).size(),
            kBodyBytesMax);
}

TEST(FrameTest, TheLargestWelcomeFitsItsLimit) {
  Welcome welcome = SampleWelcome();
  welcome.members.assign(kRanksMax, {std::string(255, 'h'), std::string(96, 'e'), ~0ull});
  Bytes body = Serialize(welcome);
  AppendProof(body, {});
  EXPECT_LE(body.size(), kListBytesMax);
  EXPECT_TRUE(ParseWelcome(SplitProof(body)->body));
}

TEST(FrameTest, TheLargestSharesFitTheirLimitAndLargerOnesAreRefused) {
  std::vector<Bytes> shares(kRanksMax, Bytes(kShareBytesMax));
  EXPECT_LE(SerializeShared(shares).size(), kListBytesMax);
  EXPECT_TRUE(ParseShared(SerializeShared(shares)));
  shares.emplace_back();
  EXPECT_FALSE(ParseShared(SerializeShared(shares)));
  EXPECT_FALSE(ParseShared(SerializeShared(std::vector<Bytes>(2, Bytes(kShareBytesMax + 1)))));
}

TEST(FrameReaderTest, CutsAStreamAtAnyPlace) {
  Bytes stream;
  const std::vector<Kind> kinds = Kinds();
  for (const Kind& kind : kinds) {
    const Bytes frame = FrameOf(kind.type, kind.body);
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{64}, stream.size()}) {
    FrameReader reader(kListBytesMax);
    std::size_t next = 0;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.Feed(std::span(stream).subspan(at, std::min(step, stream.size() - at)));
      while (const auto frame = reader.Next()) {
        ASSERT_LT(next, kinds.size());
        EXPECT_EQ(frame->type, kinds[next].type);
        EXPECT_EQ(frame->body, kinds[next].body);
        ++next;
      }
    }
    EXPECT_EQ(next, kinds.size());
    EXPECT_EQ(reader.fault(), FrameReader::Fault::kNone);
    EXPECT_EQ(reader.held_bytes(), 0u);
  }
}

FrameReader::Fault FaultOf(const Bytes& bytes, std::size_t list_bytes_max = 0) {
  FrameReader reader(list_bytes_max);
  reader.Feed(bytes);
  EXPECT_FALSE(reader.Next());
  if (reader.fault() != FrameReader::Fault::kNone) {
    EXPECT_EQ(reader.held_bytes(), 0u);
  }
  return reader.fault();
}

TEST(FrameReaderTest, RefusesByTheHeaderAlone) {
  using Fault = FrameReader::Fault;
  const Bytes good = FrameOf(FrameType::kPing);
  Bytes bytes = good;
  bytes.pop_back();
  EXPECT_EQ(FaultOf(bytes), Fault::kNone);
  EXPECT_EQ(FaultOf({std::byte{'G'}}), Fault::kMagic);  // "GET /"
  bytes = good;
  bytes[3] ^= std::byte{1};
  EXPECT_EQ(FaultOf(bytes), Fault::kMagic);
  bytes = good;
  bytes[4] = std::byte{2};
  EXPECT_EQ(FaultOf(bytes), Fault::kVersion);
  bytes = good;
  bytes[5] = std::byte{0};
  EXPECT_EQ(FaultOf(bytes), Fault::kType);
  bytes[5] = std::byte{18};
  EXPECT_EQ(FaultOf(bytes), Fault::kType);
  bytes = good;
  bytes[7] = std::byte{1};
  EXPECT_EQ(FaultOf(bytes), Fault::kType);
  bytes = good;
  bytes[8] = std::byte{0xff};  // 4 GB announced, nothing sent
  EXPECT_EQ(FaultOf(bytes), Fault::kLength);
  bytes = good;
  bytes[10] = std::byte{0x10};
  bytes[11] = std::byte{0x01};  // 4097
  EXPECT_EQ(FaultOf(bytes), Fault::kLength);
  for (const int list : {6, 13}) {  // WELCOME, SHARED
    bytes[5] = static_cast<std::byte>(list);
    EXPECT_EQ(FaultOf(bytes), Fault::kLength);
    EXPECT_EQ(FaultOf(bytes, kListBytesMax), Fault::kNone);
  }
}

TEST(FrameReaderTest, ARefusalOfAnotherVersionIsReadable) {
  Bytes bytes = FrameOf(FrameType::kRefused, Serialize(Refused{false, Code::kMismatch, "old"}));
  bytes[4] = std::byte{9};
  FrameReader reader(0);
  reader.Feed(bytes);
  const auto frame = reader.Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(ParseRefused(frame->body)->reason, "old");
}

TEST(FrameReaderTest, RandomStreamsStayBounded) {
  std::mt19937_64 random(4242);
  for (int round = 0; round < 300; ++round) {
    FrameReader reader(0);
    Bytes noise = FrameOf(static_cast<FrameType>(1 + random() % 11), Bytes(random() % 300));
    const std::size_t at = random() % noise.size();
    noise[at] = static_cast<std::byte>(random());
    for (int feed = 0; feed < 50; ++feed) {
      reader.Feed(noise);
      while (reader.Next()) {
      }
      EXPECT_LE(reader.held_bytes(), kFrameHeaderBytes + kBodyBytesMax + noise.size());
    }
  }
}

}  // namespace
}  // namespace optireduce::control
