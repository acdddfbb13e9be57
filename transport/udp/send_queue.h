// SendQueue: the super-packets that wait to go out of one UDP socket, and how they go: with UDP
// segmentation offload one kernel datagram each, else (or where a path turns out not to take it)
// packet by packet.
//
// Used by the thread that turns the engine. It knows addresses, no ranks, and never sleeps.
#ifndef OPTIREDUCE_TRANSPORT_UDP_SEND_QUEUE_H_
#define OPTIREDUCE_TRANSPORT_UDP_SEND_QUEUE_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/packet_io.h"
#include "transport/udp/endpoint.h"

namespace optireduce {

class SendQueue {
 public:
  struct Counters {
    std::uint64_t packets = 0;  // taken by the kernel
    std::uint64_t bytes = 0;
    std::uint64_t calls = 0;
    std::uint64_t refused = 0;  // packets that the kernel refused for good
  };

  // The system call; a test has one of its own that fails as it likes.
  using SendMessages = int (*)(int fd, mmsghdr* messages, unsigned count, int flags);

  // `fd` stays the caller's and must outlive the queue.
  SendQueue(int fd, std::size_t packet_bytes_max, std::size_t segments_max, bool gso,
            SendMessages send_messages = &sendmmsg);

  // Only while nothing is queued.
  void SetLimits(std::size_t packet_bytes_max, std::size_t segments_max);

  // As PacketPort::Send().
  bool Push(const Endpoint& to, std::span<const TxSegment> segments);
  // As PacketPort::Flush().
  bool Flush();

  bool empty() const { return queued_ == 0; }
  bool gso() const { return gso_; }
  const Counters& counters() const { return counters_; }
  // What was refused or given up, each kind once.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  struct SuperPacket {
    Endpoint to;
    std::unique_ptr<std::byte[]> headers;  // the copies that `parts` points into
    std::vector<iovec> parts;              // header, payload, header, payload …
    std::size_t segments = 0;
    std::size_t next = 0;  // first segment that the kernel has not taken
    int split_error = 0;   // not 0: goes packet by packet, since offload failed with this errno
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control;
  };
  // One entry of a sendmmsg call.
  struct Piece {
    SuperPacket* super_packet = nullptr;
    std::size_t segments = 0;
  };

  static constexpr std::size_t kSuperPacketsMax = 32;
  static constexpr std::size_t kPiecesMax = 64;

  std::size_t PreparePieces();
  void AddPiece(std::size_t piece, SuperPacket* super_packet, std::size_t first,
                std::size_t segments);
  void Taken(const Piece& piece);
  void Refused(const Piece& piece, int error);
  void Advance(SuperPacket* super_packet, std::size_t segments);
  void NoteOnce(bool* noted, std::string text);

  const int fd_;
  const SendMessages send_messages_;
  std::size_t packet_bytes_max_ = 0;
  std::size_t segments_max_ = 0;
  bool gso_;

  std::array<SuperPacket, kSuperPacketsMax> ring_;
  std::size_t head_ = 0;
  std::size_t queued_ = 0;

  std::array<mmsghdr, kPiecesMax> messages_{};
  std::array<Piece, kPiecesMax> pieces_{};

  Counters counters_;
  bool noted_gso_ = false;
  bool noted_too_large_ = false;
  bool noted_refused_ = false;
  std::vector<std::string> notices_;
};

}  // namespace optireduce

#endif  // OPTIREDUCE_TRANSPORT_UDP_SEND_QUEUE_H_
