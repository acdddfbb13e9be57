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
  return out;
}

}  // namespace optireduce
