#include "optireduce/status.h"

#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "lib/check.h"

namespace optireduce {
namespace {

TEST(Status, OkIsOk) {
  const Status ok = Status::Ok();
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.ToString(), "ok");
  EXPECT_TRUE(ok.Context("anything").ok());
  EXPECT_EQ(ok.Context("anything").text(), "");
}

TEST(Status, ContextsStandInFront) {
  const Status refused(Code::kUnavailable, "refused");
  const Status whole = refused.Context("connect to 10.0.0.1:29500").Context("join group");
  EXPECT_FALSE(whole.ok());
  EXPECT_EQ(whole.code(), Code::kUnavailable);
  EXPECT_EQ(whole.text(), "join group: connect to 10.0.0.1:29500: refused");
  EXPECT_EQ(whole.ToString(), "unavailable: join group: connect to 10.0.0.1:29500: refused");
  EXPECT_EQ(refused.text(), "refused");
}

TEST(Status, EmptyTextsLeaveNoColon) {
  const Status bare(Code::kAborted, "");
  EXPECT_EQ(bare.ToString(), "aborted");
  EXPECT_EQ(bare.Context("op 3").text(), "op 3");
}

TEST(Status, CodesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    names.insert(CodeName(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::kInternal) + 1);
  EXPECT_FALSE(names.contains("unknown code"));
}

Status Outer(const Status& inner, bool& went_on) {
  OR_RETURN_IF_ERROR(inner.Context("outer"));
  went_on = true;
  return Status::Ok();
}

TEST(Status, ReturnIfErrorReturns) {
  bool went_on = false;
  EXPECT_TRUE(Outer(Status::Ok(), went_on).ok());
  EXPECT_TRUE(went_on);
  went_on = false;
  EXPECT_EQ(Outer(Status(Code::kTimeout, "late"), went_on).text(), "outer: late");
  EXPECT_FALSE(went_on);
}

TEST(Result, HoldsAValueOrTheReason) {
  Result<std::unique_ptr<int>> value(std::make_unique<int>(7));
  ASSERT_TRUE(value.ok());
  EXPECT_TRUE(value.status().ok());
  EXPECT_EQ(**value, 7);
  const std::unique_ptr<int> moved = *std::move(value);
  EXPECT_EQ(*moved, 7);
  const Result<int> none(Status(Code::kMismatch, "world size"));
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kMismatch);
}

TEST(CheckDeathTest, SaysWhereCallsTheHookOnceAndAborts) {
  EXPECT_DEATH(OR_CHECK(1 == 2), "check failed at .*status_test.cc:[0-9]+: 1 == 2");
  EXPECT_DEATH(
      {
        SetCheckHook([] {
          std::fputs("hook ran\n", stderr);
          OR_CHECK(false);  // must not call the hook again
        });
        OR_CHECK(1 == 2);
      },
      "1 == 2 .*\nhook ran\n.*check failed at .*: false [^\n]*\n$");
}

TEST(Check, EvaluatesItsExpressionOnce) {
  int evaluated = 0;
  OR_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace optireduce
