// Starts ranks on this machine by fork, and tells whether another launcher started them.
//
// Main thread only, before any other thread exists: it forks.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_LAUNCHER_H_
#define OPTIREDUCE_EXAMPLES_BENCH_LAUNCHER_H_

#include <functional>
#include <string_view>

#include "optireduce/communicator.h"
#include "optireduce/status.h"

namespace optireduce::bench {

// The exit codes of the program and of each of its ranks.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;    // a rank failed
inline constexpr int kExitBadInput = 2;  // flags, environment, configuration
inline constexpr int kExitWrong = 3;     // every rank ended well, with wrong elements

// Refuses to fork ranks in each of the processes that mpirun or srun has started, and to run
// without any word of how many ranks there are. The first two are LauncherSeen()'s; local_ranks 0:
// none are to be forked.
Status CheckLaunch(bool launcher_seen, std::string_view several, int local_ranks);

// Forks `ranks` processes of one group that meets on a loopback port, which is open before the
// first fork: no other job can take it in between. Each calls `body` with its rank, world size and
// meeting point filled in, and exits with the code that it returns. Waits for all of them; when one
// fails, names the first on standard error, gives the others a few seconds to notice, then kills
// them. Returns the exit code of the whole.
int RunLocalRanks(int ranks, const std::function<int(CommunicatorOptions)>& body);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_LAUNCHER_H_
