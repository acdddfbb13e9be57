// Who has come to the master, who is missing, and where the ranks disagree. Pure; not thread-safe.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_ROSTER_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_ROSTER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "optireduce/status.h"
#include "transport/control/frame.h"

namespace optireduce::control {

// "rank 3", "ranks 1, 2, 5", "ranks 0, 1, … and 20 more" (at most 32 listed).
std::string RankList(std::span<const Rank> ranks);

class Roster {
 public:
  explicit Roster(std::uint32_t world_size) : world_size_(world_size) {}

  const Claim* Find(Rank rank) const;
  void Put(const Claim& claim) { claims_[claim.rank] = claim; }
  void Remove(Rank rank) { claims_.erase(rank); }

  // Every rank is in, by the largest world size that anybody claims.
  bool Complete() const;
  // Ranks of this master's world that are not in.
  std::vector<Rank> Missing() const;
  // Whether and where versions, world sizes or configurations differ: the odd ranks by number with
  // both values. Those who have what most have are right; without a majority, rank 0 is.
  Status Agreement() const;
  // Whether every data endpoint can be used by every other rank, as far as it shows.
  Status Addresses() const;
  std::vector<Member> Members() const;  // by rank; Complete() must hold

 private:
  std::uint32_t world_size_;
  std::map<Rank, Claim> claims_;
};

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_ROSTER_H_
