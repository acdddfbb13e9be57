// What the parser refuses: lengths, reserved bytes, enumerators, ranges, and noise.
#include "transport/wire/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "optireduce/types.h"
#include "test/unit/wire/samples.h"
#include "transport/wire/serialize.h"

namespace optireduce::wire {
namespace {

constexpr std::uint32_t kRanks = 10;

// A body in memory of exactly its length, so that a sanitizer sees a read past its end.
ParseResult ParseBody(MessageType type, std::span<const std::byte> bytes) {
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const std::span<const std::byte> body(exact.get(), bytes.size());
  Open open;
  SetsView sets;
  Nack nack;
  ReportBlock report;
  StatementView statement;
  NotYet not_yet;
  Probe probe;
  switch (type) {
    case MessageType::kOpen: return ParseOpen(body, &open);
    case MessageType::kSets: return ParseSets(body, kRanks, &sets);
    case MessageType::kNack: return ParseNack(body, &nack);
    case MessageType::kReport: return ParseReport(body, &report);
    case MessageType::kStatement: return ParseStatement(body, &statement);
    case MessageType::kNotYet: return ParseNotYet(body, &not_yet);
    case MessageType::kProbe: return ParseProbe(body, /*answer=*/true, &probe);
    case MessageType::kData:
    case MessageType::kResult: break;
  }
  return ParseResult::kType;
}

struct Sample {
  MessageType type;
  std::vector<std::byte> body;
};

std::vector<Sample> Samples() {
  std::vector<Sample> samples;
  std::vector<std::byte> out(512);
  const auto add = [&](MessageType type, std::size_t bytes) {
    samples.push_back({type, {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)}});
  };
  add(MessageType::kOpen, WriteOpen(SampleOpen(), out));
  add(MessageType::kNack, WriteNack(SampleNack(), out));
  add(MessageType::kReport, WriteReport(SampleReport(), out));
  add(MessageType::kNotYet, WriteNotYet({}, out));
  add(MessageType::kProbe, WriteProbe({7, 1472}, out));
  StatementView statement;
  add(MessageType::kStatement, WriteStatement(statement, out));
  const auto held = FromHex("a507");
  statement.kind = StatementView::Kind::kBitmap;
  statement.range = {3, 11};
  statement.bitmap = held;
  add(MessageType::kStatement, WriteStatement(statement, out));
  SetsWriter writer(out, SetBytes(kRanks));
  EXPECT_TRUE(writer.Append({1, 2}, FromHex("fd03")));
  EXPECT_TRUE(writer.Append({9, 1}, FromHex("fe03")));
  add(MessageType::kSets, writer.bytes_written());
  return samples;
}

// The sample body of `type` (the last one) with the bytes at `at` replaced.
ParseResult With(MessageType type, std::size_t at, std::string_view hex) {
  auto samples = Samples();
  const auto it = std::find_if(samples.rbegin(), samples.rend(),
                               [&](const Sample& sample) { return sample.type == type; });
  const auto bytes = FromHex(hex);
  std::memcpy(it->body.data() + at, bytes.data(), bytes.size());
  return ParseBody(type, it->body);
}

TEST(WireParse, RefusesEveryOtherLength) {
  for (const Sample& sample : Samples()) {
    SCOPED_TRACE(int{static_cast<std::uint8_t>(sample.type)});
    EXPECT_EQ(ParseBody(sample.type, sample.body), ParseResult::kOk);
    for (std::size_t bytes = 0; bytes < sample.body.size(); ++bytes) {
      const auto result = ParseBody(sample.type, std::span(sample.body).first(bytes));
      EXPECT_TRUE(result == ParseResult::kShort || result == ParseResult::kLength) << bytes;
    }
    std::vector<std::byte> longer = sample.body;
    for (int extra = 0; extra < 16; ++extra) {
      longer.push_back(std::byte{0});
      EXPECT_EQ(ParseBody(sample.type, longer), ParseResult::kLength);
    }
  }
}

TEST(WireParse, HeaderLengths) {
  Header header;
  const auto packet = Packet(SampleHeader(MessageType::kData), Text("x"));
  for (std::size_t bytes = 0; bytes < kHeaderBytes; ++bytes) {
    EXPECT_EQ(ParseHeader(std::span(packet).first(bytes), &header), ParseResult::kShort);
  }
  EXPECT_EQ(ParseHeader(std::span(packet).first(kHeaderBytes), &header), ParseResult::kLength);
  EXPECT_EQ(ParseHeader(packet, &header), ParseResult::kOk);
  const auto bare = Packet(SampleHeader(MessageType::kNotYet), {});
  EXPECT_EQ(ParseHeader(bare, &header), ParseResult::kOk);
}

// Sets the bytes at `at` of the header of `type` and parses.
ParseResult HeaderWith(MessageType type, std::size_t at, std::string_view hex) {
  auto packet = Packet(SampleHeader(type), Text("x"));
  const auto bytes = FromHex(hex);
  std::memcpy(packet.data() + at, bytes.data(), bytes.size());
  Header header;
  return ParseHeader(packet, &header);
}

TEST(WireParse, HeaderVersionAndType) {
  for (unsigned first = 0; first < 256; ++first) {
    auto packet = Packet(Header{MessageType::kOpen}, Text("x"));
    packet[0] = static_cast<std::byte>(first);
    Header header;
    const bool known = (first & 15) >= 1 && (first & 15) <= 9;
    const auto expected = first >> 4 != 1 ? ParseResult::kOtherVersion
                          : known         ? ParseResult::kOk
                                          : ParseResult::kType;
    EXPECT_EQ(ParseHeader(packet, &header), expected) << first;
  }
}

TEST(WireParse, AProbeHasTheSizeItTellsAndIsFilledWithZeros) {
  std::vector<std::byte> body(1440);
  Probe probe;
  WriteProbe({7, 1472}, body);
  ASSERT_EQ(ParseProbe(body, false, &probe), ParseResult::kOk);
  EXPECT_EQ(probe.round, 7U);
  EXPECT_EQ(probe.packet_bytes, 1472U);
  EXPECT_EQ(ParseProbe(body, true, &probe), ParseResult::kLength);
  EXPECT_EQ(ParseProbe(std::span(body).first(1439), false, &probe), ParseResult::kLength);
  EXPECT_EQ(ParseProbe(std::span(body).first(7), false, &probe), ParseResult::kShort);
  EXPECT_EQ(ParseProbe(std::span(body).first(8), true, &probe), ParseResult::kOk);
  body[1439] = std::byte{1};
  EXPECT_EQ(ParseProbe(body, false, &probe), ParseResult::kReserved);
}

TEST(WireParse, HeaderFlagsPerType) {
  for (std::uint8_t type = 1; type <= kMessageTypes; ++type) {
    for (unsigned flags = 0; flags < 256; ++flags) {
      Header header = SampleHeader(static_cast<MessageType>(type));
      header.flags = static_cast<std::uint8_t>(flags);
      // Which piece it is says only what is one.
      const unsigned piece = (flags & kFlagPiece) != 0 ? kFlagPiece | kPieceMask : 0u;
      const unsigned known = header.type == MessageType::kResult   ? 3u | piece
                             : header.type == MessageType::kData   ? 2u | piece
                             : header.type == MessageType::kReport ? 4u
                             : header.type == MessageType::kProbe  ? 4u
                             : header.type == MessageType::kNack   ? 8u
                                                                   : 0u;
      const auto packet = Packet(header, Text("x"));
      EXPECT_EQ(ParseHeader(packet, &header),
                (flags & ~known) == 0 ? ParseResult::kOk : ParseResult::kFlags)
          << int{type} << " " << flags;
    }
  }
}

TEST(WireParse, HeaderFieldsAtTheirEnds) {
  using enum MessageType;
  for (std::uint8_t value = 1; value <= kMessageTypes; ++value) {
    const auto type = static_cast<MessageType>(value);
    SCOPED_TRACE(int{value});
    EXPECT_EQ(HeaderWith(type, 2, "0000"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 2, "03ff"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 2, "0400"), ParseResult::kRange);
    EXPECT_EQ(HeaderWith(type, 2, "ffff"), ParseResult::kRange);
    for (const std::size_t at : {4u, 12u, 20u}) {  // group, op, packet number: anything
      EXPECT_EQ(HeaderWith(type, at, "00000000"), ParseResult::kOk);
      EXPECT_EQ(HeaderWith(type, at, "ffffffff"), ParseResult::kOk);
    }
    EXPECT_EQ(HeaderWith(type, 8, "0000"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 8, "ffff"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 24, "ffffffffffffffff"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 10, "0000"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 10, "ffff"), ParseResult::kRange);
    const bool no_shard = type == kOpen || type == kReport || type == kProbe;
    EXPECT_EQ(HeaderWith(type, 10, "03ff"), no_shard ? ParseResult::kReserved : ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 16, "00000000"), ParseResult::kOk);
    EXPECT_EQ(HeaderWith(type, 16, "ffffffff"),
              IsPayloadType(type) ? ParseResult::kOk : ParseResult::kReserved);
  }
}

