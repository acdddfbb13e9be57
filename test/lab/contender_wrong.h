// A contender that does not reduce at all, for the test that this shows.
#ifndef OPTIREDUCE_TEST_LAB_CONTENDER_WRONG_H_
#define OPTIREDUCE_TEST_LAB_CONTENDER_WRONG_H_

#include <algorithm>
#include <cstddef>

struct Contender {
  Contender(int, int, const char*, const float* in_in, float* out_in, std::size_t count_in)
      : in(in_in), out(out_in), count(count_in) {}

  void AllReduce() { std::copy_n(in, count, out); }

  const float* const in;
  float* const out;
  const std::size_t count;
};

#endif  // OPTIREDUCE_TEST_LAB_CONTENDER_WRONG_H_
