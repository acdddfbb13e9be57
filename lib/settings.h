// The values of all options, as the code reads them. Each has exactly one row in lib/config.cc,
// with its path, type, default, range, help, and whether all ranks must have the same value.
#ifndef OPTIREDUCE_LIB_SETTINGS_H_
#define OPTIREDUCE_LIB_SETTINGS_H_

#include <cstdint>
#include <string>

#include "optireduce/time.h"
#include "optireduce/types.h"

namespace optireduce {

enum class TagMode : std::uint8_t { kHeader = 0, kFull = 1, kOff = 2 };
enum class CheckMode : std::uint8_t { kAuto = 0, kOn = 1, kOff = 2 };  // auto: on
enum class AddressFamily : std::uint8_t { kAny = 0, kIpv4 = 4, kIpv6 = 6 };
enum class Offload : std::uint8_t { kAuto = 0, kOff = 1 };
enum class Toggle : std::uint8_t { kOff = 0, kOn = 1 };
enum class StateSignalChoice : std::uint8_t { kOff = 0, kUser1 = 1, kUser2 = 2 };
enum class LogLevel : std::uint8_t { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

struct Settings {
  // What ops are by default.
  Mode mode = Mode::kExact;
  Duration op_timeout{};
  Duration op_warning{};
  std::uint64_t ops_behind_max = 0;
  std::uint64_t ops_in_flight_max = 0;
  std::uint64_t bucket_bytes_max = 0;

  // Bounded mode.
  std::uint64_t bounded_bytes_min = 0;
  Duration bounded_bound{};
  std::uint64_t bounded_scatter_share_pct = 0;
  std::uint64_t bounded_fetch_grace_pct = 0;  // of the bound; 0: no late fetch

  // Transport.
  std::uint64_t path_mtu = 0;
  std::uint64_t credit_bytes_total = 0;
  std::uint64_t credit_bytes_start = 0;
  std::uint64_t arena_bytes_max = 0;
  Duration spin{};

  // Addresses.
  std::string net_bind;
  std::string net_advertise;
  AddressFamily net_family = AddressFamily::kAny;
  std::uint64_t udp_socket_buffer_bytes = 0;
  Offload udp_gso = Offload::kAuto;
  Offload udp_gro = Offload::kAuto;

  // Meeting.
  Duration rendezvous_timeout{};

  // Security.
  TagMode security_tag = TagMode::kHeader;
  CheckMode security_check = CheckMode::kAuto;
  std::string job_key_file;

  // Faults injected into what this rank receives (tests, benchmarks).
  double fault_loss_pct = 0;
  double fault_burst_pct = 0;
  std::uint64_t fault_burst_packets = 0;
  double fault_duplicate_pct = 0;
  double fault_reorder_pct = 0;
  double fault_corrupt_pct = 0;
  Duration fault_delay{};
  Duration fault_clog{};
  Duration fault_clog_every{};
  double fault_send_refused_pct = 0;
  std::uint64_t fault_seed = 0;

  // What a person may want to see.
  LogLevel log_level = LogLevel::kWarning;
  Toggle log_ops = Toggle::kOff;
  StateSignalChoice state_signal = StateSignalChoice::kOff;
  std::string state_file;
  std::string flight_record_file;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_SETTINGS_H_
