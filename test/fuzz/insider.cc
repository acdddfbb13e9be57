// One engine, and two peers that have the key and send anything under right tags: a broken or
// hostile rank may spoil results, but every call ends, memory is bounded, and nothing crashes.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "lib/check.h"
#include "lib/serial.h"
#include "test/fuzz/input.h"
#include "test/fuzz/targets.h"
#include "test/unit/collectives/fake_port.h"
#include "transport/wire/byte_order.h"

namespace optireduce::fuzz {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using wire::MessageType;

constexpr std::uint32_t kRanks = 3;
// What a quarter of the arena holds.
constexpr std::size_t kCellsMax = (std::size_t{2} << 20) / 1440;
constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xc3};

struct Spec {
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp reduce = ReduceOp::kSum;
  Mode mode = Mode::kExact;
};

Spec ReadSpec(Input& input) {
  Spec spec;
  spec.count = input.Number<std::uint16_t>() % 4096;
  spec.type = static_cast<DataType>(input.Below(kDataTypes));
  spec.reduce = static_cast<ReduceOp>(input.Below(kReduceOps));
  if (!Supported(spec.type, spec.reduce)) spec.reduce = ReduceOp::kMax;
  if (MayBeBounded(spec.type, spec.reduce) && input.Below(2) == 1) spec.mode = Mode::kBounded;
  return spec;
}

// A call with its memory, and bytes behind the result that nobody may write.
struct Tensor {
  explicit Tensor(const Spec& spec, Duration timeout)
      : bytes(spec.count * ElementBytes(spec.type)), in(bytes, std::byte{1}), out(bytes) {
    out.resize(bytes + kGuardBytes, kGuard);
    call->in = in.data();
    call->out = out.data();
    call->count = spec.count;
    call->type = spec.type;
    call->reduce = spec.reduce;
    call->mode = spec.mode;
    call->timeout = timeout;
  }
  void ExpectGuarded() const {
    OR_CHECK(std::all_of(out.end() - kGuardBytes, out.end(),
                         [](std::byte byte) { return byte == kGuard; }));
  }
  std::size_t bytes;
  Bytes in;
  Bytes out;
  std::shared_ptr<Call> call = std::make_shared<Call>();
};

class Victim {
 public:
  // Ops and packets are counted from after `before`.
  explicit Victim(std::uint64_t before)
      : engine_(Options(before), &port_), key_(wire::DeriveGroupKey(TestKey(), 77, 3)) {
    for (Rank from = 0; from < kRanks; ++from) {
      seal_.emplace_back(wire::DerivePairKey(key_, from, 0), wire::DeriveCookie(key_),
                         TagMode::kHeader, true);
    }
  }

  void Step(Input& input) {
    switch (input.Below(8)) {
      case 0:
        return Turn(microseconds(std::uint32_t{input.Number()} * 100));
      case 1:
        return Submit(input);
      case 2:
        if (input.Below(8) == 0) engine_.PostPeerLeft(1 + input.Below(2));
        return;
      case 3:
        port_.busy = !port_.busy;
        return;
      default:
        return SendAny(input);
    }
  }

  // Every call ends, whatever the peers did, once its time is over.
  void Finish() {
    port_.busy = false;
    for (int i = 0; i < 400 && ended_ < tensors_.size(); ++i) Turn(milliseconds(10));
    OR_CHECK(ended_ == tensors_.size());
    for (const auto& tensor : tensors_) tensor->ExpectGuarded();
    OR_CHECK(engine_.counters().Verdicts() == engine_.counters().Get(Counter::kPacketsReceived));
  }

 private:
  EngineOptions Options(std::uint64_t before) {
    EngineOptions options = TestOptions(0, kRanks, TestSettings());
    options.group.ops_before = before;
    options.group.first_number = before + 1;
    numbers_.fill(before);
    options.on_call_end = [this](const std::shared_ptr<Call>&) { ++ended_; };
    return options;
  }

  void Turn(Duration step) {
    now_ += step;
    for (int i = 0; i < 4 && engine_.Turn(now_); ++i) {
    }
    OR_CHECK(engine_.cells_staged() <= kCellsMax);
    port_.sent.clear();
  }

