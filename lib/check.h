// Assertions that stay on in every build. A failed check is a bug of ours: it says where, lets the
// registered hook dump the flight recorder, and aborts.
#ifndef OPTIREDUCE_LIB_CHECK_H_
#define OPTIREDUCE_LIB_CHECK_H_

namespace optireduce {

// Called once before the abort. Must not allocate or throw.
using CheckHook = void (*)();
void SetCheckHook(CheckHook hook);

[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);

}  // namespace optireduce

#define OR_CHECK(expr) \
  (static_cast<bool>(expr) ? void(0) : ::optireduce::CheckFailed(#expr, __FILE__, __LINE__))

#endif  // OPTIREDUCE_LIB_CHECK_H_
