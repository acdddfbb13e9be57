#include "test/support/net_namespace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

namespace optireduce::testing {

bool InNetNamespace(const std::string& commands, const std::function<void()>& body) {
  const int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (before < 0) return false;
  bool entered = false;
  if (unshare(CLONE_NEWNET) == 0) {
    // NOLINTNEXTLINE(cert-env33-c): commands of the tests themselves
    entered = std::system(("set -e; ip link set lo up; " + commands).c_str()) == 0;
    if (entered) body();
    EXPECT_EQ(setns(before, CLONE_NEWNET), 0);
  }
  close(before);
  return entered;
}

}  // namespace optireduce::testing
