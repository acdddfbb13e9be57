#include "lib/counters.h"

#include <string>

namespace optireduce {

std::string CountersMarkdown() {
  std::string out =
      "# Counters\n"
      "\n"
      "Made from the table in `lib/counters.h`; a unit test keeps the two equal.\n"
      "`Communicator::stats()` returns them under these names, in this order. They count from the\n"
      "start of the communicator and only rise. Every received packet adds one to exactly one\n"
      "verdict, so `packets_received` is the sum of the verdicts.\n"
      "\n"
      "| counter | unit | what it counts |\n"
      "|---|---|---|\n";
  for (const CounterRow& row : kCounterRows) {
    out += "| `";
    out += row.name;
    out += "` | ";
    out += row.unit;
    out += " | ";
    out += row.help;
    out += " |\n";
  }
  out +=
      "\n"
      "Behind them stand three groups more. `port_*`: of the data port;\n"
      "`port_foreign_packets` came from an address that is no peer's, and no verdict counts them.\n"
      "`control_guests_*`, on rank 0: who came to the control port and got no seat, by why\n"
      "(`malformed`, `other_version`, `wrong_key`, `refused`: a claim of a rank that is not to be\n"
      "had, `silent`, `crowded_out` by newer, `left` by itself). `fault_*`: faults put in.\n";
  return out;
}

}  // namespace optireduce
