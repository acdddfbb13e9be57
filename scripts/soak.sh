#!/bin/sh
# soak.sh PROGRAM SEEDS JOBS [FIRST]: runs seeds FIRST ... of the swarm, and one large job for every
# twenty, on JOBS processes. One line for every part done; at the end a summary and what failed.
set -eu
program=$1
seeds=$2
jobs=$3
first=${4:-1}
part=200
large=1000000000
case "$seeds$jobs$first" in *[!0-9]*)
  echo "soak: SEEDS, JOBS and FIRST are whole numbers" >&2
  exit 2
  ;;
esac

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
echo "soak: seeds $first to $((first + seeds - 1)), and $(((seeds + 19) / 20)) large ones," \
  "on $jobs processes"

# A part that aborts or does not end is told from one in which a checker objects by its status.
run_part='
program=$1 out=$2 range=$3
status=0
timeout 3600 "$program" --swarm "$range" >"$out/$range" 2>&1 || status=$?
case $status in
  0) echo "$(date +%T) seeds $range: fine" ;;
  1) echo "$(date +%T) seeds $range: FINDINGS" ;;
  124) echo "$(date +%T) seeds $range: DID NOT END within an hour" ;;
  *) echo "$(date +%T) seeds $range: DIED with status $status" ;;
esac
[ $status -eq 0 ] && rm "$out/$range" || true
'
i=0
while [ "$i" -lt "$seeds" ]; do
  n=$((seeds - i < part ? seeds - i : part))
  a=$((first + i))
  echo "$a:$((a + n - 1))"
  a=$((large + (first + i) / 20))
  echo "$a:$((a + (n + 19) / 20 - 1))"
  i=$((i + n))
done | xargs -P "$jobs" -I RANGE sh -c "$run_part" part "$program" "$out" RANGE

if [ -z "$(ls "$out")" ]; then
  echo "soak: $seeds seeds and $(((seeds + 19) / 20)) large ones without a finding"
  exit 0
fi
for file in "$out"/*; do
  echo "== seeds $(basename "$file")"
  cat "$file"
done
echo "soak: findings. Put the seeds into test/simulation/seeds.txt, a reduced form of what they" \
  "show into test/simulation/directed."
exit 1
