#include "transport/udp/udp_port.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "lib/check.h"

namespace optireduce {

Result<std::unique_ptr<UdpPort>> UdpPort::Bind(const UdpPortOptions& options) {
  Result<UdpSocket> socket = UdpSocket::Open(options);
  if (!socket.ok()) return socket.status();
  FileDescriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (wake.get() < 0) {
    return Status(Code::kUnavailable, std::string("make an eventfd: ") + std::strerror(errno));
  }
  return std::unique_ptr<UdpPort>(new UdpPort(*std::move(socket), std::move(wake)));
}

UdpPort::UdpPort(UdpSocket socket, FileDescriptor wake)
    : socket_(std::move(socket)),
      wake_(std::move(wake)),
      limits_(LimitsOf(socket_, PacketBytesMax(socket_.local.family(), socket_.path_mtu))),
      send_(socket_.fd.get(), limits_.packet_bytes_max, limits_.segments_max, socket_.gso),
      receive_(socket_.fd.get(), limits_.packet_bytes_max, socket_.gro) {}

PortLimits UdpPort::LimitsOf(const UdpSocket& socket, std::size_t packet_bytes_max) {
  return {packet_bytes_max, SegmentsMax(socket.local.family(), packet_bytes_max),
          ReceiveBytesHeld(socket.receive_buffer, packet_bytes_max)};
}

std::vector<std::uint32_t> UdpPort::probe_bytes() const {
  return ProbeBytes(socket_.local.family(), socket_.path_mtu);
}

void UdpPort::SetPacketBytes(std::size_t packet_bytes_max) {
  OR_CHECK(packet_bytes_max <= PacketBytesMax(socket_.local.family(), socket_.path_mtu));
  limits_ = LimitsOf(socket_, packet_bytes_max);
  send_.SetLimits(limits_.packet_bytes_max, limits_.segments_max);
}

std::size_t UdpPort::IpBytes(std::size_t packet_bytes) const {
  return packet_bytes + IpHeaderBytes(socket_.local.family());
}

Status UdpPort::SetPeers(std::span<const Endpoint> by_rank, Rank self) {
  OR_CHECK(self < by_rank.size());
  OR_CHECK(send_.empty());
  std::vector<Endpoint> peers(by_rank.begin(), by_rank.end());
  ReceiveQueue::Peers known;
  known.reserve(peers.size());
  for (Rank rank = 0; rank < peers.size(); ++rank) {
    if (rank == self) continue;
    Endpoint& peer = peers[rank];
    const std::string who = "address of rank " + std::to_string(rank) + ", " + peer.ToString();
    if (peer.family() != socket_.local.family()) {
      return Status(Code::kInvalidArgument,
                    who + ": not of the family of our own, " + socket_.local.ToString());
    }
    if (peer.port() == 0 || peer.is_wildcard()) {
      return Status(Code::kInvalidArgument, who + ": nothing can be sent there");
    }
    if (peer.is_link_local()) peer.set_scope_id(socket_.local.scope_id());
    if (peer == socket_.local || !known.insert(peer).second) {
      return Status(Code::kInvalidArgument, who + ": another rank has the same");
    }
  }
  peers_ = std::move(peers);
  self_ = self;
  receive_.SetPeers(std::move(known));
  return Status::Ok();
}

PortCounters UdpPort::counters() const {
  PortCounters result;
  result.packets_sent = send_.counters().packets;
  result.bytes_sent = send_.counters().bytes;
  result.send_calls = send_.counters().calls;
  result.send_refused = send_.counters().refused;
  result.packets_received = receive_.counters().packets;
  result.bytes_received = receive_.counters().bytes;
  result.receive_calls = receive_.counters().calls;
  result.foreign_packets = receive_.counters().foreign;
  result.receive_queue_drops = receive_.Drops();
  result.waits = waits_;
  return result;
}

bool UdpPort::Send(std::uint32_t peer, std::span<const TxSegment> segments) {
  OR_CHECK(peer < peers_.size() && peer != self_);
  return send_.Push(peers_[peer], segments);
}

bool UdpPort::Flush(Instant /*now*/) { return send_.Flush(); }

std::span<const RxPacket> UdpPort::Receive(Instant /*now*/) { return receive_.Receive(); }

void UdpPort::Wait(Duration at_most) {
  const std::int64_t ns = at_most.count() > 0 ? at_most.count() : 0;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec limit{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  const short events = send_.empty() ? POLLIN : POLLIN | POLLOUT;
  pollfd watched[] = {{socket_.fd.get(), events, 0}, {wake_.get(), POLLIN, 0}};
  if (ns > 0) ++waits_;
  if (ppoll(watched, 2, &limit, nullptr) <= 0) return;  // time is over, or a signal came
  if (watched[1].revents == 0) return;
  std::uint64_t count = 0;
  // Fails only where another Wait() has taken it, which is as good.
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
}

void UdpPort::Wake() {
  const int saved_errno = errno;  // we may be in a signal handler
  const std::uint64_t one = 1;
  // Fails only where 2^64 - 2 wake-ups are pending, and one is enough.
  [[maybe_unused]] const ssize_t put = write(wake_.get(), &one, sizeof one);
  errno = saved_errno;
}

std::vector<std::string> UdpPort::notices() const {
  std::vector<std::string> all = socket_.notices;
  all.insert(all.end(), send_.notices().begin(), send_.notices().end());
  return all;
}

std::string UdpPort::Describe() const {
  char queue[32];
  std::snprintf(queue, sizeof queue, "%.1f MB",
                static_cast<double>(limits_.receive_bytes_held) / 1e6);
  return "udp " + socket_.local.ToString() + " path MTU " +
         std::to_string(IpBytes(limits_.packet_bytes_max)) + " gso=" + (gso() ? "on" : "off") +
         " gro=" + (gro() ? "on" : "off") + " receive queue " + queue;
}

}  // namespace optireduce
