#include "collectives/tar/schedule.h"

#include <algorithm>

#include "lib/check.h"

namespace optireduce::tar {

std::vector<Rank> ServeOrder(std::uint32_t ranks, Rank rank) {
  OR_CHECK(rank < ranks && ranks <= kRanksMax);
  std::vector<Rank> order(ranks - 1);
  for (std::uint32_t place = 0; place < ranks - 1; ++place) {
    order[place] = (rank + 1 + place) % ranks;
  }
  return order;
}

std::vector<Rank> SumOrder(std::uint32_t ranks, Rank owner) {
  OR_CHECK(owner < ranks && ranks <= kRanksMax);
  std::vector<Rank> order(ranks);
  for (std::uint32_t place = 0; place < ranks; ++place) {
    order[place] = (owner + ranks - place) % ranks;
  }
  return order;
}

std::uint32_t ServePlace(std::uint32_t ranks, Rank from, Rank to) {
  OR_CHECK(from < ranks && to < ranks && from != to && ranks <= kRanksMax);
  return (to + ranks - from) % ranks - 1;
}

std::uint32_t Rounds(std::uint32_t ranks, std::uint32_t incast) {
  OR_CHECK(ranks >= 1 && ranks <= kRanksMax);
  OR_CHECK(incast >= 1 && incast <= std::max<std::uint32_t>(ranks - 1, 1));
  return (ranks - 1 + incast - 1) / incast;
}

Places PlacesOfRound(std::uint32_t ranks, std::uint32_t incast, std::uint32_t round) {
  OR_CHECK(round < Rounds(ranks, incast));
  const std::uint32_t first = round * incast;
  return {first, std::min(incast, ranks - 1 - first)};
}

}  // namespace optireduce::tar