TEST(WireParse, ReportReserved) {
  for (std::size_t at = 58; at < 64; ++at) {
    EXPECT_EQ(With(MessageType::kReport, at, "01"), ParseResult::kReserved);
    EXPECT_EQ(With(MessageType::kOpen, at, "80"), ParseResult::kReserved);
  }
  for (std::size_t at = 0; at < 58; ++at) {
    EXPECT_EQ(With(MessageType::kReport, at, "00"), ParseResult::kOk);
    EXPECT_EQ(With(MessageType::kReport, at, "ff"), ParseResult::kOk);
  }
}

TEST(WireParse, OpenFields) {
  EXPECT_EQ(With(MessageType::kOpen, 72, "09"), ParseResult::kOk);
  EXPECT_EQ(With(MessageType::kOpen, 72, "0a"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kOpen, 73, "08"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kOpen, 74, "02"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kOpen, 75, "01"), ParseResult::kRange);
  for (std::size_t at = 76; at < 80; ++at) {
    EXPECT_EQ(With(MessageType::kOpen, at, "01"), ParseResult::kReserved);
  }
  EXPECT_EQ(With(MessageType::kOpen, 64, "0000000000000000"), ParseResult::kOk);
}

TEST(WireParse, NackFields) {
  EXPECT_EQ(With(MessageType::kNack, 0, "02"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 1, "02"), ParseResult::kReserved);
  EXPECT_EQ(With(MessageType::kNack, 2, "0000"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 2, "0001"), ParseResult::kLength);
  EXPECT_EQ(With(MessageType::kNack, 2, "0021"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 2, "ffff"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 16, "00000000"), ParseResult::kRange);  // no cell
  EXPECT_EQ(With(MessageType::kNack, 12, "ffffffff 00000001"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 12, "fffffffe 00000001"), ParseResult::kOk);
  EXPECT_EQ(With(MessageType::kNack, 12, "80000000 80000000"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 20, "00000001 ffffffff"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNack, 20, "00000000 ffffffff"), ParseResult::kOk);
}

