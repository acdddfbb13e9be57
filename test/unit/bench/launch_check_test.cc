#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "examples/bench/launcher.h"
#include "transport/control/launch.h"

namespace optireduce::bench {
namespace {

using testing::HasSubstr;

using Environment = std::vector<std::string>;

Status Check(const Environment& environment, int local_ranks) {
  std::string several;
  const bool seen = control::LauncherSeen(environment, &several);
  return CheckLaunch(seen, several, local_ranks);
}

TEST(CheckLaunch, TakesTorchrunAndForkedRanks) {
  EXPECT_TRUE(Check(Environment{"RANK=1", "WORLD_SIZE=4"}, 0).ok());
  EXPECT_TRUE(Check(Environment{"WORLD_SIZE=1"}, 0).ok());
  EXPECT_TRUE(Check(Environment{"PATH=/bin"}, 4).ok());
  // One torchrun on each of two hosts.
  EXPECT_TRUE(Check(Environment{"SLURM_NTASKS=2", "WORLD_SIZE=8"}, 0).ok());
  // In a batch script, without srun.
  EXPECT_TRUE(Check(Environment{"SLURM_NTASKS=2"}, 4).ok());
}

// Whether their variables are whole and agree with WORLD_SIZE is for the library to say.
TEST(CheckLaunch, TakesWhatMpirunAndSrunStart) {
  for (const char* const launcher : {"OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=2", "SLURM_NTASKS=8",
                                     "MV2_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=0",
                                     "MV2_COMM_WORLD_RANK=0", "SLURM_PROCID=0"}) {
    EXPECT_TRUE(Check(Environment{launcher}, 0).ok()) << launcher;
  }
}

TEST(CheckLaunch, RefusesTwoLaunchers) {
  for (const char* const launcher : {"OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=2",
                                     "MV2_COMM_WORLD_SIZE=3", "SLURM_STEP_NUM_TASKS=2"}) {
    EXPECT_THAT(Check(Environment{launcher}, 2).text(), HasSubstr(launcher));
  }
  EXPECT_FALSE(Check(Environment{"WORLD_SIZE=4"}, 2).ok());
  EXPECT_TRUE(Check(Environment{"WORLD_SIZE=1", "PMI_SIZE=1"}, 2).ok());
}

TEST(CheckLaunch, AsksHowManyWhenNobodySays) {
  EXPECT_THAT(Check(Environment{}, 0).text(), HasSubstr("--np"));
}

// A value that is no number is for the library to refuse, with all that is wrong beside it.
TEST(CheckLaunch, LeavesBadNumbersToTheLibrary) {
  EXPECT_TRUE(Check(Environment{"WORLD_SIZE=many"}, 0).ok());
}

}  // namespace
}  // namespace optireduce::bench
