// Who speaks another version of the control protocol is told so, in either direction, and does not
// try for ever.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "test/loopback/control/group.h"
#include "transport/control/frame.h"

namespace optireduce::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int ConnectTo(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

// The first frame that comes in before the other side closes.
std::optional<Frame> ReadFrame(int fd) {
  const timeval limit{10, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  FrameReader reader(kListBytesMax);
  std::array<std::byte, 512> bytes;
  for (;;) {
    const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
    if (count <= 0) return std::nullopt;
    reader.Feed({bytes.data(), static_cast<std::size_t>(count)});
    if (auto frame = reader.Next()) return frame;
  }
}

TEST(ControlVersionTest, ANewerRankIsRefusedWithBothVersions) {
  Listener listener;
  const std::uint16_t port = listener.port();
  Spec spec = SpecOf(0, 2, port);
  spec.launch.listen_fd = listener.Take();
  testing::internal::CaptureStderr();
  auto master = std::async(std::launch::async, [&] { return Join(spec); });
  Bytes hello = FrameOf(FrameType::kHello, Serialize(Hello{}));
  hello[4] = std::byte{9};
  const int fd = ConnectTo(port);
  sockaddr_in own{};
  socklen_t bytes = sizeof own;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes), 0);
  EXPECT_EQ(send(fd, hello.data(), hello.size(), MSG_NOSIGNAL), ssize_t(hello.size()));
  const std::optional<Frame> answer = ReadFrame(fd);
  close(fd);
  const Joined rest = Join(SpecOf(1, 2, port));
  const Joined first = master.get();
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->type, FrameType::kRefused);
  const std::optional<Refused> refused = ParseRefused(answer->body);
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->retry);
  EXPECT_EQ(refused->code, Code::kMismatch);
  EXPECT_TRUE(Contains(refused->reason, "it speaks version 9 ")) << refused->reason;
  EXPECT_TRUE(Contains(refused->reason, "rank 0 speaks version ")) << refused->reason;
  // People at rank 0 see who that was; the job goes on without it.
  const std::string sender = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  EXPECT_TRUE(Contains(log, "control: refused " + sender + ": it speaks version 9")) << log;
  EXPECT_TRUE(rest.ok() && first.ok());
}

TEST(ControlVersionTest, ARankThatIsRefusedByANewerMasterSaysWhyAtOnce) {
  Listener listener;
  const std::uint16_t port = listener.port();
  const int listen_fd = listener.Take();
  std::thread newer([&] {
    const int fd = accept(listen_fd, nullptr, nullptr);
    (void)ReadFrame(fd);
    Bytes answer = FrameOf(FrameType::kRefused,
                           Serialize(Refused{false, Code::kMismatch, "rank 0 speaks version 9"}));
    answer[4] = std::byte{9};
    (void)!send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(fd);
  });
  Spec spec = SpecOf(1, 2, port);
  spec.limit = seconds(20);
  const auto start = std::chrono::steady_clock::now();
  const Joined joined = Join(spec);
  newer.join();
  close(listen_fd);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), Code::kMismatch);
  EXPECT_TRUE(Contains(joined.status().text(), "rank 0 speaks version 9"))
      << joined.status().text();
  EXPECT_LT(std::chrono::steady_clock::now() - start, spec.limit / 2);
}

}  // namespace
}  // namespace optireduce::control
