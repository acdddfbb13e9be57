// Every committed input of every fuzz target, in every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test/fuzz/targets.h"

namespace optireduce::fuzz {
namespace {

namespace files = std::filesystem;

std::vector<std::byte> ContentOf(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, Corpus) {
  std::vector<files::path> inputs;
  for (const auto& entry : files::directory_iterator(files::path(OPTIREDUCE_TEST_CORPUS_DIR) /
                                                     GetParam().name)) {
    inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  EXPECT_GE(inputs.size(), 10U);
  for (const files::path& input : inputs) {
    SCOPED_TRACE(input);
    GetParam().run(ContentOf(input));
  }
}

TEST_P(Replay, NothingAndZeros) {
  GetParam().run({});
  for (const std::size_t size : {1U, 32U, 1472U}) {
    GetParam().run(std::vector<std::byte>(size));
    GetParam().run(std::vector<std::byte>(size, std::byte{0xff}));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, ::testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace optireduce::fuzz
