#include "transport/control/connection.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "transport/control/endpoint.h"

namespace optireduce::control {
namespace {

// A host that vanished (no power, no cable) acknowledges nothing: the kernel breaks the connection
// after this long. A stopped process is another matter, its kernel still answers.
constexpr int kVanishedMs = 60'000;
constexpr int kKeepaliveIdleS = 10;
constexpr int kKeepaliveEveryS = 5;

void Tune(Tcp::socket& socket) {
  // A child that outlives us must not keep the connection from breaking.
  (void)fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  ErrorCode ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    (void)setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, kKeepaliveIdleS);
  set(TCP_KEEPINTVL, kKeepaliveEveryS);
  set(TCP_USER_TIMEOUT, kVanishedMs);
}

}  // namespace

std::string AddressText(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

Connection::Connection(Tcp::socket socket, std::size_t list_bytes_max)
    : socket_(std::move(socket)), reader_(list_bytes_max), heard_at_(Clock::now()) {
  Tune(socket_);
  ErrorCode error;
  const Tcp::endpoint peer = socket_.remote_endpoint(error);
  peer_text_ = "a peer that is gone";
  if (!error) peer_text_ = JoinHostPort(AddressText(peer.address()), peer.port());
}

std::string Connection::local_address() const {
  ErrorCode error;
  const Tcp::endpoint local = socket_.local_endpoint(error);
  return error ? std::string() : AddressText(local.address());
}

void Connection::Listen(OnFrame on_frame, OnEnd on_end) {
  on_frame_ = std::move(on_frame);
  on_end_ = std::move(on_end);
  if (!reading_) Read();
}

void Connection::Read() {
  reading_ = true;
  socket_.async_read_some(
      asio::mutable_buffer(input_.data(), input_.size()),
      [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
        self->OnRead(error, bytes);
      });
}

void Connection::OnRead(const ErrorCode& error, std::size_t bytes) {
  if (closed_) return;
  if (error) {
    if (error == asio::error::eof) {
      const bool clean = reader_.held_bytes() == 0;
      End(clean ? "the connection was closed" : "the connection was closed within a frame", clean);
    } else {
      End(error.message(), false);
    }
    return;
  }
  heard_at_ = Clock::now();
  reader_.Feed(std::span(input_).first(bytes));
  while (std::optional<Frame> frame = reader_.Next()) {
    // A copy: the callback may change who listens.
    const OnFrame call = on_frame_;
    call(std::move(*frame));
    if (closed_) return;
  }
  if (reader_.fault() != FrameReader::Fault::kNone) {
    End(std::string(FaultName(reader_.fault())), false);
    return;
  }
  Read();
}

void Connection::Send(FrameType type, const Bytes& body) {
  if (closed_ || finishing_) return;
  queue_.push_back(FrameOf(type, body));
  queued_bytes_ += queue_.back().size();
  if (queued_bytes_ > kQueuedBytesMax) {
    // Later, for the caller may be in a loop over its connections.
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->End("it takes nothing that is sent to it", false);
    });
    return;
  }
  if (queue_.size() == 1) Write();
}

void Connection::Write() {
  asio::async_write(socket_, asio::const_buffer(queue_.front().data(), queue_.front().size()),
                    [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                      if (self->closed_) return;
                      // What became of the connection is for the reader to find out: there may be
                      // a last word to read.
                      if (error) {
                        self->queue_.clear();
                        self->queued_bytes_ = 0;
                        return;
                      }
                      self->queued_bytes_ -= self->queue_.front().size();
                      self->queue_.pop_front();
                      if (!self->queue_.empty()) {
                        self->Write();
                      } else if (self->finishing_) {
                        ErrorCode ignored;
                        self->socket_.shutdown(Tcp::socket::shutdown_send, ignored);
                      }
                    });
}

void Connection::Finish() {
  if (closed_ || finishing_) return;
  finishing_ = true;
  if (!queue_.empty()) return;
  ErrorCode ignored;
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
}

void Connection::Close() {
  closed_ = true;
  on_frame_ = nullptr;
  on_end_ = nullptr;
  ErrorCode ignored;
  // Closing alone would tell the other side nothing while a forked child has the socket too.
  socket_.shutdown(Tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void Connection::End(const std::string& reason, bool clean) {
  if (closed_) return;
  const OnEnd call = std::move(on_end_);
  on_end_ = nullptr;
  if (call) call(reason, clean);
  // A peer of another version may still be told so by what was sent just now.
  if (!(finishing_ && reader_.fault() == FrameReader::Fault::kVersion)) Close();
}

}  // namespace optireduce::control
