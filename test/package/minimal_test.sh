#!/bin/sh
# minimal_test.sh CMAKE SOURCE WORK COMPILER MAKE_PROGRAM
# The preset `minimal` configures and builds where only what the library itself needs is found.
set -eu
cmake=$1 source=$2 work=$3 compiler=$4 make_program=$5

rm -rf "$work"
mkdir -p "$work"
# Not optimized: whether it builds is the question. A package that is turned off and asked for with
# REQUIRED ends the configuration.
"$cmake" -S "$source" --preset minimal -B "$work" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_MAKE_PROGRAM="$make_program" -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
  -DCMAKE_DISABLE_FIND_PACKAGE_gflags=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON >"$work/configure.log" 2>&1 \
  || { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work" --parallel 2 >"$work/build.log" 2>&1 \
  || { tail -n 40 "$work/build.log"; exit 1; }
[ -e "$work/lib/liboptireduce.so" ] && [ -e "$work/lib/liboptireduce.a" ]
left=$(find "$work" -name '*gtest*' -o -name 'optireduce-bench*' -o -name 'optireduce-sim*')
[ -z "$left" ] || { echo "minimal: built more than the library: $left" >&2; exit 1; }
echo "minimal: ok"
