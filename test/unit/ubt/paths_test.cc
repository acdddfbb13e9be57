// A path that carries less than full cells, and the change to smaller ones: what one rank does.
#include <gtest/gtest.h>

#include <vector>

#include "test/unit/ubt/solo.h"

namespace optireduce::ubt {
namespace {

std::uint8_t PieceFlags(std::uint32_t index) {
  return static_cast<std::uint8_t>(wire::kFlagPiece | index << wire::kPieceShift);
}

// A full cell of these tests has 128 bytes, and so eight pieces of 16.
struct Paths : ::testing::Test {
  Paths() : solo(3) {}
  void Begin() {
    solo.net.Call(0, spec);
    solo.OpenAll(1, spec);
    solo.Turn();
  }
  Counter SendPiece(Rank from, CellIndex cell, std::uint32_t index) {
    const std::vector<std::byte> whole =
        solo.peer(from).Cell(std::uint64_t{1} << from, 1, 0, cell);
    const PieceRange range = PieceAt(index, whole.size());
    return solo.peer(from).Send(MessageType::kData, 1, 0, cell, PieceFlags(index),
                                std::span(whole).subspan(range.first, range.bytes));
  }
  Solo solo;
  const OpSpec spec = Exact(Count(3, 2));
};

TEST_F(Paths, AContributionInPiecesCountsWhenItIsWhole) {
  Begin();
  for (std::uint32_t index = 1; index < 8; ++index) {
    EXPECT_EQ(SendPiece(2, 0, index), Counter::kWaited);
  }
  EXPECT_EQ(SendPiece(2, 0, 3), Counter::kWaited) << "again, before it is whole";
  EXPECT_FALSE(solo.actions().Closed(1, 0));
  EXPECT_EQ(SendPiece(2, 0, 0), Counter::kAccepted);
  EXPECT_EQ(SendPiece(2, 0, 0), Counter::kDuplicate) << "after it";
  EXPECT_EQ(solo.peer(1).Data(1, 0), Counter::kAccepted);
  EXPECT_TRUE(solo.actions().Closed(1, 0));
  EXPECT_EQ(SendPiece(2, 0, 1), Counter::kDuplicate);
}

TEST_F(Paths, PiecesThatAreNoneAreRefused) {
  Begin();
  const std::vector<std::byte> bytes(256, std::byte{1});
  const auto send = [&](std::uint32_t index, CellIndex cell, std::size_t size) {
    return solo.peer(1).Send(MessageType::kData, 1, 0, cell, PieceFlags(index),
                             std::span(bytes).first(size));
  };
  for (const std::size_t size : {1U, 8U, 15U, 17U, 24U, 128U}) {
    EXPECT_EQ(send(0, 0, size), Counter::kMalformed) << size;
  }
  EXPECT_EQ(send(0, 2, 16), Counter::kMalformed) << "no such cell";
  EXPECT_EQ(solo.peer(1).Send(MessageType::kResult, 1, 1, 0, PieceFlags(0),
                              std::span(bytes).first(24)),
            Counter::kMalformed);
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kAccepted);
}

TEST_F(Paths, FromTheQuestionOfAChangeoverToItsDecisionNoOpIsOpened) {
  Begin();
  EXPECT_EQ(solo.group().HoldOpens(), 1u);
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kEarlyNoRoom);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kNoRoomYet);
  EXPECT_NE(solo.group().DescribeRoom().find("rank 0"), std::string::npos);
  // What is open goes on.
  EXPECT_EQ(solo.peer(2).Data(1, 0), Counter::kAccepted);
  solo.group().ReleaseOpens();
  EXPECT_EQ(solo.peer(1).Open(2, spec), Counter::kAccepted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
}

TEST_F(Paths, CellsAreSmallerFromTheOpThatWasDecidedOn) {
  Begin();
  solo.group().HoldOpens();
  solo.group().ReleaseOpens();
  solo.group().ChangeCellBytes(3, 64);
  EXPECT_EQ(solo.group().CellBytesOf(2), 128u);
  EXPECT_EQ(solo.group().CellBytesOf(3), 64u);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.net.Call(0, spec), Admission::kAdmitted);
  EXPECT_EQ(solo.actions().shards.at(2).grid.Cells(0), 2u);
  EXPECT_EQ(solo.actions().shards.at(3).grid.Cells(0), 4u);
  // Another one, before the first has come to hold everywhere.
  solo.group().ChangeCellBytes(5, 32);
  EXPECT_EQ(solo.group().CellBytesOf(4), 64u);
  EXPECT_EQ(solo.group().CellBytesOf(5), 32u);
  EXPECT_TRUE(solo.group().failure().ok());
}

TEST_F(Paths, AChangeOfAnOpThatIsOpenOrToLargerCellsFailsTheGroup) {
  for (const bool open : {true, false}) {
    Solo one(3);
    one.net.Call(0, spec);
    one.group().ChangeCellBytes(open ? 1 : 2, open ? 64 : 256);
    EXPECT_EQ(one.group().failure().code(), Code::kMismatch);
  }
}

}  // namespace
}  // namespace optireduce::ubt