  void Submit(Input& input) {
    if (tensors_.size() >= 24) return;
    spec_ = ReadSpec(input);
    auto tensor = std::make_unique<Tensor>(spec_, milliseconds(1 + input.Number()));
    if (engine_.Submit(tensor->call)) tensors_.push_back(std::move(tensor));
  }

  void SendAny(Input& input) {
    const Rank from = 1 + input.Below(2);
    const auto type = static_cast<std::uint8_t>(1 + input.Below(wire::kMessageTypes));
    const auto flags = input.Number<std::uint8_t>();
    const auto shard = static_cast<std::uint16_t>(input.Below(kRanks));
    const OpNumber called = engine_.group().called();
    const OpNumber op = Widen(static_cast<std::uint32_t>(called) + input.Below(12) - 4, called);
    const std::uint32_t cell =
        input.Below(8) == 7 ? input.Number<std::uint32_t>() : input.Below(8);
    numbers_[from] += input.Below(16) == 15 ? input.Number<std::uint32_t>() >> 1 : 1;

    Bytes packet(wire::kHeaderBytes);
    std::byte* const p = packet.data();
    p[0] = static_cast<std::byte>(wire::kVersion << 4 | type);
    p[1] = static_cast<std::byte>(flags);
    wire::StoreBig(static_cast<std::uint16_t>(from), p + 2);
    wire::StoreBig(std::uint32_t{77}, p + 4);
    wire::StoreBig(std::uint16_t{3}, p + 8);
    const auto kind = static_cast<MessageType>(type);
    const bool names_shard = kind != MessageType::kOpen && kind != MessageType::kReport;
    wire::StoreBig(names_shard ? shard : std::uint16_t{0}, p + 10);
    wire::StoreBig(static_cast<std::uint32_t>(op), p + 12);
    wire::StoreBig(wire::IsPayloadType(kind) ? cell : 0, p + 16);
    wire::StoreBig(static_cast<std::uint32_t>(numbers_[from]), p + 20);
    const Bytes body = BodyOf(input, kind);
    packet.insert(packet.end(), body.begin(), body.end());
    const auto head = std::span<std::byte>(packet).first<wire::kHeaderBytes>();
    seal_[from].Seal(head, std::span(packet).subspan(wire::kHeaderBytes), {}, op,
                     numbers_[from]);
    port_.Deliver(packet);
  }

  Bytes BodyOf(Input& input, MessageType type) {
    if (input.Below(8) == 7) {
      const InputBytes raw = input.Raw(input.Number());
      return {raw.begin(), raw.end()};
    }
    switch (type) {
      case MessageType::kOpen:
        return OpenBody(input);
      case MessageType::kData:
      case MessageType::kResult:
        return Bytes(PayloadBytes(input), std::byte{2});
      case MessageType::kReport: {
        Bytes body(wire::kReportBlockBytes);
        wire::WriteReport(ReadReport(input), body);
        return body;
      }
      case MessageType::kNack:
        return NackBody(input);
      case MessageType::kNotYet:
        return {static_cast<std::byte>(input.Below(2)), static_cast<std::byte>(input.Below(2)),
                std::byte{0}, std::byte{0}};
      case MessageType::kSets:
        return SetsBody(input);
      case MessageType::kStatement:
      case MessageType::kProbe:
        break;
    }
    return Bytes(wire::kStatementFixedBytes);
  }

  // A full cell, or what the last cell of a shard of the last call has, or anything.
  std::size_t PayloadBytes(Input& input) {
    const std::uint32_t cell_bytes = engine_.group().settings().cell_bytes;
    const auto element_bytes = static_cast<std::uint32_t>(ElementBytes(spec_.type));
    const ubt::Grid grid(spec_.count, element_bytes, kRanks, cell_bytes);
    const std::uint32_t choice = input.Below(8);
    if (choice == 0) return 1 + input.Number<std::uint16_t>() % 1500;
    if (choice == 1) return cell_bytes / element_bytes * element_bytes;
    const std::uint64_t full = cell_bytes / element_bytes * element_bytes;
    const std::uint64_t bytes = grid.ShardElements(choice % kRanks) * element_bytes;
    return std::max<std::uint64_t>(1, choice < 5 ? bytes % full : std::min(bytes, full));
  }

