#include "transport/udp/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace optireduce::test {
namespace {

using ::testing::HasSubstr;

TEST(EndpointTest, TextRoundTrips) {
  for (const char* text : {"127.0.0.1:4711", "255.255.255.255:65535", "[::1]:4711",
                           "[2001:db8::42]:1", "[fe80::1%1]:4711", "0.0.0.0:0", "[::]:0"}) {
    const Result<Endpoint> endpoint = Endpoint::Parse(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().text();
    EXPECT_EQ(endpoint->ToString(), text);
    EXPECT_EQ(*Endpoint::FromHost(endpoint->Host(), endpoint->port()), *endpoint);
  }
}

TEST(EndpointTest, InterfaceNamesBecomeNumbers) {
  EXPECT_EQ(Endpoint::Parse("[fe80::1%lo]:5")->ToString(), "[fe80::1%1]:5");
}

TEST(EndpointTest, RefusesWithTheReason) {
  const auto text = [](const char* address) { return Endpoint::Parse(address).status().text(); };
  EXPECT_THAT(text("127.0.0.1"), HasSubstr("no port"));
  EXPECT_THAT(text("127.0.0.1:"), HasSubstr("port is no number"));
  EXPECT_THAT(text("127.0.0.1:65536"), HasSubstr("port is no number"));
  EXPECT_THAT(text("127.0.0.1:12x"), HasSubstr("port is no number"));
  EXPECT_THAT(text("127.0.0.1:-1"), HasSubstr("port is no number"));
  EXPECT_THAT(text("localhost:1"), HasSubstr("neither"));
  EXPECT_THAT(text("127.0.0.256:1"), HasSubstr("neither"));
  EXPECT_THAT(text(":1"), HasSubstr("neither"));
  EXPECT_THAT(text("::1:1"), HasSubstr("needs brackets"));
  EXPECT_THAT(text("[127.0.0.1]:1"), HasSubstr("brackets are for IPv6"));
  EXPECT_THAT(text("127.0.0.1%lo:1"), HasSubstr("no scope"));
  EXPECT_THAT(text("[fe80::1%no-such-interface]:1"), HasSubstr("no interface"));
  EXPECT_THAT(text("[fe80::1%]:1"), HasSubstr("no interface"));
}

TEST(EndpointTest, EqualityIsAddressPortAndScopeWhereItMeansSomething) {
  const auto parse = [](const char* text) { return *Endpoint::Parse(text); };
  EXPECT_EQ(parse("10.0.0.1:5"), parse("10.0.0.1:5"));
  EXPECT_FALSE(parse("10.0.0.1:5") == parse("10.0.0.1:6"));
  EXPECT_FALSE(parse("10.0.0.1:5") == parse("10.0.0.2:5"));
  EXPECT_FALSE(parse("[fe80::1%1]:5") == parse("[fe80::1%2]:5"));
  EXPECT_EQ(parse("[2001:db8::1%1]:5"), parse("[2001:db8::1]:5"));
  EXPECT_EQ(parse("[2001:db8::1%1]:5").Hash(), parse("[2001:db8::1]:5").Hash());
  EXPECT_FALSE(parse("[::]:5") == parse("0.0.0.0:5"));
  EXPECT_FALSE(Endpoint() == parse("0.0.0.0:0"));
  EXPECT_NE(parse("10.0.0.1:5").Hash(), parse("10.0.0.1:6").Hash());
}

TEST(EndpointTest, KnowsSpecialAddresses) {
  EXPECT_TRUE(Endpoint::Parse("0.0.0.0:1")->is_wildcard());
  EXPECT_TRUE(Endpoint::Parse("[::]:1")->is_wildcard());
  EXPECT_FALSE(Endpoint::Parse("[::1]:1")->is_wildcard());
  EXPECT_TRUE(Endpoint::Parse("[fe80::1]:1")->is_link_local());
  EXPECT_FALSE(Endpoint::Parse("[fd00::1]:1")->is_link_local());
  EXPECT_EQ(Endpoint().family(), AF_UNSPEC);
  EXPECT_EQ(Endpoint().ToString(), "none:0");
}

}  // namespace
}  // namespace optireduce::test
