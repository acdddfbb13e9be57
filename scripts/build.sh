#!/bin/sh
# build.sh PRESET [JOBS]: configures and builds into build/PRESET.
set -eu
preset=$1
jobs=${2:-$(nproc)}
cd "$(dirname "$0")/.."
# Debian's own CMake before any other, here as in the Makefile: a tree is made by one of them.
PATH=/usr/bin:/bin:$PATH

# A tree made by another CMake keeps that one's paths: make it anew rather than mix the two.
fresh=""
cache=build/$preset/CMakeCache.txt
if [ -f "$cache" ]; then
  made_by=$(sed -n 's/^CMAKE_CACHE_M[AJIN]*OR_VERSION:INTERNAL=//p' "$cache" | paste -sd.)
  case "$(cmake --version | head -n 1)" in
    "cmake version $made_by."*) ;;
    *) fresh="--fresh" ;;
  esac
fi

# Ninja configures anew by itself when a CMakeLists.txt has changed, but does not know the presets.
log=build/$preset.configure.log
mkdir -p build
if [ -n "$fresh" ] || [ ! -f "build/$preset/build.ninja" ] \
  || [ ! "$log" -nt CMakePresets.json ]; then
  if ! cmake --preset "$preset" $fresh >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 1
  fi
fi
cmake --build "build/$preset" --parallel "$jobs"
