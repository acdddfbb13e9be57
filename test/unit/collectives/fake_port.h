// Ports in memory, and an engine between them whose peers are engines or made up.
#ifndef OPTIREDUCE_TEST_UNIT_COLLECTIVES_FAKE_PORT_H_
#define OPTIREDUCE_TEST_UNIT_COLLECTIVES_FAKE_PORT_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "collectives/engine.h"
#include "lib/settings.h"
#include "transport/packet_io.h"
#include "transport/wire/keys.h"
#include "transport/wire/serialize.h"

namespace optireduce {

using Bytes = std::vector<std::byte>;

// Payloads are read at Flush(), as zero-copy sends read them: whoever changes them before that
// corrupts packets.
class FakePort : public PacketPort {
 public:
  FakePort() { limits_ = {1472, 64, std::size_t{4} << 20}; }

  const PortLimits& limits() const override { return limits_; }
  PortCounters counters() const override { return counts; }
  bool Send(std::uint32_t peer, std::span<const TxSegment> segments) override {
    if (queue_.size() >= queue_max) return false;
    for (const TxSegment& segment : segments) {
      queue_.push_back({peer, Bytes(segment.header.begin(), segment.header.end()),
                        segment.payload});
    }
    return true;
  }
  bool Flush(Instant) override {
    ++flushes;
    if (busy || (busy_every_second && flushes % 2 == 0)) return queue_.empty();
    for (const Queued& packet : queue_) {
      Bytes bytes = packet.header;
      bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
      if (packet.peer < peers.size() && peers[packet.peer] != nullptr) {
        peers[packet.peer]->Deliver(bytes);
      }
      sent.emplace_back(packet.peer, std::move(bytes));
    }
    queue_.clear();
    return true;
  }
  std::span<const RxPacket> Receive(Instant) override {
    const std::lock_guard lock(mutex_);
    memory_.clear();
    burst_.clear();
    while (!inbox_.empty() && memory_.size() < 16) {
      memory_.push_back(std::move(inbox_.front()));
      inbox_.pop_front();
    }
    for (const Bytes& bytes : memory_) burst_.push_back({bytes});
    return burst_;
  }
  void Wait(Duration at_most) override {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, at_most, [this] { return wake_ || !inbox_.empty(); });
    wake_ = false;
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    wake_ = true;
    woken_.notify_all();
  }

  void Deliver(const Bytes& bytes) {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(bytes);
    woken_.notify_all();
  }
  bool InboxEmpty() {
    const std::lock_guard lock(mutex_);
    return inbox_.empty();
  }
  std::size_t queued() const { return queue_.size(); }

  std::vector<FakePort*> peers;  // by rank
  std::vector<std::pair<std::uint32_t, Bytes>> sent;
  PortCounters counts;
  std::size_t queue_max = 10'000;  // packets
  bool busy = false;
  bool busy_every_second = false;
  int flushes = 0;

 private:
  struct Queued {
    std::uint32_t peer;
    Bytes header;
    std::span<const std::byte> payload;
  };
  PortLimits limits_;
  std::deque<Queued> queue_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable woken_;
  bool wake_ = false;
  std::deque<Bytes> inbox_;
  std::vector<Bytes> memory_;
  std::vector<RxPacket> burst_;
};

inline wire::JobKey TestKey() {
  std::array<std::byte, 32> bytes;
  bytes.fill(std::byte{0x42});
  return wire::JobKey(bytes);
}

inline Settings TestSettings() {
  Settings settings;
  settings.ops_behind_max = 8;
  settings.ops_in_flight_max = 8;
  settings.bucket_bytes_max = 1 << 20;
  settings.bounded_bound = std::chrono::milliseconds(20);
  settings.bounded_scatter_share_pct = 75;
  settings.bounded_fetch_grace_pct = 100;
  settings.credit_bytes_total = 1 << 20;
  settings.credit_bytes_start = 64 << 10;
  return settings;
}

inline EngineOptions TestOptions(Rank rank, std::uint32_t ranks, const Settings& settings) {
  EngineOptions options(TestKey());
  options.group = MakeGroupSettings(settings, FakePort().limits(), rank, ranks);
  options.group.group_id = 77;
  options.group.epoch = 3;
  options.arena_bytes = std::size_t{8} << 20;
  options.bucket_bytes_max = settings.bucket_bytes_max;
  options.check = true;
  return options;
}

