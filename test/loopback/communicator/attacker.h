// Who shares the network with a job and has no key of it: sends what it likes to data ports, from
// its own address or (with CAP_NET_RAW) from that of a rank, reads along, and pesters the control
// port. IPv4 loopback only. One thread.
#ifndef OPTIREDUCE_TEST_LOOPBACK_COMMUNICATOR_ATTACKER_H_
#define OPTIREDUCE_TEST_LOOPBACK_COMMUNICATOR_ATTACKER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace optireduce::testing {

using Datagram = std::vector<std::byte>;
using PortNumber = std::uint16_t;

class DatagramAttacker {
 public:
  DatagramAttacker();
  ~DatagramAttacker();
  DatagramAttacker(const DatagramAttacker&) = delete;
  DatagramAttacker& operator=(const DatagramAttacker&) = delete;

  // Whether it may write other senders' addresses, and read along.
  bool privileged() const { return raw_ >= 0 && tap_ >= 0; }
  void Send(PortNumber to, std::span<const std::byte> payload) const;
  void SendAs(PortNumber from, PortNumber to, std::span<const std::byte> payload) const;

  struct Seen {
    PortNumber from = 0;
    PortNumber to = 0;
    Datagram payload;
  };
  // The next packets, at most `count`, that came by on their way to one of these ports.
  std::vector<Seen> ReadAlong(std::span<const PortNumber> ports, std::size_t count) const;

 private:
  int own_ = -1;
  int raw_ = -1;
  int tap_ = -1;
};

// A client of the control port that is none of ours.
class TcpAttacker {
 public:
  explicit TcpAttacker(PortNumber port) : port_(port) {}
  ~TcpAttacker();
  TcpAttacker(const TcpAttacker&) = delete;
  TcpAttacker& operator=(const TcpAttacker&) = delete;

  // Connects, sends, and stays.
  void SendAndStay(std::span<const std::byte> bytes);
  // Connects, sends, and breaks the connection with RST.
  void SendAndReset(std::span<const std::byte> bytes);
  // Lets go of all that stayed.
  void Leave();
  int refused() const { return refused_; }

 private:
  int Connect();
  PortNumber port_;
  int refused_ = 0;
  std::vector<int> staying_;
};

// Of this process, in bytes.
std::size_t ResidentBytes();

}  // namespace optireduce::testing

#endif  // OPTIREDUCE_TEST_LOOPBACK_COMMUNICATOR_ATTACKER_H_
