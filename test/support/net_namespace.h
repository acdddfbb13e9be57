// A network of a test's own: what it does there reaches nobody else.
#ifndef OPTIREDUCE_TEST_SUPPORT_NET_NAMESPACE_H_
#define OPTIREDUCE_TEST_SUPPORT_NET_NAMESPACE_H_

#include <functional>
#include <string>

namespace optireduce::testing {

// Runs `body` in a new network namespace with loopback up and after these shell commands; false,
// without running it, where that is not allowed. On the caller's thread, for bodies that fork.
bool InNetNamespace(const std::string& commands, const std::function<void()>& body);

}  // namespace optireduce::testing

#endif  // OPTIREDUCE_TEST_SUPPORT_NET_NAMESPACE_H_
