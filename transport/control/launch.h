// Who a process is in its job and where the job meets, from the variables that launchers such as
// torchrun set. Pure: the environment is handed in. Any thread.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_LAUNCH_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_LAUNCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/ids.h"
#include "optireduce/status.h"

namespace optireduce::control {

struct Launch {
  Rank rank = 0;
  std::uint32_t world_size = 1;
  std::string master_address;  // name or numeric, without brackets; may be empty for world size 1
  std::uint16_t master_port = 0;
  // Rank 0 only: an open listening TCP socket to adopt, owned by Join from the call on; -1: none.
  int listen_fd = -1;
};

// What the caller says itself; each wins over its variable.
struct ExplicitLaunch {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<std::string> master_address;
  std::optional<int> master_port;
  int listen_fd = -1;
};

// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT out of "NAME=VALUE" strings. MASTER_ADDR may
// carry the port ("[::1]:29500"). World size 1 needs neither address nor port. All faults come in
// one status.
Result<Launch> LaunchFrom(std::span<const std::string> environment,
                          const ExplicitLaunch& explicit_values);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_LAUNCH_H_
