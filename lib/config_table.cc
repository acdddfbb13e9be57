#include "lib/config_table.h"

#include <array>
#include <type_traits>

namespace optireduce {
namespace {

template <typename Enum>
constexpr Choice Named(std::string_view name, Enum value) {
  return {name, static_cast<std::uint8_t>(value)};
}

constexpr std::array kModes = {Named("exact", Mode::kExact), Named("bounded", Mode::kBounded)};
constexpr std::array kFamilies = {Named("any", AddressFamily::kAny),
                                  Named("ipv4", AddressFamily::kIpv4),
                                  Named("ipv6", AddressFamily::kIpv6)};
constexpr std::array kOffloads = {Named("auto", Offload::kAuto), Named("off", Offload::kOff)};
constexpr std::array kTags = {Named("header", TagMode::kHeader), Named("full", TagMode::kFull),
                              Named("off", TagMode::kOff)};
constexpr std::array kChecks = {Named("auto", CheckMode::kAuto), Named("on", CheckMode::kOn),
                                Named("off", CheckMode::kOff)};
constexpr std::array kToggles = {Named("off", Toggle::kOff), Named("on", Toggle::kOn)};
constexpr std::array kStateSignals = {Named("off", StateSignalChoice::kOff),
                                      Named("usr1", StateSignalChoice::kUser1),
                                      Named("usr2", StateSignalChoice::kUser2)};
constexpr std::array kLogLevels = {
    Named("error", LogLevel::kError), Named("warning", LogLevel::kWarning),
    Named("info", LogLevel::kInfo), Named("debug", LogLevel::kDebug)};

template <auto Member>
constexpr ChoiceMember Enumerated(std::span<const Choice> choices) {
  using Enum = std::remove_cvref_t<decltype(Settings{}.*Member)>;
  return {choices,
          [](const Settings& settings) { return static_cast<std::uint8_t>(settings.*Member); },
          [](Settings& settings, std::uint8_t value) {
            settings.*Member = static_cast<Enum>(value);
          }};
}

constexpr bool kWire = true;
constexpr bool kLocal = false;

using enum OptionKind;
using S = Settings;

constexpr std::array kOptions = {
    // What ops are by default.
    Option{"mode", kChoice, Enumerated<&S::mode>(kModes), "exact", "", "", kWire,
           "What ops are by default. exact: every contribution is in, or the op fails. bounded: "
           "SUM and AVG of floating point tensors from bounded.bytes_min on end by their bound, "
           "with what was left out reported; all other ops stay exact."},
    Option{"op_timeout", kDuration, &S::op_timeout, "5m", "1ms", "24h", kLocal,
           "An op that has not ended after this time fails and names the silent rank. A rank that "
           "writes a checkpoint between its ops lets the others wait that long."},
    Option{"op_warning", kDuration, &S::op_warning, "10s", "0", "24h", kLocal,
           "While no op of this rank ends, a warning says so each time that this has passed, and "
           "which ranks it waits for. 0: never."},
    Option{"ops_behind_max", kCount, &S::ops_behind_max, "8", "1", "32", kWire,
           "An op starts only when every rank has called the op this many before it: the memory "
           "of results kept for slow ranks grows with it."},
    Option{"ops_in_flight_max", kCount, &S::ops_in_flight_max, "8", "1", "32", kLocal,
           "Ops of this rank that may run at once; a call beyond them waits."},
    Option{"bucket_bytes_max", kBytes, &S::bucket_bytes_max, "64M", "64K", "1G", kWire,
           "A larger tensor travels as several ops of at most this size."},
    // Bounded mode.
    Option{"bounded.bytes_min", kBytes, &S::bounded_bytes_min, "64K", "0", "1T", kWire,
           "Smaller tensors are exact in bounded mode too."},
    Option{"bounded.bound", kDuration, &S::bounded_bound, "500ms", "1ms", "1h", kLocal,
           "From the start of the median rank to the deadline of a bounded op."},
    Option{"bounded.scatter_share_pct", kPercent, &S::bounded_scatter_share_pct, "75", "10", "95",
           kLocal,
           "The part of the bound after which an owner closes its cells with whoever is in; the "
           "rest is for the results to arrive."},
    Option{"bounded.fetch_grace_pct", kPercent, &S::bounded_fetch_grace_pct, "100", "0", "1000",
           kLocal,
           "How long past the deadline a rank still fetches results that it lacks, as a part of "
           "the bound, before its op ends divergent; 0: no late fetch."},
    // Transport.
    Option{"path_mtu", kBytes, &S::path_mtu, "0", "0", "32K", kLocal,
           "Largest IP packet to try, at least 576 (IPv6: 1280); 0: what the interface takes, over "
           "loopback 1500. The ranks probe all pairs before the first op, and the smallest size "
           "that passes everywhere fixes the size of a cell. A send of the kernel holds two "
           "packets at least, hence the limit."},
    Option{"credit.bytes_total", kBytes, &S::credit_bytes_total, "1M", "64K", "1G", kLocal,
           "What all senders together may have in flight to this rank; never more than half of "
           "what its receive queue holds."},
    Option{"credit.bytes_start", kBytes, &S::credit_bytes_start, "64K", "2K", "64M", kLocal,
           "What one sender may have in flight to this rank before its first report, where an "
           "equal share of credit.bytes_total is not less."},
    Option{"arena.bytes_max", kBytes, &S::arena_bytes_max, "256M", "1M", "64G", kLocal,
           "Memory for contributions that wait, sums, and results kept for slow ranks."},
    Option{"spin", kDuration, &S::spin, "50us", "0", "10ms", kLocal,
           "How long an engine that awaits packets looks for them, giving way to other threads, "
           "before it sleeps in the kernel. Looks that find nothing make the next ones rarer, down "
           "to one in 64 sleeps. 0: never."},
    // Addresses.
    Option{"net.bind", kText, &S::net_bind, "", "", "", kLocal,
           "Address to listen on; empty: the one that leads to the master."},
    Option{"net.advertise", kText, &S::net_advertise, "", "", "", kLocal,
           "Address that the peers are told to send to; empty: the one listened on."},
    Option{"net.family", kChoice, Enumerated<&S::net_family>(kFamilies), "any", "", "", kLocal,
           "Address family to use."},
    Option{"udp.socket_buffer_bytes", kBytes, &S::udp_socket_buffer_bytes, "8M", "4K", "1G",
           kLocal,
           "Size asked for the receive and send queues of the socket; a kernel limit that clips "
           "it is reported."},
    Option{"udp.gso", kChoice, Enumerated<&S::udp_gso>(kOffloads), "auto", "", "", kLocal,
           "Segmentation offload on sending: auto uses it where the kernel has it."},
    Option{"udp.gro", kChoice, Enumerated<&S::udp_gro>(kOffloads), "auto", "", "", kLocal,
           "Receive offload: auto uses it where the kernel has it."},
    // Meeting.
    Option{"rendezvous.timeout", kDuration, &S::rendezvous_timeout, "2m", "10ms", "24h", kLocal,
           "How long to wait at the start until all ranks are in."},
    // Security.
    Option{"security.tag", kChoice, Enumerated<&S::security_tag>(kTags), "header", "", "", kWire,
           "What the authentication tag of a packet covers. header: the header, and the whole of "
           "all messages but DATA and RESULT; full: the whole of every packet; off: a random "
           "group cookie stands in its place."},
    Option{"security.check", kChoice, Enumerated<&S::security_check>(kChecks), "auto", "", "",
           kWire,
           "CRC-32C over payloads, against corruption that the UDP checksum misses. auto: on."},
    Option{"job_key_file", kText, &S::job_key_file, "", "", "", kLocal,
           "Path of a file with the job key: nobody without it joins. Empty: the master draws a "
           "key. The key itself is never an option, nor printed."},
    // Injected faults.
    Option{"fault.loss_pct", kNumber, &S::fault_loss_pct, "0", "0", "100", kLocal,
           "For tests: per cent of the packets received by this rank that are dropped."},
    Option{"fault.burst_pct", kNumber, &S::fault_burst_pct, "0", "0", "100", kLocal,
           "For tests: per cent of the packets received by this rank with which a burst of loss "
           "begins."},
    Option{"fault.burst_packets", kCount, &S::fault_burst_packets, "20", "1", "100000", kLocal,
           "For tests: packets of such a burst, on average."},
    Option{"fault.duplicate_pct", kNumber, &S::fault_duplicate_pct, "0", "0", "100", kLocal,
           "For tests: per cent of the packets received by this rank that come twice."},
    Option{"fault.reorder_pct", kNumber, &S::fault_reorder_pct, "0", "0", "100", kLocal,
           "For tests: per cent of the packets received by this rank that later ones overtake."},
    Option{"fault.corrupt_pct", kNumber, &S::fault_corrupt_pct, "0", "0", "100", kLocal,
           "For tests: per cent of the packets received by this rank that have a bit flipped."},
    Option{"fault.delay", kDuration, &S::fault_delay, "0", "0", "10s", kLocal,
           "For tests: added to the way of every packet received by this rank."},
    Option{"fault.clog", kDuration, &S::fault_clog, "0", "0", "10s", kLocal,
           "For tests: once in every fault.clog_every, packets received by this rank wait until so "
           "much time is over."},
    Option{"fault.clog_every", kDuration, &S::fault_clog_every, "1s", "1ms", "1h", kLocal,
           "For tests: from the beginning of a clog to that of the next."},
    Option{"fault.send_refused_pct", kNumber, &S::fault_send_refused_pct, "0", "0", "100", kLocal,
           "For tests: per cent of this rank's sends that fail as if the kernel had refused them; "
           "what they hold is lost."},
    Option{"fault.seed", kCount, &S::fault_seed, "1", "0", "18446744073709551615", kLocal,
           "For tests: seed of the injected faults; the rank is mixed in."},
    Option{"log.level", kChoice, Enumerated<&S::log_level>(kLogLevels), "warning", "", "", kLocal,
           "Least important lines written to standard error."},
    Option{"log.ops", kChoice, Enumerated<&S::log_ops>(kToggles), "off", "", "", kLocal,
           "on: one line on standard error for each op that ends, however many there are."},
    // To look into a running or a failed job.
    Option{"state.signal", kChoice, Enumerated<&S::state_signal>(kStateSignals), "off", "", "",
           kLocal,
           "Signal after which each communicator of the process shows its ops, its peers and its "
           "counters. A handler of the program's own is left in place, and a line says so."},
    Option{"state.file", kText, &S::state_file, "", "", "", kLocal,
           "Path to whose end state.signal writes, with .r and the rank added; empty: standard "
           "error."},
    Option{"flight_record.file", kText, &S::flight_record_file, "", "", "", kLocal,
           "Path, with .r and the rank added, to which the last events of a rank are written when "
           "its group fails; empty: nowhere."},
};

constexpr std::array<std::string_view, 3> kOtherNames = {
    "OPTIREDUCE_CONFIG_FILE",      // the configuration file
    "OPTIREDUCE_TEST_SEEDS",       // how many seeds the simulation tests run
    "OPTIREDUCE_TEST_WRITE_DOCS",  // 1: tests of generated pages write them
};

}  // namespace

std::span<const Option> Options() { return kOptions; }

std::string EnvironmentName(std::string_view path) {
  std::string name = "OPTIREDUCE_";
  for (const char c : path) {
    if (c == '.') {
      name += '_';
    } else {
      name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return name;
}

std::span<const std::string_view> OtherEnvironmentNames() { return kOtherNames; }

}  // namespace optireduce
