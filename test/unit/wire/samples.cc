#include "test/unit/wire/samples.h"

#include <algorithm>

#include "transport/wire/serialize.h"

namespace optireduce::wire {
namespace {

unsigned Digit(char c) {
  return static_cast<unsigned>(std::string_view("0123456789abcdef").find(c));
}

}  // namespace

std::vector<std::byte> FromHex(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c != ' ' && c != '\n'; });
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(Digit(digits[i]) * 16 + Digit(digits[i + 1])));
  }
  return bytes;
}

std::string ToHex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

std::vector<std::byte> Text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Header SampleHeader(MessageType type) {
  Header header;
  header.type = type;
  header.sender = 0x0102;
  header.group = 0xa1a2a3a4;
  header.epoch = 0xb1b2;
  if (type != MessageType::kOpen && type != MessageType::kReport && type != MessageType::kProbe) {
    header.shard = 0x0203;
  }
  header.op_low = 0xc1c2c3c4;
  if (IsPayloadType(type)) header.cell = 0xd1d2d3d4;
  header.number_low = 0xe1e2e3e4;
  return header;
}

ReportBlock SampleReport() {
  ReportBlock report;
  report.credit = 0x01020304;
  report.received_low = 0x11121314;
  report.highest_low = 0x21222324;
  report.hold_ns = 0x31323334;
  report.opened = 0x4142434445464748;
  report.called = 0x5152535455565758;
  report.done = 0x6162636465666768;
  report.divergent = 0x7172737475767778;
  report.age_ns = 0x8182838485868788;
  report.pressure = 0x9192;
  return report;
}

Open SampleOpen() {
  Open open;
  open.report = SampleReport();
  open.count = 0xa1a2a3a4a5a6a7a8;
  open.data_type = 9;
  open.reduce_op = 7;
  open.mode = 1;
  open.fingerprint = 0xb1b2b3b4b5b6b7b8;
  return open;
}

Nack SampleNack() {
  Nack nack;
  nack.stage = Stage::kBroadcast;
  nack.sets_only = true;
  nack.highest_low = 0x01020304;
  nack.hold_ns = 0x41424344;
  nack.range_count = 2;
  nack.ranges[0] = {0x11121314, 1};
  nack.ranges[1] = {0x21222324, 0x31323334};
  return nack;
}

std::vector<std::byte> Packet(const Header& header, std::span<const std::byte> rest) {
  std::vector<std::byte> packet(kHeaderBytes);
  WriteHeader(header, std::span(packet).first<kHeaderBytes>());
  packet.insert(packet.end(), rest.begin(), rest.end());
  return packet;
}

}  // namespace optireduce::wire
