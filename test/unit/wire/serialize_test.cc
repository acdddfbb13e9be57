// The bytes of every message, fixed, and their way back through the parser.
#include "transport/wire/serialize.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "test/unit/wire/samples.h"
#include "transport/wire/parse.h"

namespace optireduce::wire {
namespace {

constexpr char kReportHex[] =
    "01020304 11121314 21222324 31323334 4142434445464748 5152535455565758"
    "6162636465666768 7172737475767778 8182838485868788 9192 000000000000";

// What `write` puts down in a span of exactly `bytes`, which was full of ones.
template <typename Write>
std::vector<std::byte> Written(std::size_t bytes, const Write& write) {
  std::vector<std::byte> out(bytes, std::byte{0xff});
  EXPECT_EQ(write(std::span(out)), bytes);
  return out;
}

std::string Golden(std::string_view hex) { return ToHex(FromHex(hex)); }

void ExpectSame(const ReportBlock& a, const ReportBlock& b) {
  EXPECT_EQ(a.credit, b.credit);
  EXPECT_EQ(a.received_low, b.received_low);
  EXPECT_EQ(a.highest_low, b.highest_low);
  EXPECT_EQ(a.hold_ns, b.hold_ns);
  EXPECT_EQ(a.opened, b.opened);
  EXPECT_EQ(a.called, b.called);
  EXPECT_EQ(a.done, b.done);
  EXPECT_EQ(a.divergent, b.divergent);
  EXPECT_EQ(a.age_ns, b.age_ns);
  EXPECT_EQ(a.pressure, b.pressure);
}

TEST(WireGolden, Header) {
  Header header = SampleHeader(MessageType::kResult);
  header.flags = kFlagComplete | kFlagRepeat;
  header.tag = 0xf1f2f3f4f5f6f7f8;
  const auto packet = Packet(header, Text("x"));
  EXPECT_EQ(ToHex(packet), Golden("13 03 0102 a1a2a3a4 b1b2 0203 c1c2c3c4 d1d2d3d4 e1e2e3e4"
                                  "f1f2f3f4f5f6f7f8 78"));
  Header back;
  ASSERT_EQ(ParseHeader(packet, &back), ParseResult::kOk);
  EXPECT_EQ(back.type, header.type);
  EXPECT_EQ(back.flags, header.flags);
  EXPECT_EQ(back.sender, header.sender);
  EXPECT_EQ(back.group, header.group);
  EXPECT_EQ(back.epoch, header.epoch);
  EXPECT_EQ(back.shard, header.shard);
  EXPECT_EQ(back.op_low, header.op_low);
  EXPECT_EQ(back.cell, header.cell);
  EXPECT_EQ(back.number_low, header.number_low);
  EXPECT_EQ(back.tag, header.tag);
}

TEST(WireGolden, FirstByteOfEveryType) {
  for (std::uint8_t type = 1; type <= kMessageTypes; ++type) {
    const Header header = SampleHeader(static_cast<MessageType>(type));
    const auto packet = Packet(header, Text("x"));
    EXPECT_EQ(std::to_integer<int>(packet[0]), 0x10 + type);
    Header back;
    ASSERT_EQ(ParseHeader(packet, &back), ParseResult::kOk) << int{type};
    EXPECT_EQ(back.type, header.type);
  }
}

TEST(WireGolden, Report) {
  const auto body = Written(
      kReportBlockBytes, [](std::span<std::byte> out) { return WriteReport(SampleReport(), out); });
  EXPECT_EQ(ToHex(body), Golden(kReportHex));
  ReportBlock back;
  ASSERT_EQ(ParseReport(body, &back), ParseResult::kOk);
  ExpectSame(back, SampleReport());
}

TEST(WireGolden, Open) {
  const Open open = SampleOpen();
  const auto body =
      Written(kOpenBytes, [&](std::span<std::byte> out) { return WriteOpen(open, out); });
  EXPECT_EQ(ToHex(body), Golden(kReportHex) + Golden("a1a2a3a4a5a6a7a8 09 07 01 00 00000000"
                                                     "b1b2b3b4b5b6b7b8"));
  Open back;
  ASSERT_EQ(ParseOpen(body, &back), ParseResult::kOk);
  ExpectSame(back.report, open.report);
  EXPECT_EQ(back.count, open.count);
  EXPECT_EQ(back.data_type, open.data_type);
  EXPECT_EQ(back.reduce_op, open.reduce_op);
  EXPECT_EQ(back.mode, open.mode);
  EXPECT_EQ(back.transform, open.transform);
  EXPECT_EQ(back.fingerprint, open.fingerprint);
}

TEST(WireGolden, Nack) {
  const Nack nack = SampleNack();
  const auto body =
      Written(NackBytes(2), [&](std::span<std::byte> out) { return WriteNack(nack, out); });
  EXPECT_EQ(ToHex(body),
            Golden("01 01 0002 01020304 41424344 11121314 00000001 21222324 31323334"));
  Nack back;
  ASSERT_EQ(ParseNack(body, &back), ParseResult::kOk);
  EXPECT_EQ(back.stage, nack.stage);
  EXPECT_EQ(back.sets_only, nack.sets_only);
  EXPECT_EQ(back.highest_low, nack.highest_low);
  EXPECT_EQ(back.hold_ns, nack.hold_ns);
  ASSERT_EQ(back.range_count, 2u);
  EXPECT_EQ(back.ranges[0], nack.ranges[0]);
  EXPECT_EQ(back.ranges[1], nack.ranges[1]);
}

TEST(WireGolden, FullNack) {
  Nack nack;
  nack.range_count = kNackRangesMax;
  for (std::uint32_t i = 0; i < kNackRangesMax; ++i) nack.ranges[i] = {i * 3, i + 1};
  const auto body = Written(NackBytes(kNackRangesMax),
                            [&](std::span<std::byte> out) { return WriteNack(nack, out); });
  Nack back;
  ASSERT_EQ(ParseNack(body, &back), ParseResult::kOk);
  EXPECT_EQ(back.range_count, kNackRangesMax);
  EXPECT_EQ(back.ranges, nack.ranges);
  EXPECT_FALSE(back.sets_only);
  EXPECT_EQ(back.stage, Stage::kScatter);
}

TEST(WireGolden, NotYet) {
  const NotYet not_yet{Stage::kBroadcast, NotYet::Reason::kHeld};
  const auto body =
      Written(kNotYetBytes, [&](std::span<std::byte> out) { return WriteNotYet(not_yet, out); });
  EXPECT_EQ(ToHex(body), Golden("01 01 0000"));
  NotYet back;
  ASSERT_EQ(ParseNotYet(body, &back), ParseResult::kOk);
  EXPECT_EQ(back.stage, not_yet.stage);
  EXPECT_EQ(back.reason, not_yet.reason);
}

TEST(WireGolden, Sets) {
  std::array<std::byte, 4 + 2 * 10> out;
  out.fill(std::byte{0xff});
  SetsWriter writer(out, SetBytes(10));
  EXPECT_EQ(writer.bytes_written(), 4u);
  EXPECT_TRUE(writer.Append({5, 2}, FromHex("fd03")));
  EXPECT_TRUE(writer.Append({7, 1}, FromHex("fd03")));  // extends
  EXPECT_TRUE(writer.Append({0x01020304, 0x11121314}, FromHex("0102")));
  EXPECT_EQ(writer.run_count(), 2u);
  EXPECT_EQ(writer.bytes_written(), out.size());
  EXPECT_FALSE(writer.Append({9, 1}, FromHex("ff01")));
  EXPECT_EQ(ToHex(out), Golden("0002 0002 00000005 00000003 fd03 01020304 11121314 0102"));

  SetsView view;
  ASSERT_EQ(ParseSets(out, 10, &view), ParseResult::kOk);
  ASSERT_EQ(view.run_count, 2u);
  EXPECT_EQ(view.range(0), (CellRange{5, 3}));
  EXPECT_EQ(view.range(1), (CellRange{0x01020304, 0x11121314}));
  EXPECT_EQ(ToHex(view.set(0)), "fd03");
  EXPECT_EQ(ToHex(view.set(1)), "0102");
}

TEST(WireGolden, SetsExtendOnlyWhatContinues) {
  std::array<std::byte, 256> out;
  SetsWriter writer(out, 1);
  const auto set = FromHex("03");
  EXPECT_TRUE(writer.Append({10, 2}, set));
  EXPECT_TRUE(writer.Append({13, 1}, set));                     // a gap
  EXPECT_TRUE(writer.Append({14, 1}, FromHex("01")));           // another set
  EXPECT_TRUE(writer.Append({15, 0xfffffff0}, FromHex("01")));  // ends at the last cell: joins
  EXPECT_EQ(writer.run_count(), 3u);
  SetsView view;
  ASSERT_EQ(ParseSets(std::span(out).first(writer.bytes_written()), 2, &view), ParseResult::kOk);
  EXPECT_EQ(view.range(2), (CellRange{14, 0xfffffff1}));
}

TEST(WireGolden, Statements) {
  StatementView complete;
  complete.answer_wanted = true;
  const auto body = Written(kStatementFixedBytes, [&](std::span<std::byte> out) {
    return WriteStatement(complete, out);
  });
  EXPECT_EQ(ToHex(body), Golden("00 01 0000 00000000 00000000"));

  StatementView receiving;
  receiving.kind = StatementView::Kind::kReceiving;
  EXPECT_EQ(
      ToHex(Written(kStatementFixedBytes,
                    [&](std::span<std::byte> out) { return WriteStatement(receiving, out); })),
      Golden("01 00 0000 00000000 00000000"));

  const auto held = FromHex("a5ff");
  StatementView bitmap;
  bitmap.kind = StatementView::Kind::kBitmap;
  bitmap.range = {0x01020304, 11};
  bitmap.bitmap = held;
  const auto bitmap_body = Written(kStatementFixedBytes + 2, [&](std::span<std::byte> out) {
    return WriteStatement(bitmap, out);
  });
  // Bits past cell 11 are cleared.
  EXPECT_EQ(ToHex(bitmap_body), Golden("02 00 0000 01020304 0000000b a507"));
  StatementView back;
  ASSERT_EQ(ParseStatement(bitmap_body, &back), ParseResult::kOk);
  EXPECT_EQ(back.kind, StatementView::Kind::kBitmap);
  EXPECT_FALSE(back.answer_wanted);
  EXPECT_EQ(back.range, bitmap.range);
  EXPECT_EQ(ToHex(back.bitmap), "a507");
  ASSERT_EQ(ParseStatement(body, &back), ParseResult::kOk);
  EXPECT_EQ(back.kind, StatementView::Kind::kComplete);
  EXPECT_TRUE(back.answer_wanted);
}

TEST(WireSerializeDeathTest, RefusesWhatTheParserWould) {
  std::array<std::byte, 16> small;
  EXPECT_DEATH(WriteReport(SampleReport(), small), "");
  EXPECT_DEATH(WriteNack(SampleNack(), small), "");
  Nack none;
  std::array<std::byte, 512> large;
  EXPECT_DEATH(WriteNack(none, large), "");
  none.range_count = 1;
  none.ranges[0] = {~0u, 1};
  EXPECT_DEATH(WriteNack(none, large), "");
}

}  // namespace
}  // namespace optireduce::wire
