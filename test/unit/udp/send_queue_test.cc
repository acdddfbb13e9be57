// What a send queue makes of every error that a kernel may give it: lost, put off, or split.
#include "transport/udp/send_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace optireduce {
namespace {

using testing::HasSubstr;

// The kernel of a test: gives these errors, one a call, and takes everything when none is left.
struct Kernel {
  std::deque<int> errors;
  std::vector<std::size_t> taken;  // bytes of each message
  int calls = 0;
  std::size_t refuses_above = ~std::size_t{0};  // bytes of a message: EMSGSIZE
};
Kernel* kernel = nullptr;

std::size_t Bytes(const msghdr& message) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
  return bytes;
}

int FakeSend(int, mmsghdr* messages, unsigned count, int) {
  ++kernel->calls;
  if (!kernel->errors.empty()) {
    const int error = kernel->errors.front();
    kernel->errors.pop_front();
    if (error != 0) {
      errno = error;
      return -1;
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t bytes = Bytes(messages[i].msg_hdr);
    if (bytes > kernel->refuses_above) {
      if (i > 0) return static_cast<int>(i);
      errno = EMSGSIZE;
      return -1;
    }
    kernel->taken.push_back(bytes);
  }
  return static_cast<int>(count);
}

class SendQueueErrors : public testing::TestWithParam<int> {
 protected:
  SendQueueErrors() { kernel = &kernel_; }
  ~SendQueueErrors() override { kernel = nullptr; }

  // A super-packet of `segments` packets of 100 bytes.
  void Push(std::size_t segments) {
    std::vector<TxSegment> parts(segments, TxSegment{std::span(bytes_).first(32),
                                                     std::span(bytes_).subspan(32)});
    ASSERT_TRUE(queue_.Push(to_, parts));
  }

  Kernel kernel_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(100);
  Endpoint to_ = *Endpoint::Parse("10.1.2.3:4711");
  SendQueue queue_{-1, 1472, 44, true, &FakeSend};
};

// The packet is lost, like one that the network loses; those behind it go out.
TEST_P(SendQueueErrors, ARefusedPacketIsLostAndNothingElse) {
  kernel_.errors = {GetParam()};
  Push(1);
  Push(1);
  EXPECT_TRUE(queue_.Flush());
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.counters().refused, 1u);
  EXPECT_EQ(queue_.counters().packets, 1u);
  ASSERT_EQ(queue_.notices().size(), 1u);
  EXPECT_THAT(queue_.notices()[0], HasSubstr("10.1.2.3:4711"));
}

// However often it comes: told once, and nothing hangs.
TEST_P(SendQueueErrors, AnErrorThatStaysIsToldOnceAndEndsEveryFlush) {
  kernel_.errors.assign(100, GetParam());
  for (int i = 0; i < 20; ++i) {
    Push(1);
    EXPECT_TRUE(queue_.Flush());
  }
  EXPECT_EQ(queue_.counters().refused, 20u);
  EXPECT_EQ(queue_.notices().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Errno, SendQueueErrors,
                         testing::Values(ENOBUFS, EPERM, EACCES, EMSGSIZE, ENETUNREACH,
                                         EHOSTUNREACH, ENETDOWN, ECONNREFUSED, ENOMEM, EINVAL,
                                         EADDRNOTAVAIL, EAFNOSUPPORT, EPIPE),
                         [](const auto& test) {
                           return std::string(strerrorname_np(test.param));
                         });

using SendQueueBusy = SendQueueErrors;

TEST_F(SendQueueBusy, EagainKeepsEverythingForLater) {
  kernel_.errors = {EAGAIN, EWOULDBLOCK};
  Push(3);
  Push(1);
  EXPECT_FALSE(queue_.Flush());
  EXPECT_FALSE(queue_.Flush());
  EXPECT_FALSE(queue_.empty());
  EXPECT_TRUE(queue_.Flush());
  EXPECT_EQ(queue_.counters().packets, 4u);
  EXPECT_EQ(queue_.counters().refused, 0u);
  EXPECT_TRUE(queue_.notices().empty());
}

TEST_F(SendQueueBusy, ASignalIsNoError) {
  kernel_.errors = {EINTR, EINTR, EINTR};
  Push(3);
  EXPECT_TRUE(queue_.Flush());
  EXPECT_EQ(kernel_.calls, 4);
  EXPECT_EQ(queue_.counters().packets, 3u);
  EXPECT_EQ(queue_.counters().refused, 0u);
}

// An error between two that are taken: sendmmsg tells of it at the next call.
TEST_F(SendQueueBusy, AnErrorInTheMiddleLosesThatOne) {
  kernel_.refuses_above = 150;
  Push(1);
  bytes_.resize(200);  // payloads are not read here
  Push(1);
  bytes_.resize(100);
  Push(1);
  EXPECT_TRUE(queue_.Flush());
  EXPECT_EQ(kernel_.taken, (std::vector<std::size_t>{100, 100}));
  EXPECT_EQ(queue_.counters().refused, 1u);
  EXPECT_THAT(queue_.notices()[0], HasSubstr("200 bytes"));
}

// Offload fails where the packets alone pass: it is given up, and no packet is lost.
TEST_F(SendQueueBusy, WhereOffloadIsToBlameThePacketsGoAlone) {
  for (const int error : {EMSGSIZE, EINVAL, EIO, EOPNOTSUPP}) {
    SendQueue queue(-1, 1472, 44, true, &FakeSend);
    kernel_.errors = {error};
    kernel_.taken.clear();
    const std::vector<TxSegment> parts(5, TxSegment{std::span(bytes_).first(32), {}});
    ASSERT_TRUE(queue.Push(to_, parts));
    EXPECT_TRUE(queue.Flush());
    EXPECT_EQ(kernel_.taken, std::vector<std::size_t>(5, 32));
    EXPECT_EQ(queue.counters().refused, 0u);
    EXPECT_FALSE(queue.gso());
    EXPECT_EQ(queue.notices().size(), 1u);
  }
}

}  // namespace
}  // namespace optireduce
