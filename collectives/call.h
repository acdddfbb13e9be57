// One all_reduce call from its submission to its end. A call larger than `bucket_bytes_max` travels
// as several ops; the call is what the caller waits for.
#ifndef OPTIREDUCE_COLLECTIVES_CALL_H_
#define OPTIREDUCE_COLLECTIVES_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "optireduce/communicator.h"

namespace optireduce {

class Driver;

// The first block is written before the call is submitted; the second belongs to the engine until
// `finished` is set (release), after which nothing changes any more.
struct Work::State {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp reduce = ReduceOp::kSum;
  Mode mode = Mode::kExact;
  std::uint64_t key = 0;
  Duration timeout{};
  std::function<void(const Report&)> on_end;
  Driver* driver = nullptr;  // who can move packets while the caller waits; null: nobody

  Instant started_at{};
  std::uint64_t next_element = 0;  // elements already handed to ops
  bool all_handed_out = false;
  std::uint32_t ops_open = 0;
  Report report;

  std::atomic<bool> finished{false};
};

using Call = Work::State;

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_CALL_H_