TEST(WireParse, NotYetFields) {
  EXPECT_EQ(With(MessageType::kNotYet, 0, "02"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNotYet, 1, "02"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kNotYet, 2, "01"), ParseResult::kReserved);
  EXPECT_EQ(With(MessageType::kNotYet, 3, "80"), ParseResult::kReserved);
}

TEST(WireParse, SetsFields) {
  EXPECT_EQ(With(MessageType::kSets, 0, "0000"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kSets, 0, "0001"), ParseResult::kLength);
  EXPECT_EQ(With(MessageType::kSets, 0, "ffff"), ParseResult::kLength);
  EXPECT_EQ(With(MessageType::kSets, 2, "0000"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kSets, 2, "0001"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kSets, 2, "ffff"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kSets, 4, "fffffffe 00000002"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kSets, 18, "00000000"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kSets, 13, "04"), ParseResult::kReserved);  // rank 10 of 10
  EXPECT_EQ(With(MessageType::kSets, 23, "80"), ParseResult::kReserved);
  EXPECT_EQ(With(MessageType::kSets, 12, "0000"), ParseResult::kOk);  // nobody in it
}

TEST(WireParse, StatementFields) {
  EXPECT_EQ(With(MessageType::kStatement, 0, "03"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kStatement, 1, "02"), ParseResult::kReserved);
  EXPECT_EQ(With(MessageType::kStatement, 2, "01"), ParseResult::kReserved);
  EXPECT_EQ(With(MessageType::kStatement, 0, "00"), ParseResult::kReserved);  // with a range
  EXPECT_EQ(With(MessageType::kStatement, 4, "00000000 00000000"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kStatement, 4, "fffffff8 0000000b"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kStatement, 4, "fffffff4 0000000b"), ParseResult::kOk);
  EXPECT_EQ(With(MessageType::kStatement, 8, "00000008"), ParseResult::kLength);
  EXPECT_EQ(With(MessageType::kStatement, 8, "00000011"), ParseResult::kLength);
  EXPECT_EQ(With(MessageType::kStatement, 8, "ffffffff"), ParseResult::kRange);
  EXPECT_EQ(With(MessageType::kStatement, 4, "00000000 ffffffff"), ParseResult::kLength);
  EXPECT_EQ(With(MessageType::kStatement, 8, "0000000a"), ParseResult::kReserved);  // tail bit
}

