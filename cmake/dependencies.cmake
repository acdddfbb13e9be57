# Everything we link that is not ours. Only find_package and pkg-config: nothing is downloaded.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# CONFIG: FindBoost is gone from newer CMake.
find_package(Boost 1.74 REQUIRED CONFIG)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)

if(OPTIREDUCE_BUILD_EXAMPLES)
  find_package(gflags REQUIRED)
endif()
if(OPTIREDUCE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
