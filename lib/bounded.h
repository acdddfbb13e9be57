// Containers whose size is fixed before the data path runs: bitmaps, a queue, a ring between two
// threads. None allocates after its creation or Reset(); what does not fit is answered, not grown.
//
// Threads: Bitmap, BitRows and RingQueue belong to one thread at a time. SpscRing joins exactly one
// producer thread to exactly one consumer thread.
// They do not know what their elements mean; index errors are bugs and end in OR_CHECK.
#ifndef OPTIREDUCE_LIB_BOUNDED_H_
#define OPTIREDUCE_LIB_BOUNDED_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "lib/check.h"

namespace optireduce {

// "No such position", of all searches below.
inline constexpr std::size_t kNoBit = std::numeric_limits<std::size_t>::max();

// The word arithmetic that Bitmap and BitRows share. Bits past the size are always 0.
namespace bits {

inline constexpr std::size_t kWordBits = 64;

constexpr std::size_t Words(std::size_t size) { return (size + kWordBits - 1) / kWordBits; }
constexpr std::uint64_t Mask(std::size_t i) { return std::uint64_t{1} << (i % kWordBits); }

// The first position >= from, < size, whose bit is `Value`; kNoBit when there is none.
template <bool Value>
constexpr std::size_t Find(const std::uint64_t* words, std::size_t size, std::size_t from) {
  if (from >= size) return kNoBit;
  std::uint64_t skip = ~std::uint64_t{0} << (from % kWordBits);
  for (std::size_t w = from / kWordBits; w < Words(size); ++w) {
    const std::uint64_t hits = (Value ? words[w] : ~words[w]) & skip;
    if (hits != 0) {
      const std::size_t i = w * kWordBits + static_cast<std::size_t>(std::countr_zero(hits));
      return i < size ? i : kNoBit;
    }
    skip = ~std::uint64_t{0};
  }
  return kNoBit;
}

inline std::size_t Count(const std::uint64_t* words, std::size_t size) {
  std::size_t count = 0;
  for (std::size_t w = 0; w < Words(size); ++w) {
    count += static_cast<std::size_t>(std::popcount(words[w]));
  }
  return count;
}

inline void SetAll(std::uint64_t* words, std::size_t size) {
  std::fill_n(words, Words(size), ~std::uint64_t{0});
  if (size % kWordBits != 0) words[size / kWordBits] = Mask(size) - 1;
}

}  // namespace bits

// A set of the numbers 0 … size-1, with its count kept.
class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(std::size_t size) { Reset(size); }

  // Empties the set and fixes its size. Allocates only when larger than it ever was.
  void Reset(std::size_t size) {
    words_.assign(bits::Words(size), 0);
    size_ = size;
    count_ = 0;
  }

  std::size_t size() const { return size_; }
  std::size_t count() const { return count_; }
  bool All() const { return count_ == size_; }
  bool None() const { return count_ == 0; }

  bool Test(std::size_t i) const {
    OR_CHECK(i < size_);
    return (words_[i / bits::kWordBits] & bits::Mask(i)) != 0;
  }

  // True when this call changed the bit.
  bool Set(std::size_t i) {
    if (Test(i)) return false;
    words_[i / bits::kWordBits] |= bits::Mask(i);
    ++count_;
    return true;
  }

  // True when this call changed the bit.
  bool Clear(std::size_t i) {
    if (!Test(i)) return false;
    words_[i / bits::kWordBits] &= ~bits::Mask(i);
    --count_;
    return true;
  }

  void SetAll() {
    bits::SetAll(words_.data(), size_);
    count_ = size_;
  }

  void ClearAll() {
    std::fill(words_.begin(), words_.end(), std::uint64_t{0});
    count_ = 0;
  }

  // The first set or unset position >= from; kNoBit when there is none.
  std::size_t NextSet(std::size_t from = 0) const {
    return bits::Find<true>(words_.data(), size_, from);
  }
  std::size_t NextUnset(std::size_t from = 0) const {
    return bits::Find<false>(words_.data(), size_, from);
  }

  // Bit i is bit i % 64 of word i / 64; bits past the size are 0.
  std::span<const std::uint64_t> words() const { return words_; }

  friend bool operator==(const Bitmap& a, const Bitmap& b) {
    return a.size_ == b.size_ && a.words_ == b.words_;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};

// Many bitmaps of one size in one piece of memory: row r is a set of the numbers 0 … size-1.
// Counts are computed, not kept.
class BitRows {
 public:
  BitRows() = default;
  BitRows(std::size_t rows, std::size_t size) { Reset(rows, size); }

  // Empties all rows and fixes the sizes. Allocates only when larger than it ever was.
  void Reset(std::size_t rows, std::size_t size) {
    rows_ = rows;
    size_ = size;
    row_words_ = bits::Words(size);
    words_.assign(rows * row_words_, 0);
  }

  std::size_t rows() const { return rows_; }
  std::size_t size() const { return size_; }

  bool Test(std::size_t row, std::size_t i) const {
    OR_CHECK(i < size_);
    return (Row(row)[i / bits::kWordBits] & bits::Mask(i)) != 0;
  }

