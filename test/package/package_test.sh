#!/bin/sh
# package_test.sh CMAKE BUILD STRANGER WORK COMPILER GENERATOR MAKE_PROGRAM [FLAGS]
# Installs BUILD below WORK as a packager does, moves it, then builds and runs the project of a
# stranger by CMake and by pkg-config, shared and static.
set -eu
cmake=$1 build=$2 stranger=$3 work=$4 compiler=$5 generator=$6 make_program=$7 flags=${8:-}

fail() {
  echo "package: $*" >&2
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
prefix=$work/moved
DESTDIR="$work/stage" "$cmake" --install "$build" --prefix /opt/optireduce >"$work/install.log" \
  || fail "install failed"
[ "$(find "$work/stage" -mindepth 1 -maxdepth 2 | sort | paste -sd' ')" = \
  "$work/stage/opt $work/stage/opt/optireduce" ] || fail "files outside of the prefix"
mv "$work/stage/opt/optireduce" "$prefix"

# Nothing but the libraries, the public headers and how to find them.
(cd "$prefix" && find . -type f -o -type l) | while read -r path; do
  case "$path" in
    ./include/optireduce/*.h) ;;
    ./lib*/liboptireduce.so* | ./lib*/liboptireduce.a) ;;
    ./lib*/pkgconfig/optireduce.pc) ;;
    ./lib*/cmake/optireduce/*.cmake) ;;
    *) fail "unexpected file in the installation: $path" ;;
  esac
done
for place in /opt/optireduce "$work/stage" "$build"; do
  if grep -rIl --include='*.cmake' --include='*.pc' -F "$place" "$prefix"; then
    fail "the files above hold the path $place"
  fi
done

library=$(find "$prefix" -name liboptireduce.so)
[ -n "$library" ] || fail "no liboptireduce.so in the installation"
foreign=$(nm -DC --defined-only "$library" | cut -d' ' -f3- | grep -v 'optireduce::' || true)
[ -z "$foreign" ] || fail "the library exports names that are not its own: $foreign"

# configure NAME ARGUMENT...: the stranger's project.
configure() {
  name=$1
  shift
  "$cmake" -S "$stranger" -B "$work/$name" -G "$generator" -DCMAKE_MAKE_PROGRAM="$make_program" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix" \
    "$@" >"$work/$name.log" 2>&1
}

needs_library() {
  readelf -d "$1" | grep -q 'NEEDED.*liboptireduce'
}

for kind in shared static; do
  echo "-- CMake: find_package(optireduce), $kind"
  is_static=OFF
  [ "$kind" = shared ] || is_static=ON
  configure "$kind" -DSTRANGER_STATIC=$is_static \
    || { cat "$work/$kind.log"; fail "the stranger does not configure"; }
  "$cmake" --build "$work/$kind" >"$work/build.log" 2>&1 \
    || { cat "$work/build.log"; fail "the stranger does not build"; }
  "$work/$kind/stranger"
done
needs_library "$work/shared/stranger" || fail "the shared stranger has no need of the library"
! needs_library "$work/static/stranger" || fail "the static stranger needs the shared library"

! configure too_new -DSTRANGER_WANTS=0.2 || fail "version 0.2 was found"
grep -q 'version: 0.1' "$work/too_new.log" || { cat "$work/too_new.log"; fail "why not 0.2?"; }

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name optireduce.pc)")
export PKG_CONFIG_PATH
[ "$(realpath "$(pkg-config --variable=prefix optireduce)")" = "$(realpath "$prefix")" ] \
  || fail "wrong prefix in optireduce.pc"
# shellcheck disable=SC2046,SC2086  # the flags are words
{
  echo "-- pkg-config, shared"
  "$compiler" -std=c++20 $flags "$stranger/main.cc" -o "$work/by_pkgconfig" \
    $(pkg-config --cflags --libs optireduce)
  "$work/by_pkgconfig"
  echo "-- pkg-config, static"
  # Ours static, what it needs shared: Debian has no static libisal.
  "$compiler" -std=c++20 $flags "$stranger/main.cc" -o "$work/by_pkgconfig_static" \
    $(pkg-config --static --cflags --libs optireduce | sed 's/-loptireduce/-l:liboptireduce.a/')
  "$work/by_pkgconfig_static"
}

! needs_library "$work/by_pkgconfig_static" || fail "the static program needs the shared library"

# Each public header stands alone.
for header in "$prefix"/include/optireduce/*.h; do
  echo "#include <optireduce/$(basename "$header")>" >"$work/alone.cc"
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$work/alone.cc" \
    $(pkg-config --cflags optireduce) || fail "$(basename "$header") does not stand alone"
done
echo "package: ok"
