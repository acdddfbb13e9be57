// Messages with every field set to something telling, and hexadecimal text for their bytes.
#ifndef OPTIREDUCE_TEST_UNIT_WIRE_SAMPLES_H_
#define OPTIREDUCE_TEST_UNIT_WIRE_SAMPLES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/wire/message.h"

namespace optireduce::wire {

// "0a ff" with any spacing; both directions.
std::vector<std::byte> FromHex(std::string_view text);
std::string ToHex(std::span<const std::byte> bytes);

std::vector<std::byte> Text(std::string_view text);

Header SampleHeader(MessageType type);
ReportBlock SampleReport();
Open SampleOpen();
Nack SampleNack();

// A whole packet: the header, tag 0, and `rest`.
std::vector<std::byte> Packet(const Header& header, std::span<const std::byte> rest);

}  // namespace optireduce::wire

#endif  // OPTIREDUCE_TEST_UNIT_WIRE_SAMPLES_H_
