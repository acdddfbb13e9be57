#include "examples/bench/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace optireduce::bench {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

RunInfo Info() {
  RunInfo info;
  info.version = "1.2.3";
  info.hosts = {"a", "a", "b"};
  info.world_size = 3;
  info.transport = "udp";
  info.settings = {{"mode", "exact", "default"},
                   {"fault.loss_pct", "1", "the program"},
                   {"spin", "1us", "environment OPTIREDUCE_SPIN"}};
  return info;
}

Row OneRow() {
  Row row;
  row.bytes = 4000;
  row.count = 1000;
  row.samples_us = {4, 1, 2};
  row.wrong = 7;
  row.max_relative_error = 0.25;
  row.entries = 9000;
  row.late_entries = 30;
  row.lost_entries = 60;
  return row;
}

TEST(TableHead, SaysWhoAndWhatIsNotDefault) {
  const std::string head = TableHead(Info(), {50, 99.9});
  EXPECT_THAT(head, AllOf(HasSubstr("optireduce-bench 1.2.3, 3 ranks on a x2, b, udp\n"),
                          HasSubstr("config: fault.loss_pct=1 spin=1us (environment"),
                          Not(HasSubstr("mode=")), HasSubstr(" p99.9 "),
                          HasSubstr("algbw = size / p50, busbw = algbw * 2(n-1)/n"),
                          ContainsRegex("place iters +min +p50 +p99.9 +max ")));
}

TEST(TableRow, HasAsManyColumnsAsItsHead) {
  const std::string head = TableHead(Info(), {50, 99.9});
  const std::string names = head.substr(head.rfind('#', head.rfind("#wrong") - 1));
  const std::string row = TableRow(OneRow(), 3, {50, 99.9}, false);
  EXPECT_EQ(names.size(), row.size());
}

TEST(TableFoot, CallsOnlyCheckedResultsRight) {
  Row row = OneRow();
  EXPECT_THAT(TableFoot({&row, 1}, 3), HasSubstr("wrong elements: 7 FAILED"));
  row.wrong = 0;
  EXPECT_THAT(TableFoot({&row, 1}, 3), HasSubstr("wrong elements: 0 OK"));
  row.wrong.reset();
  EXPECT_THAT(TableFoot({&row, 1}, 3), HasSubstr("not checked"));
}

TEST(Json, EscapesTextAndKnowsNothing) {
  RunInfo info = Info();
  info.hosts[2] = "b\"\\\n";
  Row row = OneRow();
  const std::string json = Json(info, {&row, 1}, {50, 99.9}, false);
  EXPECT_THAT(json, AllOf(HasSubstr("\"b\\\"\\\\\\u000a\""), HasSubstr("\"complete\": false"),
                          HasSubstr("\"loss_pct\": 1,"), HasSubstr("\"p99.9_us\": 4,"),
                          HasSubstr("\"wrong\": 7,"), HasSubstr("\"samples_us\": [4, 1, 2]")));
  row.wrong.reset();
  EXPECT_THAT(Json(info, {&row, 1}, {50}, true),
              AllOf(HasSubstr("\"wrong\": null"), HasSubstr("\"complete\": true")));
}

TEST(Csv, RowsHaveTheColumnsOfTheHead) {
  const auto commas = [](const std::string& text) {
    return std::count(text.begin(), text.end(), ',');
  };
  for (const bool samples : {false, true}) {
    EXPECT_EQ(commas(CsvHead({50, 99.9}, samples)),
              commas(CsvRow(OneRow(), 3, {50, 99.9}, samples)));
  }
  EXPECT_THAT(CsvRow(OneRow(), 3, {50}, true), HasSubstr(",4 1 2\n"));
}

}  // namespace
}  // namespace optireduce::bench