  // True when this call changed the bit.
  bool Set(std::size_t row, std::size_t i) {
    if (Test(row, i)) return false;
    Row(row)[i / bits::kWordBits] |= bits::Mask(i);
    return true;
  }

  // True when this call changed the bit.
  bool Clear(std::size_t row, std::size_t i) {
    if (!Test(row, i)) return false;
    Row(row)[i / bits::kWordBits] &= ~bits::Mask(i);
    return true;
  }

  void SetRow(std::size_t row) { bits::SetAll(Row(row), size_); }
  void ClearRow(std::size_t row) { std::fill_n(Row(row), row_words_, std::uint64_t{0}); }

  std::size_t Count(std::size_t row) const { return bits::Count(Row(row), size_); }
  bool All(std::size_t row) const { return NextUnset(row) == kNoBit; }
  bool None(std::size_t row) const { return NextSet(row) == kNoBit; }

  // The first set or unset position >= from of the row; kNoBit when there is none.
  std::size_t NextSet(std::size_t row, std::size_t from = 0) const {
    return bits::Find<true>(Row(row), size_, from);
  }
  std::size_t NextUnset(std::size_t row, std::size_t from = 0) const {
    return bits::Find<false>(Row(row), size_, from);
  }

  // Bit i is bit i % 64 of word i / 64; bits past the size are 0.
  std::span<const std::uint64_t> words(std::size_t row) const { return {Row(row), row_words_}; }

 private:
  std::uint64_t* Row(std::size_t row) {
    OR_CHECK(row < rows_);
    return words_.data() + row * row_words_;
  }
  const std::uint64_t* Row(std::size_t row) const {
    OR_CHECK(row < rows_);
    return words_.data() + row * row_words_;
  }

  std::vector<std::uint64_t> words_;
  std::size_t rows_ = 0;
  std::size_t size_ = 0;
  std::size_t row_words_ = 0;
};

// A first-in first-out queue of at most `capacity` elements. T must be default constructible.
template <typename T>
class RingQueue {
 public:
  RingQueue() = default;
  explicit RingQueue(std::size_t capacity) { Reset(capacity); }

  // Empties the queue and fixes its capacity.
  void Reset(std::size_t capacity) {
    slots_.clear();
    slots_.resize(capacity);
    first_ = 0;
    size_ = 0;
  }

  std::size_t capacity() const { return slots_.size(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == slots_.size(); }

  // False: full, nothing was taken.
  [[nodiscard]] bool Push(T value) {
    if (full()) return false;
    slots_[Place(size_)] = std::move(value);
    ++size_;
    return true;
  }

  // The i-th from the front.
  T& operator[](std::size_t i) {
    OR_CHECK(i < size_);
    return slots_[Place(i)];
  }
  const T& operator[](std::size_t i) const {
    OR_CHECK(i < size_);
    return slots_[Place(i)];
  }
  T& Front() { return (*this)[0]; }
  const T& Front() const { return (*this)[0]; }
  T& Back() { return (*this)[size_ - 1]; }
  const T& Back() const { return (*this)[size_ - 1]; }

  // Takes out the front element; what it owned goes with it.
  T Pop() {
    T value = std::move(Front());
    slots_[first_] = T{};
    first_ = Place(1);
    --size_;
    return value;
  }

  void Clear() {
    while (!empty()) Pop();
  }

 private:
  std::size_t Place(std::size_t i) const {
    const std::size_t place = first_ + i;
    return place < slots_.size() ? place : place - slots_.size();
  }

  std::vector<T> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

// A lock-free ring from one producer thread to one consumer thread. T must be default
// constructible. The capacity is rounded up to a power of two.
template <typename T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity_min)
      : slots_(std::bit_ceil(std::max<std::size_t>(capacity_min, 1))), mask_(slots_.size() - 1) {}
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  std::size_t capacity() const { return slots_.size(); }

  // Producer only. False: full; the value is lost to the ring and the offer is counted as failed.
  [[nodiscard]] bool Offer(T value) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == slots_.size()) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == slots_.size()) {
        failed_offers_.store(failed_offers_.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
        return false;
      }
    }
    slots_[static_cast<std::size_t>(tail) & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Consumer only. False: empty, `value` is unchanged.
  [[nodiscard]] bool Take(T& value) {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return false;
    }
    T& slot = slots_[static_cast<std::size_t>(head) & mask_];
    value = std::move(slot);
    slot = T{};  // what the record owned must not outlive its turn
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer only: nothing to take at the moment of the call.
  bool Empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
  }

  // Any thread.
  std::uint64_t failed_offers() const { return failed_offers_.load(std::memory_order_relaxed); }

 private:
  // Own cache lines for what each side writes, else every record costs two line transfers more.
  static constexpr std::size_t kLineBytes = 64;

  std::vector<T> slots_;
  const std::size_t mask_;
  alignas(kLineBytes) std::atomic<std::uint64_t> tail_{0};  // written by the producer
  std::uint64_t head_seen_ = 0;                             // producer's
  std::atomic<std::uint64_t> failed_offers_{0};             // written by the producer
  alignas(kLineBytes) std::atomic<std::uint64_t> head_{0};  // written by the consumer
  std::uint64_t tail_seen_ = 0;                             // consumer's
};

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_BOUNDED_H_
