// One TCP connection that carries control frames. Lives in a shared_ptr, which its running reads
// and writes hold. Only the thread that runs its io_context may touch it.
// It knows no meaning of frames, and decides nothing about peers that are silent.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_CONNECTION_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_CONNECTION_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "transport/control/asio.h"
#include "transport/control/frame.h"

namespace optireduce::control {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using OnFrame = std::function<void(Frame)>;
  // Once, when the connection ended for another reason than Close(); it is closed after the call,
  // but for one exception: where the other side speaks another version, what the callee sends and
  // finishes still goes out, and the callee closes. `clean`: the other side closed between frames.
  using OnEnd = std::function<void(const std::string& reason, bool clean)>;

  Connection(Tcp::socket socket, std::size_t list_bytes_max);

  // Starts to read. May be called again to change who listens.
  void Listen(OnFrame on_frame, OnEnd on_end);
  void Send(FrameType type, const Bytes& body = {});
  // Sends nothing more after what is queued and tells the other side so; its own close then ends
  // the connection.
  void Finish();
  // At once; nothing is called back any more.
  void Close();

  bool closed() const { return closed_; }
  bool sending() const { return !queue_.empty(); }
  Clock::time_point heard_at() const { return heard_at_; }
  FrameReader::Fault fault() const { return reader_.fault(); }
  std::uint8_t foreign_version() const { return reader_.foreign_version(); }
  // "10.0.0.2:40112"
  const std::string& peer_text() const { return peer_text_; }
  std::string local_address() const;

 private:
  void Read();
  void OnRead(const ErrorCode& error, std::size_t bytes);
  void Write();
  void End(const std::string& reason, bool clean);

  // A peer that takes nothing for so long that this much waits is cut off.
  static constexpr std::size_t kQueuedBytesMax = std::size_t{4} << 20;

  Tcp::socket socket_;
  FrameReader reader_;
  OnFrame on_frame_;
  OnEnd on_end_;
  std::array<std::byte, 4096> input_{};
  std::deque<Bytes> queue_;
  std::size_t queued_bytes_ = 0;
  Clock::time_point heard_at_;
  std::string peer_text_;
  bool reading_ = false;
  bool finishing_ = false;
  bool closed_ = false;
};

// The numeric address without the mapping of IPv4 into IPv6.
std::string AddressText(const asio::ip::address& address);

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_CONNECTION_H_
