// BoundPort and BindPort(): the packet port that the settings ask for, with injected faults around
// it where they ask for those. Whoever uses a port sees PacketPort; only ports.cc names a backend.
//
// Threads: one at a time, as the port itself.
#ifndef OPTIREDUCE_TRANSPORT_PORTS_H_
#define OPTIREDUCE_TRANSPORT_PORTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/ids.h"
#include "lib/settings.h"
#include "optireduce/status.h"
#include "transport/packet_io.h"

namespace optireduce {

class BoundPort {
 public:
  virtual ~BoundPort() = default;

  virtual PacketPort& port() = 0;
  // Where peers reach it, "host:port": the advertised address if there is one, else the bound one.
  virtual std::string endpoint() const = 0;
  // The endpoints of all ranks; entry `self` is not used.
  virtual Status SetPeers(std::span<const std::string> by_rank, Rank self) = 0;
  // Packet sizes to ask the paths for, falling; the first is the limit until another one is set.
  virtual std::vector<std::uint32_t> probe_bytes() const = 0;
  // Sends packets of at most this size from now on, no more than the first of probe_bytes(). Only
  // while nothing is queued.
  virtual void SetPacketBytes(std::uint32_t packet_bytes_max) = 0;
  // What a packet of this size is in the network, IP header and all.
  virtual std::size_t IpBytes(std::uint32_t packet_bytes) const = 0;
  // What the machine clipped or refused, each once, with what to do about it. May grow.
  virtual std::vector<std::string> notices() const = 0;
  // One line for people: backend, address, offloads, queue, faults.
  virtual std::string Describe() const = 0;
};

// `bind_address` and `advertise_address` are numeric; the second may be empty. `rank` only makes
// the injected faults of the ranks differ.
Result<std::unique_ptr<BoundPort>> BindPort(const Settings& settings,
                                            const std::string& bind_address,
                                            const std::string& advertise_address, Rank rank);

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_PORTS_H_
