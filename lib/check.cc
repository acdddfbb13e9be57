#include "lib/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace optireduce {
namespace {

std::atomic<CheckHook> g_hook{nullptr};

}  // namespace

void SetCheckHook(CheckHook hook) { g_hook.store(hook); }

void CheckFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "optireduce: check failed at %s:%d: %s (a bug of ours; please report)\n",
               file, line, expression);
  // Taken out before the call: a check that fails inside the hook must not call it again.
  if (CheckHook hook = g_hook.exchange(nullptr)) hook();
  std::abort();
}

}  // namespace optireduce
