// UdpSocket: one bound, non-blocking, unconnected UDP socket, set up for packets that are never
// fragmented, with what the kernel granted of queue memory and offload.
//
// Set-up only: it moves no packet. Used by the thread that owns it.
#ifndef OPTIREDUCE_TRANSPORT_UDP_UDP_SOCKET_H_
#define OPTIREDUCE_TRANSPORT_UDP_UDP_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "optireduce/status.h"
#include "transport/udp/endpoint.h"

namespace optireduce {

struct UdpPortOptions {
  std::string bind_address = "127.0.0.1";  // numeric; IPv6 with its scope where it needs one
  std::uint16_t bind_port = 0;             // 0: the kernel chooses
  // The largest IP packet to send; never more than the interface takes. 0: what the interface
  // takes, and over loopback, where nothing limits it, what networks do: 1500.
  std::size_t path_mtu = 1500;
  std::size_t socket_buffer_bytes = 4u << 20;  // wanted for each direction; 0: the kernel's default
  bool exceed_buffer_limits = true;  // pass net.core.{r,w}mem_max where the process may
  bool gso = true;                   // UDP segmentation offload, where the kernel has it
  bool gro = true;                   // UDP receive offload, where the kernel has it
};

// Closes what it holds.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// IP and UDP headers together.
std::size_t IpHeaderBytes(sa_family_t family);
// The largest UDP payload in an IP packet of `path_mtu` bytes.
std::size_t PacketBytesMax(sa_family_t family, std::size_t path_mtu);
// The packet sizes worth asking for on a path of unknown MTU up to `path_mtu`, falling.
std::vector<std::uint32_t> ProbeBytes(sa_family_t family, std::size_t path_mtu);
// How many packets of that size travel as one super-packet.
std::size_t SegmentsMax(sa_family_t family, std::size_t packet_bytes);
// Payload bytes, in packets of `packet_bytes`, that a socket whose SO_RCVBUF reads
// `receive_buffer` surely holds (the rule is told at the definition).
std::size_t ReceiveBytesHeld(std::size_t receive_buffer, std::size_t packet_bytes);

struct UdpSocket {
  static Result<UdpSocket> Open(const UdpPortOptions& options);

  FileDescriptor fd;
  Endpoint local;
  std::size_t path_mtu = 0;  // of the options and the interface
  bool gso = false;
  bool gro = false;
  std::size_t receive_buffer = 0;    // SO_RCVBUF as read back: what the kernel charges against
  std::vector<std::string> notices;  // what was clipped or is missing, and what to do about it
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_UDP_UDP_SOCKET_H_
