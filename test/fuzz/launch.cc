#include "transport/control/launch.h"

#include <string>
#include <vector>

#include "lib/check.h"
#include "test/fuzz/input.h"
#include "test/fuzz/targets.h"
#include "transport/control/endpoint.h"
#include "transport/udp/endpoint.h"

namespace optireduce::fuzz {
namespace {

void CheckAddress(const std::string& text) {
  (void)control::FamilyOf(text);
  (void)control::IsLoopback(text);
  (void)control::IsWildcard(text);
  if (const auto endpoint = Endpoint::Parse(text); endpoint.ok()) {
    const auto again = Endpoint::Parse(endpoint->ToString());
    OR_CHECK(again.ok() && *again == *endpoint);
  }
  const auto split = control::SplitHostPort(text);
  if (!split.ok() || !split->port) return;
  const auto again = control::SplitHostPort(control::JoinHostPort(split->host, *split->port));
  OR_CHECK(again.ok() && again->host == split->host && again->port == split->port);
}

}  // namespace

// Entries "NAME=VALUE" between zero bytes; each value is also taken for an address.
void Launch(InputBytes input) {
  Input entries(input);
  std::vector<std::string> environment;
  while (!entries.empty()) environment.emplace_back(entries.Text('\0'));
  for (const std::string& entry : environment) {
    CheckAddress(entry);
    CheckAddress(entry.substr(entry.find('=') + 1));
  }
  const auto launch = control::LaunchFrom(environment, {});
  if (!launch.ok()) return;
  OR_CHECK(launch->world_size >= 1 && launch->world_size <= kRanksMax);
  OR_CHECK(launch->rank < launch->world_size);
  OR_CHECK(!launch->local_rank || *launch->local_rank < launch->world_size);
  OR_CHECK(launch->world_size == 1 || !launch->master_address.empty());
  OR_CHECK(launch->world_size == 1 || launch->master_port != 0);
}

}  // namespace optireduce::fuzz
