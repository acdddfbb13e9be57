// The command line of optireduce-bench.
//
// The only file pair that knows gflags. Main thread only: gflags keeps its values in globals.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_FLAGS_H_
#define OPTIREDUCE_EXAMPLES_BENCH_FLAGS_H_

#include <string>
#include <vector>

#include "examples/bench/options.h"

namespace optireduce::bench {

struct CommandLine {
  Options options;
  std::vector<std::string> faults;  // all there are; `options` is of no use unless empty
  std::string answer;               // the text of --help or --version, when asked for
};

CommandLine ParseCommandLine(int argc, char** argv);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_FLAGS_H_
