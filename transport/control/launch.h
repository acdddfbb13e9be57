// Who a process is in its job and where the job meets, from the variables that launchers set:
// torchrun, Open MPI, MPICH's Hydra, MVAPICH and srun. Pure: the environment is handed in. Any
// thread. It starts nothing and looks nothing up.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_LAUNCH_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_LAUNCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/environment.h"
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
  std::optional<std::uint32_t> local_rank;  // among the ranks of its host, where a launcher says so
  std::string origin;                       // where rank and world size are from, for the log
};

// What the caller says itself; each wins over its variable.
struct ExplicitLaunch {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<std::string> master_address;
  std::optional<int> master_port;
  int listen_fd = -1;
};

// Reads "NAME=VALUE" strings. MASTER_ADDR and MASTER_PORT say where to meet; the first may carry
// the port ("[::1]:29500"), and under srun its default is the step's first host. World size 1 needs
// neither. Rank and world size are, the first that is there:
//   RANK and WORLD_SIZE                             torchrun, or by hand; LOCAL_RANK
//   OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE   Open MPI; OMPI_COMM_WORLD_LOCAL_RANK
//   PMI_RANK and PMI_SIZE                           MPICH, Hydra; MPI_LOCALRANKID
//   MV2_COMM_WORLD_RANK and MV2_COMM_WORLD_SIZE     MVAPICH; MV2_COMM_WORLD_LOCAL_RANK
//   SLURM_PROCID and SLURM_STEP_NUM_TASKS or SLURM_NTASKS   srun; SLURM_LOCALID
// Half a set is a fault. So are sets that contradict each other, unless one launcher runs inside
// the other. SLURM_NTASKS without srun, as in a batch script, starts nobody and is a fault by
// itself. All faults come in one status.
Result<Launch> LaunchFrom(EnvironmentView environment, const ExplicitLaunch& explicit_values);

// Whether any of these variables is there. `several`: the one, with its value, of whoever started
// more than one process; else empty. Nothing is refused.
bool LauncherSeen(EnvironmentView environment, std::string* several);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_LAUNCH_H_
