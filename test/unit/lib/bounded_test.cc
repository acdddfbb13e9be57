#include "lib/bounded.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/random.h"

namespace optireduce {
namespace {

std::size_t FindIn(const std::vector<bool>& model, bool value, std::size_t from) {
  for (std::size_t i = from; i < model.size(); ++i) {
    if (model[i] == value) return i;
  }
  return kNoBit;
}

std::size_t CountIn(const std::vector<bool>& model) {
  std::size_t count = 0;
  for (const bool bit : model) count += bit ? 1 : 0;
  return count;
}

// Sizes around the borders of words, and some between.
std::size_t AnySize(Stream& stream) {
  return stream.Chance(0.5) ? 64 * stream.Below(5) + stream.Below(3) : stream.Below(300);
}

TEST(Bitmap, BehavesAsVectorOfBool) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Stream stream(seed, 0, "bitmap");
    Bitmap bitmap;
    std::vector<bool> model;
    for (int round = 0; round < 3; ++round) {
      const std::size_t size = AnySize(stream);
      bitmap.Reset(size);
      model.assign(size, false);
      for (int step = 0; step < 150; ++step) {
        const std::uint64_t choice = stream.Below(100);
        if (choice == 0) {
          bitmap.SetAll();
          model.assign(size, true);
        } else if (choice == 1) {
          bitmap.ClearAll();
          model.assign(size, false);
        } else if (size > 0) {
          const std::size_t i = stream.Below(size);
          const bool value = stream.Chance(0.5);
          EXPECT_EQ(value ? bitmap.Set(i) : bitmap.Clear(i), model[i] != value);
          model[i] = value;
          EXPECT_EQ(bitmap.Test(i), value);
        }
        const std::size_t from = stream.Below(size + 70);
        ASSERT_EQ(bitmap.NextSet(from), FindIn(model, true, from));
        ASSERT_EQ(bitmap.NextUnset(from), FindIn(model, false, from));
        ASSERT_EQ(bitmap.count(), CountIn(model));
        ASSERT_EQ(bitmap.All(), CountIn(model) == size);
        ASSERT_EQ(bitmap.None(), CountIn(model) == 0);
      }
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(bitmap.Test(i), model[i]);
    }
  }
}

TEST(Bitmap, BitsPastTheSizeStayZero) {
  Bitmap bitmap(70);
  bitmap.SetAll();
  ASSERT_EQ(bitmap.words().size(), 2u);
  EXPECT_EQ(bitmap.words()[0], ~std::uint64_t{0});
  EXPECT_EQ(bitmap.words()[1], 0x3fu);
  EXPECT_EQ(bitmap.NextUnset(), kNoBit);
  Bitmap other(70);
  for (std::size_t i = 0; i < 70; ++i) other.Set(i);
  EXPECT_EQ(bitmap, other);
  other.Clear(69);
  EXPECT_NE(bitmap, other);
}

TEST(Bitmap, EmptyHasNothing) {
  Bitmap bitmap;
  EXPECT_EQ(bitmap.NextSet(), kNoBit);
  EXPECT_EQ(bitmap.NextUnset(), kNoBit);
  EXPECT_TRUE(bitmap.All());
  EXPECT_TRUE(bitmap.None());
  bitmap.SetAll();
  EXPECT_EQ(bitmap.count(), 0u);
}

TEST(BitmapDeathTest, IndexPastTheEndIsABug) {
  Bitmap bitmap(64);
  EXPECT_DEATH(bitmap.Set(64), "check failed");
  BitRows rows(2, 64);
  EXPECT_DEATH(rows.Set(0, 64), "check failed");
  EXPECT_DEATH(rows.Set(2, 0), "check failed");
}

TEST(BitRows, RowsBehaveAsVectorsOfBoolApart) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Stream stream(seed, 0, "bit rows");
    const std::size_t rows = 1 + stream.Below(5);
    const std::size_t size = 1 + AnySize(stream);
    BitRows bits(3, 500);
    bits.SetRow(1);
    bits.Reset(rows, size);  // leaves nothing of before
    std::vector<std::vector<bool>> model(rows, std::vector<bool>(size, false));
    for (int step = 0; step < 200; ++step) {
      const std::size_t row = stream.Below(rows);
      const std::uint64_t choice = stream.Below(60);
      if (choice == 0) {
        bits.SetRow(row);
        model[row].assign(size, true);
      } else if (choice == 1) {
        bits.ClearRow(row);
        model[row].assign(size, false);
      } else {
        const std::size_t i = stream.Below(size);
        const bool value = stream.Chance(0.5);
        EXPECT_EQ(value ? bits.Set(row, i) : bits.Clear(row, i), model[row][i] != value);
        model[row][i] = value;
      }
      for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t from = stream.Below(size + 70);
        ASSERT_EQ(bits.NextSet(r, from), FindIn(model[r], true, from));
        ASSERT_EQ(bits.NextUnset(r, from), FindIn(model[r], false, from));
        ASSERT_EQ(bits.Count(r), CountIn(model[r]));
        ASSERT_EQ(bits.All(r), CountIn(model[r]) == size);
        ASSERT_EQ(bits.None(r), CountIn(model[r]) == 0);
        ASSERT_EQ(bits.words(r).size(), (size + 63) / 64);
      }
    }
  }
}

