// Somebody in the same network, without the key, changes no result, ends no process and takes no
// memory to speak of; what it sends is counted by why it was refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lib/random.h"
#include "test/loopback/communicator/attacker.h"
#include "test/loopback/communicator/job.h"
#include "transport/control/frame.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/message.h"

namespace optireduce::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 3;
constexpr std::size_t kElements = 100'000;
constexpr int kWarmOps = 64;
constexpr std::size_t kMemoryMax = std::size_t{50} << 20;  // a sanitizer's shadow comes on top

PortNumber PortOf(const std::string& endpoint) {
  return static_cast<PortNumber>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

// A job of threads whose ranks reduce, and check every result bit by bit, until told to stop.
class Victims {
 public:
  // Merged packets would be read along as one. A small arena is soon touched as a whole, after
  // which memory that grows is the attacker's.
  explicit Victims(SettingList settings = {})
      : job_(kRanks, [&] {
          settings.insert(settings.end(), {{"op_timeout", "60s"}, {"udp.gso", "off"},
                                           {"udp.gro", "off"}, {"arena.bytes_max", "8M"},
                                           {"bucket_bytes_max", "1M"}});
          return settings;
        }()) {}

  // `meanwhile` runs when all ranks have met and reduced once, while they go on.
  void Run(const std::function<void(Victims&)>& meanwhile) {
    const Meeting meeting(kRanks + 1);
    std::thread attacker([&] {
      meeting.Meet();
      meanwhile(*this);
      stop_ = true;
    });
    job_.RunThreads([&](int rank) { RunRank(rank, meeting); });
    attacker.join();
  }

  std::span<const PortNumber> ports() const { return ports_; }
  PortNumber control_port() const { return static_cast<PortNumber>(job_.port()); }
  int ops() const { return ops_; }
  // A counter's value over all ranks.
  std::uint64_t Count(const std::string& name) const { return counts_.at(name); }

 private:
  // True while the others go on too: what one rank decides, all learn with the sum.
  bool Step(Communicator& comm, int op) {
    std::vector<float> tensor(kElements);
    FillSteps(tensor, comm.rank(), op);
    WaitFor(comm.AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                           ReduceOp::kSum));
    EXPECT_EQ(WrongSteps(tensor, kRanks, op), 0U) << "rank " << comm.rank() << " op " << op;
    std::int32_t stopping = stop_ || ::testing::Test::HasFailure() ? 1 : 0;
    WaitFor(comm.AllReduce(&stopping, &stopping, 1, DataType::kInt32, ReduceOp::kMax));
    return stopping == 0;
  }

  void RunRank(int rank, const Meeting& meeting) {
    const auto comm = job_.Make(rank);
    if (!comm) {
      ADD_FAILURE();
      meeting.Meet();
      return;
    }
    const Stats at_start = comm->stats();
    const auto next = static_cast<std::size_t>((rank + 1) % kRanks);
    ports_[next] = PortOf(at_start.peers[next].address);
    int op = 0;
    for (; op < kWarmOps; ++op) Step(*comm, op);
    meeting.Meet();
    for (; Step(*comm, op); ++op) {
      if (rank == 0) ++ops_;
    }
    EXPECT_TRUE(comm->Barrier().ok());
    const std::lock_guard lock(mutex_);
    for (const auto& [name, value] : comm->stats().counters) counts_[name] += value;
  }

  Job job_;
  std::array<PortNumber, kRanks> ports_{};
  std::atomic<bool> stop_{false};
  std::atomic<int> ops_{0};
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;
};

Datagram Junk(Stream& stream, std::size_t bytes) {
  Datagram out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(stream.Next());
  return out;
}

// Not faster than a rank can read: this is about what packets do, not about a full queue.
void Breathe(int i) {
  if (i % 64 == 0) SleepFor(milliseconds(1));
}

// Every header field of a real packet at 0 and at its maximum, and every bit of the header changed.
std::vector<Datagram> Variants(const Datagram& packet) {
  constexpr std::array<std::pair<std::size_t, std::size_t>, 10> kFields = {
      {{0, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 2}, {10, 2}, {12, 4}, {16, 4}, {20, 4}, {24, 8}}};
  std::vector<Datagram> out;
  for (const auto& [at, bytes] : kFields) {
    for (const std::byte value : {std::byte{0}, std::byte{0xff}}) {
      out.push_back(packet);
      std::fill_n(out.back().begin() + static_cast<std::ptrdiff_t>(at), bytes, value);
      if (out.back() == packet) out.pop_back();  // that is what it was
    }
  }
  for (std::size_t bit = 0; bit < wire::kHeaderBytes * 8; ++bit) {
    out.push_back(packet);
    out.back()[bit / 8] ^= std::byte{1} << bit % 8;
  }
  return out;
}

