// The version that peers compare when they meet; CMakeLists.txt has the same (test/tidy checks).
#ifndef OPTIREDUCE_COLLECTIVES_VERSION_H_
#define OPTIREDUCE_COLLECTIVES_VERSION_H_

namespace optireduce {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace optireduce

#endif  // OPTIREDUCE_COLLECTIVES_VERSION_H_