// A call of one rank, with its tensor of int64 in place.
struct TestCall {
  explicit TestCall(const std::vector<std::int64_t>& values) : tensor(values) {
    call->in = reinterpret_cast<const std::byte*>(tensor.data());
    call->out = reinterpret_cast<std::byte*>(tensor.data());
    call->count = tensor.size();
    call->type = DataType::kInt64;
    call->timeout = std::chrono::seconds(10);
  }
  TestCall(const TestCall&) = delete;
  TestCall& operator=(const TestCall&) = delete;
  std::vector<std::int64_t> tensor;
  std::shared_ptr<Call> call = std::make_shared<Call>();
};

// Rank 1 of a group of 2, made up packet by packet for the engine of rank 0.
class SealedPeer {
 public:
  explicit SealedPeer(FakePort* port, Rank from = 1, Rank to = 0)
      : to_(port),
        from_(from),
        key_(wire::DeriveGroupKey(TestKey(), 77, 3)),
        seal_(wire::DerivePairKey(key_, from, to), wire::DeriveCookie(key_), TagMode::kHeader,
              true) {}

  Bytes Make(wire::MessageType type, OpNumber op, Rank shard, CellIndex cell, std::uint8_t flags,
             std::span<const std::byte> body) {
    wire::Header header;
    header.type = type;
    header.flags = flags;
    header.sender = static_cast<std::uint16_t>(from_);
    header.group = 77;
    header.epoch = 3;
    header.shard = static_cast<std::uint16_t>(shard);
    header.op_low = static_cast<std::uint32_t>(op);
    header.cell = cell;
    header.number_low = static_cast<std::uint32_t>(++number_);
    Bytes packet(wire::kHeaderBytes + body.size());
    const auto head = std::span<std::byte>(packet).first<wire::kHeaderBytes>();
    wire::WriteHeader(header, head);
    std::copy(body.begin(), body.end(), packet.begin() + wire::kHeaderBytes);
    if (wire::IsPayloadType(type)) {
      seal_.Seal(head, {}, body, op, number_);
    } else {
      seal_.Seal(head, body, {}, op, number_);
    }
    return packet;
  }
  void Open(OpNumber op, std::uint64_t count) {
    wire::Open open;
    open.report = report;
    open.report.called = op;
    open.count = count;
    open.data_type = static_cast<std::uint8_t>(DataType::kInt64);
    Bytes body(wire::kOpenBytes);
    wire::WriteOpen(open, body);
    to_->Deliver(Make(wire::MessageType::kOpen, op, 0, 0, 0, body));
  }
  void Data(OpNumber op, CellIndex cell, const std::vector<std::int64_t>& values) {
    to_->Deliver(Make(wire::MessageType::kData, op, 0, cell, 0,
                      std::as_bytes(std::span(values))));
  }
  void Result(OpNumber op, CellIndex cell, const std::vector<std::int64_t>& values) {
    to_->Deliver(Make(wire::MessageType::kResult, op, from_, cell, wire::kFlagComplete,
                      std::as_bytes(std::span(values))));
  }
  void Report(std::uint8_t flags = 0) {
    Bytes body(wire::kReportBlockBytes);
    wire::WriteReport(report, body);
    to_->Deliver(Make(wire::MessageType::kReport, report.called, 0, 0, flags, body));
  }
  void NackResults(OpNumber op) {
    wire::Nack nack;
    nack.stage = Stage::kBroadcast;
    nack.highest_low = 1000;  // past all that was sent
    nack.range_count = 1;
    nack.ranges[0] = {0, 1};
    Bytes body(wire::NackBytes(1));
    wire::WriteNack(nack, body);
    to_->Deliver(Make(wire::MessageType::kNack, op, 0, 0, 0, body));
  }

  wire::ReportBlock report{.credit = 90};

 private:
  FakePort* to_;
  Rank from_;
  wire::GroupKey key_;
  wire::Sealer seal_;
  PacketNumber number_ = 0;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TEST_UNIT_COLLECTIVES_FAKE_PORT_H_