// Whatever parses stays inside the promises that the rest of the code relies on.
void CheckPromises(MessageType type, std::span<const std::byte> body) {
  Nack nack;
  SetsView sets;
  StatementView statement;
  Open open;
  if (type == MessageType::kNack && ParseNack(body, &nack) == ParseResult::kOk) {
    ASSERT_LE(nack.range_count, kNackRangesMax);
    for (std::uint32_t i = 0; i < nack.range_count; ++i) {
      ASSERT_GT(nack.ranges[i].first + nack.ranges[i].count, nack.ranges[i].first);
    }
  } else if (type == MessageType::kSets && ParseSets(body, kRanks, &sets) == ParseResult::kOk) {
    for (std::uint32_t i = 0; i < sets.run_count; ++i) {
      ASSERT_GT(sets.range(i).first + sets.range(i).count, sets.range(i).first);
      ASSERT_EQ(std::to_integer<unsigned>(sets.set(i)[1]) & ~3u, 0u);
    }
  } else if (type == MessageType::kStatement &&
             ParseStatement(body, &statement) == ParseResult::kOk) {
    ASSERT_EQ(statement.bitmap.size(), BitmapBytes(statement.range.count));
  } else if (type == MessageType::kOpen && ParseOpen(body, &open) == ParseResult::kOk) {
    ASSERT_LT(open.data_type, kDataTypes);
    ASSERT_LT(open.reduce_op, kReduceOps);
  }
}

TEST(WireParse, Noise) {
  std::mt19937_64 random(20240131);
  const auto samples = Samples();
  std::vector<std::byte> bytes;
  int ok = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Sample& sample = samples[random() % samples.size()];
    if (i % 2 == 0) {  // a real message with some bytes changed
      bytes = sample.body;
      for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      }
    } else {
      bytes.resize(random() % 100);
      std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
    }
    Header header;
    const auto head = ParseHeader(bytes, &header);
    if (bytes.size() < kHeaderBytes) {
      ASSERT_EQ(head, ParseResult::kShort);
    }
    if (ParseBody(sample.type, bytes) == ParseResult::kOk) ++ok;
    CheckPromises(sample.type, bytes);
  }
  EXPECT_GT(ok, 10'000);  // the noise reaches past the checks
}

TEST(WireParse, AnyAlignment) {
  for (const Sample& sample : Samples()) {
    for (std::size_t shift = 0; shift < 8; ++shift) {
      std::vector<std::byte> shifted(shift);
      shifted.insert(shifted.end(), sample.body.begin(), sample.body.end());
      CheckPromises(sample.type, std::span(shifted).subspan(shift));
      Header header;
      const auto packet = Packet(SampleHeader(sample.type), sample.body);
      shifted.assign(shift, std::byte{0});
      shifted.insert(shifted.end(), packet.begin(), packet.end());
      EXPECT_EQ(ParseHeader(std::span(shifted).subspan(shift), &header), ParseResult::kOk);
    }
  }
}

}  // namespace
}  // namespace optireduce::wire
