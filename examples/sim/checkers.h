// What must hold after every simulated run. Each checker is a pure function from evidence to
// findings: sentences that say what is wrong and where. No findings: all is well.
//
// They trust the network's own counts and the callers' memory, and nothing that a rank says about
// itself.
#ifndef OPTIREDUCE_EXAMPLES_SIM_CHECKERS_H_
#define OPTIREDUCE_EXAMPLES_SIM_CHECKERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "examples/sim/evidence.h"

namespace optireduce::sim {

using Findings = std::vector<std::string>;

// Packets: the network conserves them for every pair; what a rank says that it sent entered the
// network; what the network delivered to it was read and got exactly one verdict; every delivered
// packet that a bit flipped in, and no other, was refused.
Findings CheckPackets(const Evidence& evidence);

// Entries: which contributions are in a result is read from its bits. Reports of agreed ranks say
// the same, and exactly that; the ranges that a divergent rank says it lacks are 0, and all else
// holds what the others hold. Nothing is late while nothing is carried into later ops.
Findings CheckEntries(const Evidence& evidence);

// Exact calls, and bounded ones that report no loss, hold what all contributions give, bit for bit
// (kRandom: within what rounding explains).
Findings CheckExact(const Evidence& evidence);

// Ranks that agreed on a call hold the same bits and report the same losses.
Findings CheckSameBits(const Evidence& evidence);

// Nothing is written to a caller's memory after its call has ended, nor beside it at any time.
Findings CheckMemory(const Evidence& evidence);

// A bounded op ends at most the grace after the latest of its deadline, the rank's own call, its
// last return from a pause, and the last "held" of an owner; or at once when only then an OPEN
// tells it how long the op is on already.
Findings CheckTime(const Evidence& evidence);

// Every call ends, well, soon after the faults are over; nobody owes anybody anything then.
Findings CheckProgress(const Evidence& evidence);

// Nothing of the arena is taken any more.
Findings CheckLeaks(const Evidence& evidence);

// All of the above.
Findings CheckAll(const Evidence& evidence);

// Two runs of one scenario are equal to the bit.
Findings CheckEqualRuns(const Evidence& first, const Evidence& second);

// Two runs with the same calls, but other networks, give equal bits in every exact call.
Findings CheckEqualResults(const Evidence& first, const Evidence& second);

}  // namespace optireduce::sim

#endif  // OPTIREDUCE_EXAMPLES_SIM_CHECKERS_H_
