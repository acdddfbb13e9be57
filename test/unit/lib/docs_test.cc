// The generated pages of docs/ are what the code says. To write them anew, run this test with
// OPTIREDUCE_TEST_WRITE_DOCS=1.
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "lib/config.h"
#include "lib/counters.h"
#include "lib/environment.h"

namespace optireduce {
namespace {

void ExpectPage(const std::string& name, const std::string& want) {
  const std::string path = std::string(OPTIREDUCE_TEST_SOURCE_DIR) + "/../../../docs/" + name;
  if (FindVariable(ReadEnvironment(), "OPTIREDUCE_TEST_WRITE_DOCS") == "1") {
    std::ofstream(path, std::ios::binary) << want;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), want) << "run this test with OPTIREDUCE_TEST_WRITE_DOCS=1 to write "
                              << path;
}

TEST(Docs, Configuration) { ExpectPage("configuration.md", ConfigMarkdown()); }

TEST(Docs, Counters) { ExpectPage("counters.md", CountersMarkdown()); }

}  // namespace
}  // namespace optireduce
