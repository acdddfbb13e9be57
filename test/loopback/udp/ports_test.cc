#include "transport/ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/loopback/udp/port_group.h"

namespace optireduce::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Settings PlainSettings() {
  Settings settings;
  settings.path_mtu = 1500;
  settings.udp_socket_buffer_bytes = 1 << 20;
  return settings;
}

std::vector<std::unique_ptr<BoundPort>> BindTwo(const Settings& settings) {
  std::vector<std::unique_ptr<BoundPort>> ports;
  std::vector<std::string> endpoints;
  for (Rank rank = 0; rank < 2; ++rank) {
    Result<std::unique_ptr<BoundPort>> port = BindPort(settings, "127.0.0.1", "", rank);
    EXPECT_TRUE(port.ok()) << port.status().text();
    endpoints.push_back((*port)->endpoint());
    ports.push_back(*std::move(port));
  }
  for (Rank rank = 0; rank < 2; ++rank) {
    const Status status = ports[rank]->SetPeers(endpoints, rank);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  return ports;
}

TEST(PortsTest, MovesPackets) {
  const auto ports = BindTwo(PlainSettings());
  const SuperPacket packets(5, 500, 20, 1);
  ASSERT_TRUE(ports[0]->port().Send(1, packets.segments));
  ASSERT_TRUE(ports[0]->port().Flush(kNow));
  Packets received;
  ReceiveInto(&ports[1]->port(), packets.packets.size(), &received);
  EXPECT_TRUE(Same(received, packets.packets));
  EXPECT_THAT(ports[0]->Describe(),
              StartsWith("udp " + ports[0]->endpoint() + " path MTU 1500 gso="));
  EXPECT_THAT(ports[0]->Describe(), Not(HasSubstr("faults")));
}

TEST(PortsTest, InjectsFaultsIntoWhatReallyArrived) {
  Settings settings = PlainSettings();
  settings.fault_loss_pct = 25;
  settings.fault_duplicate_pct = 10;
  const auto ports = BindTwo(settings);
  const SuperPacket packets(40, 500, 0, 1);
  std::size_t delivered = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(ports[0]->port().Send(1, packets.segments));
    ASSERT_TRUE(ports[0]->port().Flush(kNow));
    Packets received;
    // As many as the kernel has are taken in, whatever is left of them.
    while (ports[1]->port().counters().packets_received < 40u * static_cast<unsigned>(i + 1)) {
      ports[1]->port().Wait(std::chrono::seconds(2));
      delivered += ports[1]->port().Receive(kNow).size();
    }
  }
  delivered += Drain(&ports[1]->port());
  const PortCounters counters = ports[1]->port().counters();
  EXPECT_GT(counters.fault_dropped, 0u);
  EXPECT_GT(counters.fault_duplicated, 0u);
  EXPECT_EQ(counters.packets_received, 400u);
  EXPECT_EQ(delivered, 400u + counters.fault_duplicated - counters.fault_dropped);
  EXPECT_THAT(ports[1]->Describe(), HasSubstr("injected faults: loss 25% bursts 0% duplicate 10%"));
}

TEST(PortsTest, AdvertisesAnotherAddressWithItsOwnPort) {
  const Settings settings = PlainSettings();
  const auto port = BindPort(settings, "127.0.0.1", "192.0.2.7", 0);
  ASSERT_TRUE(port.ok());
  EXPECT_THAT((*port)->endpoint(), StartsWith("192.0.2.7:"));
  EXPECT_THAT((*port)->endpoint(), Not(HasSubstr(":0")));
  EXPECT_TRUE(BindPort(settings, "0.0.0.0", "127.0.0.1", 0).ok());
}

TEST(PortsTest, SaysWhatIsWrong) {
  const Settings settings = PlainSettings();
  EXPECT_THAT(BindPort(settings, "0.0.0.0", "", 0).status().text(), HasSubstr("which one"));
  EXPECT_THAT(BindPort(settings, "127.0.0.1", "::1", 0).status().text(), HasSubstr("family"));
  EXPECT_THAT(BindPort(settings, "127.0.0.1", "host", 0).status().text(),
              HasSubstr("address to advertise"));
  EXPECT_FALSE(BindPort(settings, "not-an-address", "", 0).ok());
  const auto port = BindPort(settings, "127.0.0.1", "", 0);
  ASSERT_TRUE(port.ok());
  const std::string endpoints[] = {"", "127.0.0.1"};
  EXPECT_THAT((*port)->SetPeers(endpoints, 0).text(), HasSubstr("rank 1"));
}

}  // namespace
}  // namespace optireduce::test
