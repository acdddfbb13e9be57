#!/bin/sh
# test.sh PRESET JOBS CTEST_ARGUMENT...: runs ctest in build/PRESET.
set -eu
preset=$1
jobs=$2
shift 2
cd "$(dirname "$0")/.."
# Debian's own CMake before any other, here as in the Makefile: a tree is made by one of them.
PATH=/usr/bin:/bin:$PATH

# Sanitizers want their fixed address ranges free; some kernels randomise mappings into them.
wrap=""
case "$preset" in
  asan | tsan)
    if setarch -R true 2>/dev/null; then wrap="setarch -R"; fi
    ;;
esac
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1 second_deadlock_stack=1}"

exec $wrap ctest --test-dir "build/$preset" --no-tests=error --output-on-failure \
  --parallel "$jobs" "$@"
