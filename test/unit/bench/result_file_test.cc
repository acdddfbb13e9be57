#include "examples/bench/result_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace optireduce::bench {
namespace {

std::string Path() {
  return testing::TempDir() + "optireduce_result_file_" + std::to_string(getpid());
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ResultFile, IsReplacedInOneStep) {
  const std::string path = Path();
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "asking must not make the file";
  EXPECT_TRUE(ReplaceFile(path, "first").ok());
  EXPECT_TRUE(ReplaceFile(path, "second").ok());
  EXPECT_EQ(Read(path), "second");
  EXPECT_NE(access((path + ".partial").c_str(), F_OK), 0);
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_EQ(Read(path), "second");
  RemoveStale(path);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(ResultFile, LeavesDevicesInPlace) {
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  EXPECT_TRUE(ReplaceFile("/dev/null", "text").ok());
  RemoveStale("/dev/null");
  EXPECT_EQ(access("/dev/null", W_OK), 0);
}

TEST(ResultFile, SaysWhyItCannotBeWritten) {
  EXPECT_FALSE(CheckWritable("/nonexistent/result").ok());
  EXPECT_FALSE(ReplaceFile("/nonexistent/result", "text").ok());
  EXPECT_FALSE(CheckWritable(testing::TempDir()).ok());
}

}  // namespace
}  // namespace optireduce::bench
