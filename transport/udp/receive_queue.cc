#include "transport/udp/receive_queue.h"

#include <linux/sock_diag.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/check.h"

namespace optireduce {
namespace {

// No UDP datagram is larger.
constexpr std::size_t kMergedBytesMax = 65536;
// Merged datagrams have at most 128 segments in today's kernels; room for a few such at once.
constexpr std::size_t kBurstPackets = 4 * 128;
constexpr std::size_t kCacheLineBytes = 64;
// Errors in a row, after which the socket is left alone until the next time.
constexpr int kErrorsMax = 64;

// One cache line more than a packet: a datagram that is too large must show as that, not be cut to
// a size that looks right.
std::size_t DatagramBytesMax(std::size_t packet_bytes_max, bool gro) {
  if (gro) return kMergedBytesMax;
  return (packet_bytes_max / kCacheLineBytes + 2) * kCacheLineBytes;
}

}  // namespace

ReceiveQueue::ReceiveQueue(int fd, std::size_t packet_bytes_max, bool gro)
    : fd_(fd),
      datagram_bytes_max_(DatagramBytesMax(packet_bytes_max, gro)),
      gro_(gro),
      // Memory of merged size that single packets never touch costs nothing.
      memory_(std::make_unique_for_overwrite<std::byte[]>(
          kDatagramsMax * datagram_bytes_max_ + kCacheLineBytes)) {
  void* start = memory_.get();
  std::size_t space = kDatagramsMax * datagram_bytes_max_ + kCacheLineBytes;
  std::align(kCacheLineBytes, kDatagramsMax * datagram_bytes_max_, start, space);
  for (std::size_t i = 0; i < kDatagramsMax; ++i) {
    parts_[i] = {static_cast<std::byte*>(start) + i * datagram_bytes_max_, datagram_bytes_max_};
    msghdr& header = messages_[i].msg_hdr;
    header.msg_name = sources_[i].address();
    header.msg_iov = &parts_[i];
    header.msg_iovlen = 1;
    header.msg_control = controls_[i].bytes.data();
  }
  burst_.reserve(kBurstPackets);
  if (!gro_) fetch_ = kDatagramsMax;
}

std::span<const RxPacket> ReceiveQueue::Receive() {
  burst_.clear();
  // A burst of nothing but strangers' packets must not look like an empty queue, nor may strangers
  // keep us here.
  for (int tries = 0; tries < 4 && burst_.empty(); ++tries) {
    const std::size_t count = Fetch();
    if (count == 0) break;
    bool merged = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const std::byte> datagram(static_cast<const std::byte*>(parts_[i].iov_base),
                                                messages_[i].msg_len);
      const std::size_t before = burst_.size();
      Cut(messages_[i], datagram);
      merged = merged || burst_.size() > before + 1;
    }
    if (gro_) fetch_ = merged ? kMergedDatagramsMax : kDatagramsMax;
  }
  return burst_;
}

// One recvmmsg; how many datagrams it brought.
std::size_t ReceiveQueue::Fetch() {
  for (std::size_t i = 0; i < fetch_; ++i) {
    messages_[i].msg_hdr.msg_namelen = Endpoint::kLengthMax;
    messages_[i].msg_hdr.msg_controllen = controls_[i].bytes.size();
  }
  for (int i = 0; i < kErrorsMax; ++i) {
    ++counters_.calls;
    const int count =
        recvmmsg(fd_, messages_.data(), static_cast<unsigned>(fetch_), MSG_DONTWAIT, nullptr);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    OR_CHECK(errno != EBADF && errno != ENOTSOCK && errno != EFAULT && errno != EINVAL);
    // EINTR, or an error that the network left on the socket: reading it has cleared it.
  }
  return 0;  // one that stays, such as ENOMEM: later
}

void ReceiveQueue::Cut(const mmsghdr& message, std::span<const std::byte> datagram) {
  const std::size_t merged_bytes = ReadControl(message.msg_hdr);
  const std::size_t segment_bytes = merged_bytes > 0 ? merged_bytes : datagram.size();
  const std::size_t segments =
      datagram.empty() ? 1 : (datagram.size() + segment_bytes - 1) / segment_bytes;
  const auto index = static_cast<std::size_t>(&message - messages_.data());
  if (peers_.find(sources_[index]) == peers_.end()) {
    counters_.foreign += segments;
    return;
  }
  counters_.packets += segments;
  counters_.bytes += datagram.size();
  for (std::size_t i = 0; i < segments; ++i) {
    burst_.push_back({datagram.first(std::min(segment_bytes, datagram.size()))});
    datagram = datagram.subspan(burst_.back().bytes.size());
  }
}

// The size of the merged segments, 0 where the datagram is one packet; notes drops on the way.
std::size_t ReceiveQueue::ReadControl(const msghdr& header) {
  std::size_t segment_bytes = 0;
  // CMSG_NXTHDR wants a pointer to non-const, though it only reads.
  auto* mutable_header = const_cast<msghdr*>(&header);
  for (cmsghdr* control = CMSG_FIRSTHDR(mutable_header); control != nullptr;
       control = CMSG_NXTHDR(mutable_header, control)) {
    if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(control), sizeof size);
      segment_bytes = size > 0 ? static_cast<std::size_t>(size) : 0;
    } else if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL) {
      std::uint32_t drops = 0;
      std::memcpy(&drops, CMSG_DATA(control), sizeof drops);
      NoteDrops(drops);
    }
  }
  return segment_bytes;
}

void ReceiveQueue::NoteDrops(std::uint32_t kernel_count) const {
  // The count that comes with a packet is of the time when it was queued: maybe older than ours.
  const auto newer = static_cast<std::int32_t>(kernel_count - kernel_drops_);
  if (newer <= 0) return;
  kernel_drops_ = kernel_count;
  drops_ += static_cast<std::uint64_t>(newer);
}

std::uint64_t ReceiveQueue::Drops() const {
  // Drops at the end of a burst have no later packet to come with, so the kernel is asked.
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t length = sizeof memory;
  if (getsockopt(fd_, SOL_SOCKET, SO_MEMINFO, memory.data(), &length) == 0 &&
      length > SK_MEMINFO_DROPS * sizeof(std::uint32_t)) {
    NoteDrops(memory[SK_MEMINFO_DROPS]);
  }
  return drops_;
}

}  // namespace optireduce
