// Engines at work, and who sees and sends packets of theirs without the key: nothing of that
// changes a result, ends an op or stays in memory.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "lib/check.h"
#include "test/fuzz/input.h"
#include "test/fuzz/targets.h"
#include "test/unit/collectives/fake_port.h"
#include "transport/wire/byte_order.h"

namespace optireduce::fuzz {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 3;
constexpr std::size_t kPacketBytesMax = 1472;

// Three engines, one op; small integers in floats, so that the sum has one right value.
class Job {
 public:
  Job(std::size_t count, Mode mode) {
    for (auto& port : ports_) port = std::make_unique<FakePort>();
    for (Rank r = 0; r < kRanks; ++r) {
      EngineOptions options = TestOptions(r, kRanks, TestSettings());
      options.on_failure = [](const Status&, bool) { OR_CHECK(false); };
      options.on_call_end = [this](const std::shared_ptr<Call>&) { ++ended_; };
      engines_[r] = std::make_unique<Engine>(std::move(options), ports_[r].get());
      tensors_[r].resize(count);
      for (std::size_t i = 0; i < count; ++i) tensors_[r][i] = Contribution(r, i);
      auto call = std::make_shared<Call>();
      call->in = reinterpret_cast<const std::byte*>(tensors_[r].data());
      call->out = reinterpret_cast<std::byte*>(tensors_[r].data());
      call->count = count;
      call->mode = mode;
      call->timeout = std::chrono::seconds(10);
      OR_CHECK(engines_[r]->Submit(call));
    }
  }

  // What was sent in one turn arrives in the next: an attacker can be there before it.
  void Turn(Duration step) {
    now_ += step;
    for (Rank r = 0; r < kRanks; ++r) {
      const auto& sent = ports_[r]->sent;
      for (; arrived_[r] < sent.size(); ++arrived_[r]) {
        Deliver(sent[arrived_[r]].first, sent[arrived_[r]].second);
      }
    }
    for (const auto& engine : engines_) engine->Turn(now_);
  }
  void Finish() {
    for (int i = 0; i < 200 && ended_ < kRanks; ++i) Turn(microseconds(50));
    OR_CHECK(ended_ == kRanks);
    for (const std::vector<float>& tensor : tensors_) {
      for (std::size_t i = 0; i < tensor.size(); ++i) {
        OR_CHECK(tensor[i] ==
                 Contribution(0, i) + Contribution(1, i) + Contribution(2, i));
      }
    }
    const auto settled = [](const auto& engine) { return engine->Settled(); };
    for (int i = 0; i < 100 && !std::all_of(engines_.begin(), engines_.end(), settled); ++i) {
      Turn(milliseconds(1));
    }
    for (const auto& engine : engines_) {
      OR_CHECK(engine->Settled());
      OR_CHECK(engine->cells_staged() == 0);
      OR_CHECK(engine->counters().Verdicts() ==
               engine->counters().Get(Counter::kPacketsReceived));
    }
  }
  // The packet that `from` sent k before its last one, modulo what there is; and to whom.
  const std::pair<std::uint32_t, Bytes>* Seen(Rank from, std::size_t k) const {
    const auto& sent = ports_[from]->sent;
    return sent.empty() ? nullptr : &sent[sent.size() - 1 - k % sent.size()];
  }
  void Deliver(Rank to, const Bytes& packet) { ports_[to]->Deliver(packet); }

 private:
  static float Contribution(Rank rank, std::size_t i) {
    return static_cast<float>((rank + 1) * (i % 251 + 1));
  }

  std::array<std::unique_ptr<FakePort>, kRanks> ports_;
  std::array<std::unique_ptr<Engine>, kRanks> engines_;
  std::array<std::vector<float>, kRanks> tensors_;
  std::array<std::size_t, kRanks> arrived_{};
  std::uint32_t ended_ = 0;
  Instant now_ = InstantFromNanos(1'000'000'000);
};

// A number that is mostly right.
template <std::unsigned_integral T>
T Field(Input& input, T right) {
  switch (input.Below(6)) {
    case 0:
      return 0;
    case 1:
      return static_cast<T>(~T{0});
    case 2:
      return input.Number<T>();
    default:
      return right;
  }
}

Bytes Forge(Input& input) {
  Bytes packet(wire::kHeaderBytes);
  std::byte* const p = packet.data();
  p[0] = static_cast<std::byte>(Field<std::uint8_t>(input, 0x10) ^ input.Below(9));
  p[1] = static_cast<std::byte>(Field<std::uint8_t>(input, 0));
  wire::StoreBig(Field<std::uint16_t>(input, static_cast<std::uint16_t>(input.Below(kRanks))),
                 p + 2);
  wire::StoreBig(Field<std::uint32_t>(input, 77), p + 4);
  wire::StoreBig(Field<std::uint16_t>(input, 3), p + 8);
  wire::StoreBig(Field<std::uint16_t>(input, static_cast<std::uint16_t>(input.Below(kRanks))),
                 p + 10);
  wire::StoreBig(Field<std::uint32_t>(input, 1), p + 12);
  wire::StoreBig(Field<std::uint32_t>(input, input.Below(4)), p + 16);
  wire::StoreBig(Field<std::uint32_t>(input, input.Below(16)), p + 20);
  wire::StoreBig(input.Number<std::uint64_t>(), p + wire::kTagOffset);
  const InputBytes body = input.Raw(input.Number());
  packet.resize(wire::kHeaderBytes + body.size());
  std::copy(body.begin(), body.end(), packet.begin() + wire::kHeaderBytes);
  if (input.Below(4) == 0) packet.resize(input.Number<std::uint16_t>() % (2 * kPacketBytesMax));
  return packet;
}

// A packet that was seen, as it was or changed.
void SendSeen(Input& input, Job& job, bool changed) {
  const Rank from = input.Below(kRanks);
  const auto* const seen = job.Seen(from, input.Number<std::uint16_t>());
  if (seen == nullptr) return;
  Bytes packet = seen->second;
  if (!changed) {
    // To whom it was for, to somebody else, or back to who sent it.
    job.Deliver((seen->first + input.Below(kRanks)) % kRanks, packet);
    return;
  }
  const std::size_t at = input.Number<std::uint16_t>() % packet.size();
  const auto flipped = static_cast<std::byte>(std::max<std::uint8_t>(input.Number(), 1));
  switch (input.Below(4)) {
    case 0:
      packet.resize(at);
      break;
    case 1:
      packet.resize(packet.size() + 1 + at, flipped);
      break;
    default:
      packet[at] ^= flipped;
      break;
  }
  job.Deliver(seen->first, packet);
}

}  // namespace

void Outsider(InputBytes bytes) {
  Input input(bytes);
  const Mode mode = input.Below(2) == 0 ? Mode::kExact : Mode::kBounded;
  Job job(input.Number<std::uint16_t>() % 3000, mode);
  while (!input.empty()) {
    switch (input.Below(4)) {
      case 0:
        job.Turn(microseconds(input.Number()));
        break;
      case 1:
        job.Deliver(input.Below(kRanks), Forge(input));
        break;
      case 2:
        SendSeen(input, job, false);
        break;
      default:
        SendSeen(input, job, true);
        break;
    }
  }
  job.Finish();
}

}  // namespace optireduce::fuzz