  // Small numbers about where the engine is, or the largest there are.
  std::uint64_t OpLike(Input& input) {
    const std::uint32_t choice = input.Below(16);
    return choice == 15 ? ~std::uint64_t{0} : engine_.group().called() + choice - 8;
  }

  wire::ReportBlock ReadReport(Input& input) {
    wire::ReportBlock report;
    report.credit = input.Below(4) == 0 ? input.Number<std::uint32_t>() : 64;
    report.highest_low = input.Below(4) == 0 ? input.Number<std::uint32_t>() : input.Number();
    report.hold_ns = std::uint32_t{input.Number()} << 24;
    report.opened = OpLike(input);
    report.called = OpLike(input);
    report.done = OpLike(input);
    report.divergent = OpLike(input);
    report.age_ns = std::uint64_t{input.Number()} << input.Below(64);
    return report;
  }

  Bytes OpenBody(Input& input) {
    const Spec spec = input.Below(4) == 0 ? ReadSpec(input) : spec_;
    wire::Open open;
    open.report = ReadReport(input);
    open.count = input.Below(16) == 15 ? ~std::uint64_t{0} : spec.count;
    open.data_type = static_cast<std::uint8_t>(spec.type);
    open.reduce_op = static_cast<std::uint8_t>(spec.reduce);
    open.mode = static_cast<std::uint8_t>(spec.mode);
    Bytes body(wire::kOpenBytes);
    wire::WriteOpen(open, body);
    return body;
  }

  wire::CellRange ReadRange(Input& input) {
    wire::CellRange range{input.Below(8), 1 + input.Below(8)};
    const std::uint32_t choice = input.Below(8);
    if (choice == 7) range = {input.Number<std::uint32_t>(), input.Number<std::uint32_t>()};
    if (choice == 6) range.count = ~range.first;  // up to the last there can be
    return wire::Valid(range) ? range : wire::CellRange{~std::uint32_t{0} - 1, 1};
  }

  Bytes NackBody(Input& input) {
    wire::Nack nack;
    nack.stage = static_cast<Stage>(input.Below(2));
    nack.sets_only = input.Below(4) == 0;
    nack.highest_low = input.Below(4) == 0 ? input.Number<std::uint32_t>() : input.Number();
    nack.hold_ns = std::uint32_t{input.Number()} << 24;
    nack.range_count = 1 + input.Below(wire::kNackRangesMax);
    for (std::uint32_t i = 0; i < nack.range_count; ++i) nack.ranges[i] = ReadRange(input);
    Bytes body(wire::NackBytes(nack.range_count));
    wire::WriteNack(nack, body);
    return body;
  }

  Bytes SetsBody(Input& input) {
    Bytes body(1024);
    wire::SetsWriter writer(body, wire::SetBytes(kRanks));
    const std::uint32_t runs = 1 + input.Below(8);
    for (std::uint32_t i = 0; i < runs; ++i) {
      const std::array<std::byte, 1> set{static_cast<std::byte>(input.Below(8))};
      OR_CHECK(writer.Append(ReadRange(input), set));
    }
    body.resize(writer.bytes_written());
    return body;
  }

  FakePort port_;
  std::array<PacketNumber, kRanks> numbers_{};
  std::size_t ended_ = 0;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  Engine engine_;
  const wire::GroupKey key_;
  std::vector<wire::Sealer> seal_;
  Spec spec_;
  Instant now_ = InstantFromNanos(1'000'000'000);
};

}  // namespace

void Insider(InputBytes bytes) {
  Input input(bytes);
  Victim victim(input.Below(2) == 0 ? 0 : 0xfffffff0);  // half of them near a wrap
  while (!input.empty()) victim.Step(input);
  victim.Finish();
}

}  // namespace optireduce::fuzz
