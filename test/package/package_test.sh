#!/bin/sh
# package_test.sh CMAKE BUILD STRANGER WORK COMPILER GENERATOR MAKE_PROGRAM [FLAGS]
# Installs BUILD below WORK, then builds and runs the stranger's project by CMake and by pkg-config.
set -eu
cmake=$1 build=$2 stranger=$3 work=$4 compiler=$5 generator=$6 make_program=$7 flags=${8:-}

fail() {
  echo "package: $*" >&2
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
prefix=$work/prefix
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log" || fail "install failed"

# Nothing but the library, its public headers and how to find them.
(cd "$prefix" && find . -type f -o -type l) | while read -r path; do
  case "$path" in
    ./include/optireduce/*.h) ;;
    ./lib*/liboptireduce.so*) ;;
    ./lib*/pkgconfig/optireduce.pc) ;;
    ./lib*/cmake/optireduce/*.cmake) ;;
    *) fail "unexpected file in the installation: $path" ;;
  esac
done

library=$(find "$prefix" -name liboptireduce.so)
[ -n "$library" ] || fail "no liboptireduce.so in the installation"
foreign=$(nm -DC --defined-only "$library" | cut -d' ' -f3- | grep -v 'optireduce::' || true)
[ -z "$foreign" ] || fail "the library exports names that are not its own: $foreign"

echo "-- CMake: find_package(optireduce)"
"$cmake" -S "$stranger" -B "$work/cmake" -G "$generator" -DCMAKE_MAKE_PROGRAM="$make_program" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix" \
  >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "the stranger does not configure"; }
"$cmake" --build "$work/cmake" >"$work/build.log" 2>&1 \
  || { cat "$work/build.log"; fail "the stranger does not build"; }
"$work/cmake/stranger"

echo "-- pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name optireduce.pc)")
export PKG_CONFIG_PATH
[ "$(pkg-config --variable=prefix optireduce)" = "$prefix" ] || fail "wrong prefix in optireduce.pc"
# shellcheck disable=SC2046,SC2086  # the flags are words
"$compiler" -std=c++20 $flags "$stranger/main.cc" -o "$work/by_pkgconfig" \
  $(pkg-config --cflags --libs optireduce)
"$work/by_pkgconfig"

# Each public header stands alone.
for header in "$prefix"/include/optireduce/*.h; do
  echo "#include <optireduce/$(basename "$header")>" >"$work/alone.cc"
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$work/alone.cc" \
    $(pkg-config --cflags optireduce) || fail "$(basename "$header") does not stand alone"
done
echo "package: ok"
