// The public C++ API: make a communicator, reduce, look at what happened.
//
//   auto made = optireduce::Communicator::Create(options);       // blocks until all ranks are in
//   if (!made.ok()) { ... made.status().text() says who, what and what to do ... }
//   auto& comm = **made;
//   optireduce::Report report = comm.AllReduce(in, out, count, optireduce::DataType::kFloat32,
//                                              optireduce::ReduceOp::kSum).Wait();
//
// Threads: every member may be called from any thread. All ranks must make the same calls in the
// same order; from several threads of one rank, the caller provides that order.
// The library owns no process flags and writes nothing to stdout. It installs a signal handler only
// where option `state.signal` asks for it and the program has none.
#ifndef OPTIREDUCE_COMMUNICATOR_H_
#define OPTIREDUCE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optireduce/status.h"
#include "optireduce/time.h"
#include "optireduce/types.h"

namespace optireduce {

// How one op ended, seen from this rank.
struct Report {
  enum class Outcome : std::uint8_t {
    kAgreed,     // every cell is held: the same bits on every rank that agreed
    kDivergent,  // this rank lacks cells (they are 0); bounded mode only
    kFailed,     // `status` says why; the output is unspecified
  };
  Outcome outcome = Outcome::kAgreed;
  Status status;

  // One element of one rank's contribution is one entry: an op has elements * ranks of them.
  std::uint64_t entries = 0;
  // Left out of the result and carried into a later op of the same key (no residual yet: 0).
  std::uint64_t late_entries = 0;
  // Left out of the result for good. The same number on every rank that agreed.
  std::uint64_t lost_entries = 0;
  // Entries this rank contributed that were left out (part of the two above).
  std::uint64_t own_left_out_entries = 0;
  // Elements that this rank lacks (divergent: set to 0), in [first, first + count) ranges.
  std::uint64_t missing_elements = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing_ranges;

  Duration elapsed{0};  // from the call to the end, by this rank's clock
  // Bounded ops: the part of `elapsed` after this rank's deadline (0: ended in time). It includes
  // the time for which a busy network kept the tensor.
  Duration after_deadline{0};
};

struct AllReduceOptions {
  // Names the bucket from step to step; 0: none. The same on all ranks, or the op is refused.
  std::uint64_t key = 0;
  // Unset: the group's mode (option `mode`).
  std::optional<Mode> mode;
  // Unset: option `op_timeout`.
  std::optional<Duration> timeout;
  // Called once when the op has ended, from a thread of the communicator that must not be blocked
  // for long; the op's memory is the caller's again.
  std::function<void(const Report&)> on_end;
};

// A running op. Copies share it.
class Work {
 public:
  struct State;
  explicit Work(std::shared_ptr<State> state);
  bool Finished() const;
  // Blocks until the op has ended; the calling thread may move packets meanwhile.
  const Report& Wait();

 private:
  std::shared_ptr<State> state_;
};

struct CommunicatorOptions {
  // Options by name, e.g. {"mode", "bounded"}; they win over the environment (OPTIREDUCE_MODE).
  // `optireduce-bench --print-config` lists all with their origins.
  std::vector<std::pair<std::string, std::string>> settings;
  // Path of a file of options, which the environment and `settings` win over (docs/configuration.md
  // has its form). Empty: that of OPTIREDUCE_CONFIG_FILE, if set.
  std::string config_file;
  // Who we are and where the group meets. Unset: what the launcher's variables say.
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<std::string> master_address;
  std::optional<int> master_port;
  // Rank 0 only: an open listening TCP socket, the communicator's from here on; -1: none.
  int listen_fd = -1;
};

// Whether the environment says which rank this process is, or how many there are (torchrun's,
// mpirun's or srun's variables); for programs that can also start their ranks themselves. `several`
// gets the variable of a launcher that started more than one process, such as
// "OMPI_COMM_WORLD_SIZE=4"; else it is empty.
bool LauncherSeen(std::string* several);

struct PeerStats {
  std::string address;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_repeated = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t packets_missing = 0;  // that the peer sent and that never came, or not yet
  Duration smoothed_rtt{0};
  std::uint32_t packets_in_flight = 0;  // to the peer, of DATA and RESULT
  std::uint32_t credit_packets = 0;     // that may be in flight to it
  bool heard = false;                   // anything, ever
  Duration since_heard{0};              // 0 unless heard
  bool left = false;                    // it said goodbye
};

struct Stats {
  // (name, value), in a fixed order; names are documented in docs/counters.md.
  std::vector<std::pair<std::string, std::uint64_t>> counters;
  std::vector<PeerStats> peers;  // by rank; own entry empty
};

class Communicator {
 public:
  // Meets the other ranks and starts to serve. Blocks at most option `rendezvous.timeout`.
  static Result<std::unique_ptr<Communicator>> Create(const CommunicatorOptions& options);

  // Serves repairs until every rank has what it needs (at most 1 s), ends what has not ended with
  // kAborted, then leaves the group. Not from within an on_end. In a forked child it does nothing.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  // What the data plane is: "udp 10.0.0.1:4711 gso=on gro=on receive queue 3.9 MB".
  std::string transport() const;
  // Hosts of all ranks, by rank.
  const std::vector<std::string>& hosts() const;
  // The configuration in force: (option, value, origin).
  struct SettingView {
    std::string name, value, origin;
  };
  std::vector<SettingView> settings() const;

  // out[i] = reduction over ranks of in[i], for count elements; in == out reduces in place,
  // partial overlap is refused. Both stay the communicator's until the op has ended. Never blocks
  // for the network, but waits for room when `ops_in_flight_max` ops are running.
  // A wrong argument gives a Work that has already ended with kFailed.
  Work AllReduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                 const AllReduceOptions& options = {});

  // Ends on each rank after every rank has called it. Exact, op timeout applies.
  Status Barrier();

  // Ends every open and later op of the group with this cause, on all ranks.
  void Abort(const Status& cause);

  Stats stats() const;
  // The last events of this rank's engine, one per line, oldest first: for a report of a failure.
  std::string FlightRecord() const;

 private:
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_COMMUNICATOR_H_
