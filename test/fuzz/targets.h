// The fuzz targets: each takes any bytes and aborts where a promise is broken. The same functions
// are linked into one libFuzzer program each (preset `fuzz`) and into the test that replays the
// committed inputs in every build (test/unit/fuzz).
//
// A target keeps nothing between two calls that could change the second. One thread.
#ifndef OPTIREDUCE_TEST_FUZZ_TARGETS_H_
#define OPTIREDUCE_TEST_FUZZ_TARGETS_H_

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace optireduce::fuzz {

using InputBytes = std::span<const std::byte>;

void Wire(InputBytes input);         // headers, bodies and tags of packets
void Control(InputBytes input);      // a stream of control frames, and their bodies
void Config(InputBytes input);       // values of options
void Environment(InputBytes input);  // OPTIREDUCE_* variables
void Launch(InputBytes input);       // a launcher's variables, and addresses
void Outsider(InputBytes input);     // engines at work, and packets of who has no key
void Insider(InputBytes input);      // an engine, and peers with the key that send anything

struct Target {
  std::string_view name;
  void (*run)(InputBytes input);
};

inline constexpr std::array kTargets = {
    Target{"wire", Wire},
    Target{"control", Control},
    Target{"config", Config},
    Target{"environment", Environment},
    Target{"launch", Launch},
    Target{"outsider", Outsider},
    Target{"insider", Insider},
};

}  // namespace optireduce::fuzz

#endif  // OPTIREDUCE_TEST_FUZZ_TARGETS_H_
