#include "collectives/arena.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>
#include <vector>

#include "lib/random.h"

namespace optireduce {
namespace {

std::vector<std::byte> Bytes(std::size_t n, int value) {
  return std::vector<std::byte>(n, static_cast<std::byte>(value));
}

// ---- ShardRing ---------------------------------------------------------------------------------

TEST(ShardRing, PiecesFollowEachOtherAndWrap) {
  ShardRing ring(4 * 64, 8);
  std::byte* const a = ring.Take(64);
  std::byte* const b = ring.Take(128);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(b, a + 64);
  EXPECT_EQ(ring.Take(128), nullptr);  // 64 are left
  ring.GiveBackOldest();
  EXPECT_EQ(ring.Take(128), nullptr);  // 64 at the end and 64 at the beginning
  EXPECT_EQ(ring.Take(64), a + 192);
  EXPECT_EQ(ring.Take(64), a);
  EXPECT_EQ(ring.Take(1), nullptr);
}

TEST(ShardRing, ExactFit) {
  ShardRing ring(256, 8);
  std::byte* const all = ring.Take(256);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(ring.Take(0), nullptr);
  ring.GiveBackOldest();
  EXPECT_EQ(ring.Take(257), nullptr);
  EXPECT_EQ(ring.Take(256), all);
}

TEST(ShardRing, ExactFitBehindAWrap) {
  ShardRing ring(4 * 64, 8);
  std::byte* const a = ring.Take(128);
  std::byte* const b = ring.Take(128);
  ring.GiveBackOldest();
  EXPECT_EQ(ring.Take(128), a);  // up to the oldest, and no byte further
  EXPECT_EQ(ring.Take(1), nullptr);
  ring.GiveBackOldest();
  EXPECT_EQ(ring.Take(64), b);
}

TEST(ShardRing, AlignsAndRoundsUp) {
  ShardRing ring(1000, 8);  // 15 pieces of 64, and a rest
  std::byte* const a = ring.Take(1);
  std::byte* const b = ring.Take(65);
  std::byte* const c = ring.Take(0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0U);
  EXPECT_EQ(b, a + 64);
  EXPECT_EQ(c, b + 128);
}

TEST(ShardRing, AtMostPiecesMax) {
  ShardRing ring(4096, 2);
  EXPECT_NE(ring.Take(64), nullptr);
  EXPECT_NE(ring.Take(64), nullptr);
  EXPECT_EQ(ring.Take(64), nullptr);
  ring.GiveBackOldest();
  EXPECT_NE(ring.Take(64), nullptr);
}

TEST(ShardRing, NothingOfNothing) {
  ShardRing ring(0, 4);
  EXPECT_EQ(ring.Take(0), nullptr);
  EXPECT_EQ(ring.Take(64), nullptr);
}

// Against a model: no byte belongs to two pieces, all are inside, and what a whole turn of the ring
// has room for is never refused when the ring is empty.
TEST(ShardRing, RandomTakesAndReturns) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Stream random(seed, 0, "ring");
    const std::size_t size = 64 * (1 + random.Below(40)) + random.Below(64);
    ShardRing ring(size, 100);
    std::byte* const base = ring.Take(1);
    ring.GiveBackOldest();
    struct Piece {
      std::size_t begin, bytes;
      int value;
    };
    std::deque<Piece> taken;
    for (int step = 0; step < 500; ++step) {
      if (random.Below(2) == 0 && !taken.empty()) {
        const Piece& piece = taken.front();
        for (std::size_t i = 0; i < piece.bytes; ++i) {
          ASSERT_EQ(base[piece.begin + i], static_cast<std::byte>(piece.value));
        }
        ring.GiveBackOldest();
        taken.pop_front();
        continue;
      }
      const std::size_t bytes = random.Below(size / 2 + 64);
      std::byte* const at = ring.Take(bytes);
      if (at == nullptr) {
        ASSERT_FALSE(taken.empty() && bytes <= size / 64 * 64);
        continue;
      }
      const auto begin = static_cast<std::size_t>(at - base);
      ASSERT_EQ(begin % 64, 0U);
      ASSERT_LE(begin + bytes, size);
      std::memset(at, step % 256, bytes);
      taken.push_back({begin, bytes, step % 256});
      ASSERT_EQ(ring.in_use(), taken.size());
    }
  }
}

// ---- CellPool ----------------------------------------------------------------------------------

TEST(CellPool, KeepsWhatItWasGiven) {
  CellPool pool(1024, 100);
  const CellPool::Id a = pool.Take(Bytes(100, 1));
  const CellPool::Id b = pool.Take(Bytes(7, 2));
  ASSERT_EQ(pool.Get(a).size(), 100U);
  ASSERT_EQ(pool.Get(b).size(), 7U);
  EXPECT_EQ(pool.Get(a)[99], std::byte{1});
  EXPECT_EQ(pool.Get(b)[6], std::byte{2});
  EXPECT_EQ(pool.in_use(), 2U);
}

TEST(CellPool, HandsOutWhatWasGivenBackLast) {
  CellPool pool(64 * 10, 64);
  const CellPool::Id a = pool.Take(Bytes(64, 1));
  const CellPool::Id b = pool.Take(Bytes(64, 2));
  const CellPool::Id c = pool.Take(Bytes(64, 3));
  pool.GiveBack(a);
  pool.GiveBack(c);
  pool.GiveBack(b);
  EXPECT_EQ(pool.Take(Bytes(64, 4)), b);
  EXPECT_EQ(pool.Take(Bytes(64, 5)), c);
  EXPECT_EQ(pool.Take(Bytes(64, 6)), a);
  EXPECT_EQ(pool.Get(c)[0], std::byte{5});
}

TEST(CellPool, IsExhaustedAndRecovers) {
  CellPool pool(5 * 128 + 127, 100);  // cells of 128
  std::set<CellPool::Id> ids;
  for (int i = 0; i < 5; ++i) ids.insert(pool.Take(Bytes(100, i)));
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_EQ(ids.count(CellPool::kNone), 0U);
  EXPECT_EQ(pool.Take(Bytes(1, 9)), CellPool::kNone);
  pool.GiveBack(*ids.begin());
  EXPECT_EQ(pool.Take(Bytes(1, 9)), *ids.begin());
  EXPECT_EQ(pool.Take(Bytes(1, 9)), CellPool::kNone);
  EXPECT_EQ(pool.in_use(), 5U);
}

TEST(CellPool, WithoutMemoryHasNoRoom) {
  CellPool pool(63, 64);
  EXPECT_EQ(pool.Take(Bytes(1, 1)), CellPool::kNone);
}

TEST(Reservation, IsZeroAndPageAligned) {
  const Reservation memory(100'000);
  EXPECT_EQ(memory.size(), 100'000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0U);
  for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
}

}  // namespace
}  // namespace optireduce
