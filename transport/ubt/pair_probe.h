// Which packet sizes pass from this rank to each peer: asked of all before the first op, and later
// of a peer whose large packets seem to be lost.
//
// A round to a peer sends the largest sizes that are still open, then the smallest one; the peer
// answers each packet that comes in. A size is given up when it was lost in kLossesMax rounds whose
// smallest packet passed: so neither random loss nor a slow peer shrinks what is used, a path that
// swallows large packets does, and a size that passes costs one round trip.
//
// Sans-I/O: time and packets come in, orders go out; no socket, clock, thread, or allocation after
// creation. It seals and verifies nothing. Threads: one at a time.
#ifndef OPTIREDUCE_TRANSPORT_UBT_PAIR_PROBE_H_
#define OPTIREDUCE_TRANSPORT_UBT_PAIR_PROBE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/bounded.h"
#include "lib/ids.h"
#include "optireduce/time.h"
#include "transport/wire/message.h"

namespace optireduce::ubt {

class PairProbe {
 public:
  static constexpr std::size_t kSizesMax = 16;
  static constexpr std::uint32_t kLossesMax = 24;

  struct Order {
    Rank peer = kNoRank;
    bool answer = false;
    wire::Probe probe;
  };

  enum class Asks : std::uint8_t { kAll, kWhenTold };

  // `sizes`: whole packets in bytes, 1 to kSizesMax of them, falling; with the smallest, whoever
  // is reachable at all is reached.
  PairProbe(Rank rank, std::uint32_t ranks, std::vector<std::uint32_t> sizes,
            Asks asks = Asks::kAll);

  // Asks this peer anew, unless it is being asked; a peer that is silent is given up after a while.
  void Ask(Rank peer, Instant now);
  bool asking(Rank peer) const { return peers_[peer].open; }

  // The next packet to send. False: none is due before NextWake(), unless one comes in.
  bool Next(Instant now, Order* order);
  Instant NextWake() const;
  // A packet of `from` whose tag is right.
  void OnProbe(Rank from, bool answer, const wire::Probe& probe, Instant now);

  // What passes to every peer is known. Peers may still ask.
  bool Done() const { return open_peers_ == 0; }
  // The largest packet that passed to this peer; 0: nothing did, so far.
  std::uint32_t passed_bytes(Rank peer) const;
  // Of its quickest round; zero before one was answered.
  Duration round_trip(Rank peer) const { return peers_[peer].round_trip; }

 private:
  static constexpr std::size_t kRoundsKept = 8;
  struct Round {
    std::uint32_t number = 0;  // 0: none
    std::uint32_t sent = 0;    // bit set of sizes
    Instant at{};
    bool counted = false;  // its losses
  };
  struct Peer {
    bool open = false;
    std::uint32_t round = 0;
    std::uint32_t to_send = 0;  // bit set of sizes, of the round that is on
    std::uint32_t passed = 0;   // bit set of sizes
    std::array<std::uint32_t, kSizesMax> losses{};
    std::array<Round, kRoundsKept> rounds;
    std::uint32_t unanswered = 0;  // rounds in a row
    Instant next_round{};
    Duration round_trip{0};
    std::uint32_t in_vain_max = ~std::uint32_t{0};  // rounds in a row without an answer
  };

  std::uint32_t base_bit() const { return 1U << (sizes_.size() - 1); }
  void BeginRound(Peer& peer, Instant now);
  void Close(Peer& peer);
  void OnAnswer(Peer& peer, const wire::Probe& probe, Instant now);
  void CloseIfKnown(Peer& peer);

  Rank rank_;
  std::vector<std::uint32_t> sizes_;
  std::vector<Peer> peers_;
  RingQueue<Order> answers_;
  std::uint32_t open_peers_ = 0;
  Rank next_peer_ = 0;
};

}  // namespace optireduce::ubt

#endif  // OPTIREDUCE_TRANSPORT_UBT_PAIR_PROBE_H_