TEST(RingQueue, BehavesAsDequeWithALimit) {
  Stream stream(7, 0, "ring queue");
  for (std::size_t capacity : {0u, 1u, 2u, 5u, 8u}) {
    SCOPED_TRACE(capacity);
    RingQueue<int> queue(capacity);
    std::deque<int> model;
    for (int step = 0; step < 500; ++step) {
      if (stream.Chance(0.55)) {
        ASSERT_EQ(queue.Push(step), model.size() < capacity);
        if (model.size() < capacity) model.push_back(step);
      } else if (!model.empty()) {
        ASSERT_EQ(queue.Pop(), model.front());
        model.pop_front();
      }
      if (stream.Chance(0.01)) {
        queue.Clear();
        model.clear();
      }
      ASSERT_EQ(queue.size(), model.size());
      ASSERT_EQ(queue.empty(), model.empty());
      ASSERT_EQ(queue.full(), model.size() == capacity);
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(queue[i], model[i]);
      if (!model.empty()) {
        ASSERT_EQ(queue.Front(), model.front());
        ASSERT_EQ(queue.Back(), model.back());
      }
    }
  }
}

TEST(RingQueue, PopLetsGoOfWhatTheElementOwned) {
  RingQueue<std::shared_ptr<int>> queue(2);
  auto owned = std::make_shared<int>(1);
  ASSERT_TRUE(queue.Push(owned));
  queue.Pop();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(RingQueueDeathTest, NothingToPopIsABug) {
  RingQueue<int> queue(2);
  EXPECT_DEATH(queue.Pop(), "check failed");
  EXPECT_DEATH(queue.Back(), "check failed");
}

TEST(SpscRing, RefusesWhenFullAndCountsIt) {
  SpscRing<int> ring(3);
  ASSERT_EQ(ring.capacity(), 4u);
  EXPECT_TRUE(ring.Empty());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.Offer(i));
  EXPECT_FALSE(ring.Offer(9));
  EXPECT_FALSE(ring.Offer(9));
  EXPECT_EQ(ring.failed_offers(), 2u);
  int value = -1;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(ring.Take(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_FALSE(ring.Take(value));
  EXPECT_EQ(value, 3);
  EXPECT_TRUE(ring.Empty());
}

TEST(SpscRing, TakeLetsGoOfWhatTheRecordOwned) {
  SpscRing<std::shared_ptr<int>> ring(2);
  auto owned = std::make_shared<int>(1);
  ASSERT_TRUE(ring.Offer(owned));
  std::shared_ptr<int> taken;
  ASSERT_TRUE(ring.Take(taken));
  taken.reset();
  EXPECT_EQ(owned.use_count(), 1);
}

// Every record arrives once, whole and in order. Several words, so that a torn one would show.
TEST(SpscRing, TwoThreads) {
  struct Record {
    std::uint64_t number = 0;
    std::uint64_t square = 0;
    std::uint64_t inverted = 0;
  };
  constexpr std::uint64_t kRecords = 100'000;
  SpscRing<Record> ring(64);
  std::uint64_t refused = 0;
  std::thread producer([&] {
    for (std::uint64_t i = 1; i <= kRecords;) {
      if (ring.Offer({i, i * i, ~i})) {
        ++i;
      } else {
        ++refused;
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t next = 1;
  std::uint64_t wrong = 0;
  while (next <= kRecords) {
    Record record;
    if (!ring.Take(record)) {
      std::this_thread::yield();
      continue;
    }
    wrong += record.number != next || record.square != next * next || record.inverted != ~next;
    ++next;
  }
  producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(ring.Empty());
  EXPECT_EQ(ring.failed_offers(), refused);
}

}  // namespace
}  // namespace optireduce
