#include "transport/control/role.h"

#include <unistd.h>

#include "transport/control/endpoint.h"

namespace optireduce::control {

void SilenceWatch::Check(Connection::Clock::time_point now,
                         Connection::Clock::time_point heard_at,
                         Connection::Clock::duration late, const std::string& who) {
  if (now - heard_at <= kSilence) {
    if (silent_) {
      const auto length = std::chrono::duration_cast<std::chrono::milliseconds>(heard_at -
                                                                               silent_since_);
      Log(LogLevel::kWarning,
          "control: " + who + " is back after " + std::to_string(length.count()) + " ms");
    }
    silent_ = false;
    return;
  }
  if (silent_ || late > kTick) return;
  silent_ = true;
  silent_since_ = heard_at;
  Log(LogLevel::kWarning,
      "control: " + who + " has been silent for over 1 s (stopped, busy or cut off)");
}

Result<std::string> BindAndAdvertise(const LocalInfo& info, const BindData& bind_data,
                                     const std::string& address) {
  std::string local = address;
  if (!info.bind_address.empty()) {
    const Result<std::string> wanted = LocalAddress(info.bind_address, info.family);
    if (!wanted.ok()) return wanted.status().Context("address to bind");
    local = *wanted;
  }
  const Result<std::string> bound = bind_data(local);
  if (!bound.ok()) return bound.status().Context("bind the data port at " + local);
  const Result<HostPort> split = SplitHostPort(*bound);
  if (!split.ok() || !split->port) {
    return Status(Code::kInternal, "the data port has no usable endpoint: " + Quoted(*bound));
  }
  std::string told = split->host;
  // Bound to every address: the one that reaches the master reaches the others too.
  if (IsWildcard(told)) told = address;
  if (!info.advertise_address.empty()) {
    const Result<HostPort> advertised = SplitHostPort(info.advertise_address);
    if (!advertised.ok()) return advertised.status().Context("address to advertise");
    if (FamilyOf(advertised->host) == AddressFamily::kAny) {
      return Status(Code::kInvalidArgument, "address to advertise: " +
                                                Quoted(info.advertise_address) +
                                                " is not a numeric address");
    }
    told = advertised->host;
    if (advertised->port) return JoinHostPort(told, *advertised->port);
  }
  return JoinHostPort(told, *split->port);
}

Claim ClaimOf(const Launch& launch, const LocalInfo& info, const std::string& endpoint) {
  Claim claim;
  claim.rank = launch.rank;
  claim.world_size = launch.world_size;
  claim.pid = static_cast<std::uint64_t>(getpid());
  claim.config_hash = info.wire_config_hash;
  claim.version = info.version.substr(0, kVersionBytesMax);
  claim.host = info.host.substr(0, kHostBytesMax);
  claim.endpoint = endpoint;
  claim.config_text = info.wire_config_text;
  return claim;
}

}  // namespace optireduce::control
