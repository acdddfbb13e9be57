// A file of results that is never mistaken for a finished one: while a run goes on, it says so
// itself or has another name.
//
// One thread.
#ifndef OPTIREDUCE_EXAMPLES_BENCH_RESULT_FILE_H_
#define OPTIREDUCE_EXAMPLES_BENCH_RESULT_FILE_H_

#include <string>

#include "optireduce/status.h"

namespace optireduce::bench {

// Whether the file could be written: asked before an hour of measuring, not after it.
Status CheckWritable(const std::string& path);

// Puts `text` at `path` in one step: a reader sees the old file or the new one. What is there and
// is no regular file, such as a pipe, is written to as it is.
Status ReplaceFile(const std::string& path, const std::string& text);

// Takes away a regular file that an earlier run may have left.
void RemoveStale(const std::string& path);

}  // namespace optireduce::bench

#endif  // OPTIREDUCE_EXAMPLES_BENCH_RESULT_FILE_H_
