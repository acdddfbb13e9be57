#include "transport/udp/send_queue.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/check.h"

namespace optireduce {
namespace {

std::size_t Bytes(const iovec* parts, std::size_t segments) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 2 * segments; ++i) bytes += parts[i].iov_len;
  return bytes;
}

// Errors that can be the fault of segmentation offload and not of the packet.
bool MayBlameOffload(int error) {
  return error == EMSGSIZE || error == EINVAL || error == EIO || error == EOPNOTSUPP;
}

// Errors that no network makes: a wrong descriptor, a payload that is no longer mapped.
bool IsBug(int error) { return error == EBADF || error == ENOTSOCK || error == EFAULT; }

}  // namespace

SendQueue::SendQueue(int fd, std::size_t packet_bytes_max, std::size_t segments_max, bool gso,
                     SendMessages send_messages)
    : fd_(fd), send_messages_(send_messages), gso_(gso) {
  for (SuperPacket& super_packet : ring_) super_packet.control.fill(std::byte{0});
  SetLimits(packet_bytes_max, segments_max);
}

void SendQueue::SetLimits(std::size_t packet_bytes_max, std::size_t segments_max) {
  OR_CHECK(queued_ == 0);
  packet_bytes_max_ = packet_bytes_max;
  segments_max_ = segments_max;
  for (SuperPacket& super_packet : ring_) {
    // A header may be a whole message, so this is the largest super-packet; what short headers
    // never touch costs no memory.
    super_packet.headers =
        std::make_unique_for_overwrite<std::byte[]>(packet_bytes_max * segments_max);
    super_packet.parts.resize(2 * segments_max);
  }
}

bool SendQueue::Push(const Endpoint& to, std::span<const TxSegment> segments) {
  OR_CHECK(!segments.empty() && segments.size() <= segments_max_);
  if (queued_ == kSuperPacketsMax) return false;
  SuperPacket& entry = ring_[(head_ + queued_) % kSuperPacketsMax];
  const std::size_t full_bytes = segments.front().bytes();
  OR_CHECK(full_bytes > 0 && full_bytes <= packet_bytes_max_);
  std::byte* header = entry.headers.get();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const TxSegment& segment = segments[i];
    const std::size_t bytes = segment.bytes();
    OR_CHECK(bytes == full_bytes || (i + 1 == segments.size() && bytes > 0 && bytes < full_bytes));
    std::copy(segment.header.begin(), segment.header.end(), header);
    entry.parts[2 * i] = {header, segment.header.size()};
    // The kernel's iovec has one type for reading and writing; sending only reads.
    entry.parts[2 * i + 1] = {const_cast<std::byte*>(segment.payload.data()),
                              segment.payload.size()};
    header += segment.header.size();
  }
  entry.to = to;
  entry.segments = segments.size();
  entry.next = 0;
  entry.split_error = 0;
  ++queued_;
  return true;
}

bool SendQueue::Flush() {
  while (queued_ > 0) {
    const std::size_t count = PreparePieces();
    ++counters_.calls;
    const int taken = send_messages_(fd_, messages_.data(), static_cast<unsigned>(count), 0);
    if (taken < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      if (error == EAGAIN || error == EWOULDBLOCK) return false;
      Refused(pieces_[0], error);
      continue;
    }
    for (int i = 0; i < taken; ++i) Taken(pieces_[static_cast<std::size_t>(i)]);
  }
  return true;
}

std::size_t SendQueue::PreparePieces() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < queued_ && count < kPiecesMax; ++i) {
    SuperPacket& entry = ring_[(head_ + i) % kSuperPacketsMax];
    const bool whole = gso_ && entry.next == 0 && entry.split_error == 0;
    std::size_t first = entry.next;
    while (first < entry.segments && count < kPiecesMax) {
      const std::size_t segments = whole ? entry.segments : 1;
      AddPiece(count, &entry, first, segments);
      first += segments;
      ++count;
    }
  }
  return count;
}

void SendQueue::AddPiece(std::size_t piece, SuperPacket* super_packet, std::size_t first,
                         std::size_t segments) {
  pieces_[piece] = {super_packet, segments};
  msghdr& header = messages_[piece].msg_hdr;
  header = {};
  header.msg_name = super_packet->to.address();
  header.msg_namelen = super_packet->to.length();
  header.msg_iov = &super_packet->parts[2 * first];
  header.msg_iovlen = 2 * segments;
  if (segments == 1) return;
  header.msg_control = super_packet->control.data();
  header.msg_controllen = super_packet->control.size();
  cmsghdr* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = IPPROTO_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto segment_bytes = static_cast<std::uint16_t>(Bytes(header.msg_iov, 1));
  std::memcpy(CMSG_DATA(control), &segment_bytes, sizeof segment_bytes);
}

void SendQueue::Taken(const Piece& piece) {
  SuperPacket* super_packet = piece.super_packet;
  if (super_packet->split_error != 0 && super_packet->next == 0) {
    // The kernel takes the full packet alone and refused it as one of several: offload is to blame.
    gso_ = false;
    NoteOnce(&noted_gso_, "udp: segmentation offload given up, since a send failed with it (" +
                              std::string(std::strerror(super_packet->split_error)) + ")");
  }
  counters_.packets += piece.segments;
  counters_.bytes += Bytes(&super_packet->parts[2 * super_packet->next], piece.segments);
  Advance(super_packet, piece.segments);
}

void SendQueue::Refused(const Piece& piece, int error) {
  OR_CHECK(!IsBug(error));
  SuperPacket* super_packet = piece.super_packet;
  if (piece.segments > 1 && MayBlameOffload(error)) {
    super_packet->split_error = error;  // to be judged by its first packet alone
    return;
  }
  const std::string to = super_packet->to.ToString();
  if (error == EMSGSIZE) {
    const std::size_t bytes = Bytes(&super_packet->parts[2 * super_packet->next], 1);
    NoteOnce(&noted_too_large_, "udp: a packet of " + std::to_string(bytes) + " bytes to " + to +
                                    " is larger than the path MTU lets through");
  } else {
    NoteOnce(&noted_refused_, "udp: a packet to " + to + " was refused (" +
                                  std::string(std::strerror(error)) + "); counted as lost");
  }
  counters_.refused += piece.segments;
  Advance(super_packet, piece.segments);
}

void SendQueue::Advance(SuperPacket* super_packet, std::size_t segments) {
  OR_CHECK(super_packet == &ring_[head_]);
  super_packet->next += segments;
  if (super_packet->next < super_packet->segments) return;
  head_ = (head_ + 1) % kSuperPacketsMax;
  --queued_;
}

void SendQueue::NoteOnce(bool* noted, std::string text) {
  if (*noted) return;
  *noted = true;
  notices_.push_back(std::move(text));
}

}  // namespace optireduce