// What reached the ports meanwhile, once there is something of every pair.
std::vector<DatagramAttacker::Seen> Record(const DatagramAttacker& attacker,
                                           std::span<const PortNumber> ports, std::size_t count) {
  std::vector<DatagramAttacker::Seen> out;
  for (int tries = 0; out.size() < count && tries < 2000; ++tries) {
    for (auto& seen : attacker.ReadAlong(ports, count)) out.push_back(std::move(seen));
    SleepFor(milliseconds(1));
  }
  EXPECT_GE(out.size(), count);
  return out;
}

TEST(Attack, PacketsFromAStrangersAddress) {
  Victims victims;
  victims.Run([](Victims& job) {
    const std::size_t before = ResidentBytes();
    const DatagramAttacker attacker;
    Stream stream(1, 0, "attack");
    for (int i = 0; i < 10'000; ++i) {
      const std::size_t bytes = i % 100 == 0 ? 1400 + stream.Below(64'000) : stream.Below(1500);
      attacker.Send(job.ports()[stream.Below(kRanks)], Junk(stream, bytes));
      Breathe(i);
    }
    EXPECT_LT(ResidentBytes(), before + kMemoryMax * static_cast<std::size_t>(TimeScale()));
  });
  EXPECT_GT(victims.ops(), 0);
  EXPECT_GE(victims.Count("port_foreign_packets"), 5'000U);
  EXPECT_EQ(victims.Count("malformed") + victims.Count("bad_tag"), 0U);
}

// Header fields, lengths and junk under the address of a rank.
TEST(Attack, ForgedSource) {
  if (!DatagramAttacker().privileged()) GTEST_SKIP() << "may not forge a source address";
  Victims victims;
  victims.Run([](Victims& job) {
    const std::size_t before = ResidentBytes();
    const DatagramAttacker attacker;
    Stream stream(2, 0, "attack");
    int sent = 0;
    const auto send = [&](const DatagramAttacker::Seen& like, const Datagram& packet) {
      attacker.SendAs(like.from, like.to, packet);
      Breathe(++sent);
    };
    for (int round = 0; round < 20; ++round) {
      const auto seen = Record(attacker, job.ports(), 50);
      for (int i = 0; i < 4; ++i) {
        const auto& like = seen[stream.Below(seen.size())];
        if (like.payload.size() < wire::kHeaderBytes) continue;
        for (const Datagram& packet : Variants(like.payload)) send(like, packet);
        Datagram cut = like.payload;
        cut.resize(stream.Below(cut.size()));
        send(like, cut);
        cut.resize(cut.size() + 1 + stream.Below(60'000));
        send(like, cut);
        send(like, Junk(stream, stream.Below(1500)));
        send({like.to, like.from, {}}, like.payload);  // back to who sent it
      }
    }
    EXPECT_LT(ResidentBytes(), before + kMemoryMax * static_cast<std::size_t>(TimeScale()));
  });
  EXPECT_GT(victims.ops(), 0);
  for (const char* reason :
       {"malformed", "bad_tag", "foreign_group", "stale_epoch", "unknown_sender"}) {
    EXPECT_GT(victims.Count(reason), 0U) << reason;
  }
}

TEST(Attack, ReplayedPackets) {
  if (!DatagramAttacker().privileged()) GTEST_SKIP() << "may not forge a source address";
  std::vector<DatagramAttacker::Seen> earlier;
  std::array<PortNumber, kRanks> earlier_ports{};
  Victims first;
  const DatagramAttacker attacker;
  first.Run([&](Victims& job) {
    std::copy(job.ports().begin(), job.ports().end(), earlier_ports.begin());
    earlier = Record(attacker, job.ports(), 2000);
  });
  Victims second;
  second.Run([&](Victims& job) {
    const std::size_t before = ResidentBytes();
    const auto port_now = [&](PortNumber then) {
      const auto at = std::find(earlier_ports.begin(), earlier_ports.end(), then);
      EXPECT_NE(at, earlier_ports.end());
      return job.ports()[static_cast<std::size_t>(at - earlier_ports.begin())];
    };
    int sent = 0;
    // The ranks of this run have the ports that those of the earlier one had.
    for (const auto& packet : earlier) {
      attacker.SendAs(port_now(packet.from), port_now(packet.to), packet.payload);
      Breathe(++sent);
    }
    // And this run's own packets, a second and a third time.
    for (int round = 0; round < 10; ++round) {
      for (const auto& packet : Record(attacker, job.ports(), 100)) {
        for (int i = 0; i < 2; ++i) attacker.SendAs(packet.from, packet.to, packet.payload);
        Breathe(++sent);
      }
    }
    EXPECT_LT(ResidentBytes(), before + kMemoryMax * static_cast<std::size_t>(TimeScale()));
  });
  EXPECT_GT(second.ops(), 0);
  EXPECT_GE(second.Count("foreign_group"), earlier.size() / 2);
  EXPECT_GT(second.Count("duplicate") + second.Count("late"), 0U);
}

control::Bytes TextBytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// What scanners, browsers and liars send to a port.
std::vector<control::Bytes> ControlJunk(Stream& stream) {
  std::vector<control::Bytes> out = {{},
                                     TextBytes("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                                     TextBytes("\x16\x03\x01"),
                                     Junk(stream, 64 << 10)};
  for (std::uint8_t type = 0; type < 14; ++type) {
    const auto frame_type = static_cast<control::FrameType>(type);
    out.push_back(control::FrameOf(frame_type));
    out.push_back(control::FrameOf(frame_type, control::Bytes(200, std::byte{0xff})));
    // The start of the longest body, and of one that is too long.
    for (const std::uint32_t bytes : {std::uint32_t{control::kBodyBytesMax}, ~std::uint32_t{0}}) {
      out.push_back(control::FrameOf(frame_type, control::Bytes(100)));
      wire::StoreBig(bytes, out.back().data() + 8);
    }
  }
  for (const Rank rank : {0U, 1U, 2U, 3U, kRanksMax - 1}) {
    control::Hello hello;
    hello.rank = rank;
    hello.world_size = kRanks;
    control::Claim claim;
    claim.rank = rank;
    claim.world_size = kRanks;
    claim.endpoint = "127.0.0.1:9";
    control::Bytes body = control::Serialize(claim);
    control::AppendProof(body, {});
    control::Bytes both = control::FrameOf(control::FrameType::kHello, control::Serialize(hello));
    const control::Bytes second = control::FrameOf(control::FrameType::kClaim, body);
    both.insert(both.end(), second.begin(), second.end());
    out.push_back(both);
  }
  return out;
}

TEST(Attack, JunkAtTheControlPortOfARunningJob) {
  Victims victims;
  victims.Run([](Victims& job) {
    const std::size_t before = ResidentBytes();
    Stream stream(3, 0, "attack");
    TcpAttacker attacker(job.control_port());
    const auto junk = ControlJunk(stream);
    for (int round = 0; round < 8; ++round) {
      for (const control::Bytes& bytes : junk) {
        attacker.SendAndStay(bytes);
        attacker.SendAndReset(bytes);
      }
      SleepFor(milliseconds(20));
      attacker.Leave();
    }
    for (int i = 0; i < 300; ++i) attacker.SendAndStay({});
    SleepFor(milliseconds(100));
    EXPECT_EQ(attacker.refused(), 0);
    EXPECT_LT(ResidentBytes(), before + kMemoryMax * static_cast<std::size_t>(TimeScale()));
  });
  EXPECT_GT(victims.ops(), 0);
  // Who keeps a connection and says nothing is crowded out by those that come after.
  for (const char* reason : {"malformed", "left", "refused", "crowded_out"}) {
    EXPECT_GT(victims.Count("control_guests_" + std::string(reason)), 0U) << reason;
  }
}

// A thousand connections without a word and as many with nonsense, before the ranks come.
TEST(Attack, JunkAtTheControlPortOfAStartingJob) {
  Job job(kRanks);
  const auto port = static_cast<PortNumber>(job.port());
  const std::size_t before = ResidentBytes();
  std::thread pest([&] {
    Stream stream(4, 0, "attack");
    auto junk = ControlJunk(stream);
    junk.resize(junk.size() - 5);  // no claims: without a key file who comes first has the rank
    TcpAttacker attacker(port);
    for (int i = 0; i < 1000; ++i) {
      attacker.SendAndReset({});
      attacker.SendAndStay(junk[static_cast<std::size_t>(i) % junk.size()]);
      if (i % 300 == 299) attacker.Leave();
    }
  });
  job.RunThreads([&](int rank) {
    if (rank != 0) SleepFor(milliseconds(200));
    const auto comm = job.Make(rank);
    ASSERT_TRUE(comm);
    std::vector<float> tensor(kElements);
    FillSteps(tensor, rank, 0);
    WaitFor(comm->AllReduce(tensor.data(), tensor.data(), tensor.size(), DataType::kFloat32,
                            ReduceOp::kSum));
    EXPECT_EQ(WrongSteps(tensor, kRanks, 0), 0U);
  });
  pest.join();
  EXPECT_LT(ResidentBytes(), before + kMemoryMax * static_cast<std::size_t>(TimeScale()));
}

}  // namespace
}  // namespace optireduce::testing
