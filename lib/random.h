// Seeded streams of pseudo-random numbers whose bits are the same on every machine and compiler:
// for the simulator, fault injection and tests. Never for keys.
//
// One stream per (seed, node, purpose): what one of them draws does not shift what another gets.
// Threads: a stream belongs to one thread at a time. No std distributions: their bits differ
// between standard libraries.
#ifndef OPTIREDUCE_LIB_RANDOM_H_
#define OPTIREDUCE_LIB_RANDOM_H_

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "lib/check.h"

namespace optireduce {

// One step of splitmix64: advances `state` and returns a well mixed number.
constexpr std::uint64_t SplitMix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// FNV-1a: a stable number for a text. Not for anything an attacker may choose.
constexpr std::uint64_t HashText(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// xoshiro256**.
class Stream {
 public:
  constexpr Stream(std::uint64_t seed, std::uint64_t node, std::string_view purpose) {
    std::uint64_t mix = seed;
    mix = SplitMix64(mix) ^ node;
    mix = SplitMix64(mix) ^ HashText(purpose);
    for (std::uint64_t& word : state_) word = SplitMix64(mix);
  }

  // A stream in a given state, for the generator's published test vectors. Not all zero.
  explicit constexpr Stream(const std::array<std::uint64_t, 4>& state) : state_(state) {
    OR_CHECK((state[0] | state[1] | state[2] | state[3]) != 0);
  }

  constexpr std::uint64_t Next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // 0 … n-1, each equally likely. n > 0.
  constexpr std::uint64_t Below(std::uint64_t n) {
    OR_CHECK(n > 0);
    // The first 2^64 mod n numbers are drawn again, else low results would come more often.
    const std::uint64_t refused = (0 - n) % n;
    std::uint64_t draw = Next();
    while (draw < refused) draw = Next();
    return draw % n;
  }

  // [0, 1), in steps of 2^-53.
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // True with this probability. Always draws once, so that the stream does not depend on it.
  constexpr bool Chance(double probability) { return Uniform() < probability; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace optireduce

#endif  // OPTIREDUCE_LIB_RANDOM_H_
