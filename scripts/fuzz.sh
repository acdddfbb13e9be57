#!/bin/sh
# fuzz.sh SECONDS JOBS [TARGET...]: builds the libFuzzer programs, runs each named target (all, when
# none is named) for so many seconds, JOBS at once, and prints what was run. Fails on a finding,
# keeps its input and prints the command that replays it.
# fuzz.sh keep [TARGET...]: adds to the committed inputs those found ones that reach more code.
set -eu
cd "$(dirname "$0")/.."
committed=test/fuzz/corpus
out=build/fuzz/fuzz
bin=build/fuzz/bin

keep=no seconds=0 jobs=1
if [ "${1:-}" = keep ]; then
  keep=yes
  shift
else
  seconds=$1
  jobs=$2
  shift 2
fi
targets=${*:-$(ls "$committed")}

export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
# Sanitizers want their fixed address ranges free; some kernels randomise mappings into them.
wrap=""
if setarch -R true 2>/dev/null; then wrap="setarch -R"; fi

if [ "$keep" = yes ]; then
  for target in $targets; do
    $wrap "$bin/fuzz_$target" -set_cover_merge=1 -use_counters=0 "$committed/$target" \
      "$out/$target/inputs" >"$out/$target/merge.log" 2>&1
    echo "fuzz: $target: $(ls "$committed/$target" | wc -l) inputs"
  done
  exit 0
fi

command -v clang++-19 >/dev/null || {
  echo "fuzz: needs clang-19 and libclang-rt-19-dev" >&2
  exit 1
}
# The programs must be built by this tree's sources; the other tests are not.
cmake --preset fuzz >build/fuzz.configure.log 2>&1 || { cat build/fuzz.configure.log >&2; exit 1; }
cmake --build build/fuzz --target fuzz_programs --parallel "$jobs"

run() {  # target
  folder=$out/$1
  mkdir -p "$folder/inputs"
  rm -f "$folder"/finding-*
  rc=0
  # New inputs go to the first folder. An input longer than a packet, or slower than 10 s, says
  # nothing about our parsers that a shorter one does not.
  $wrap "$bin/fuzz_$1" -max_total_time="$seconds" -max_len=1600 -len_control=20 -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$folder/finding-" \
    "$folder/inputs" "$committed/$1" >"$folder/log" 2>&1 || rc=$?
  echo "$rc" >"$folder/rc"
}

running=0
for target in $targets; do
  run "$target" &
  running=$((running + 1))
  if [ "$running" -ge "$jobs" ]; then
    wait
    running=0
  fi
done
wait

failed=no
echo "| target | seconds | executions | inputs found | inputs committed |"
echo "|---|---:|---:|---:|---:|"
for target in $targets; do
  folder=$out/$target
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log")
  echo "| $target | $seconds | ${executions:-?} | $(ls "$folder/inputs" | wc -l)" \
    "| $(ls "$committed/$target" | wc -l) |"
done
for target in $targets; do
  folder=$out/$target
  [ "$(cat "$folder/rc")" = 0 ] && continue
  failed=yes
  echo "fuzz: $target: a finding (the whole log: $folder/log)" >&2
  grep -E '^(SUMMARY|==[0-9]+==ERROR)|runtime error|check failed' "$folder/log" >&2 || true
  for input in "$folder"/finding-*; do
    [ -e "$input" ] && echo "fuzz: replay it with: $bin/fuzz_$target $input" >&2
  done
done
[ "$failed" = no ]
