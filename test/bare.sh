#!/bin/sh
# bare.sh 12|13: shows README's first line and its two commands in a bare tree of that Debian.
#
# Needs root, debootstrap and git. Builds what is committed (HEAD), never the working copy. The tree
# lies below TMPDIR and is removed at the end. Not part of the tests: a run takes many minutes.
#   MIRROR      Debian mirror, in place of Debian's usual one
#   TARGETS     what to make; default: "bench test"
#   MAKE_ARGS   more words for make, such as JOBS=2 BENCH_ARGS="-b 64K -e 64K"
#   KEEP=1      leaves the tree there and says where
set -eu

fail() {
  echo "bare: FAIL: $*" >&2
  exit 1
}

case "${1:-}" in
  12) suite=bookworm ;;
  13) suite=trixie ;;
  *) echo "usage: $0 12|13" >&2; exit 2 ;;
esac
release=$1
[ "$(id -u)" -eq 0 ] || fail "needs root, for a chroot"
command -v debootstrap >/dev/null || fail "needs debootstrap: apt-get install debootstrap"
source=$(cd "$(dirname "$0")/.." && pwd)
started=$(date +%s)
work=$(mktemp -d "${TMPDIR:-/tmp}/optireduce-bare.XXXXXX")
tree=$work/tree

mounts() {
  # In /proc/mounts a blank is \040; the folder's name has none. Deepest first.
  cut -d' ' -f2 /proc/mounts | grep "^$tree/" | sort -r || true
}

clean_up() {
  trap '' HUP INT TERM
  for mount in $(mounts); do
    umount "$mount" 2>/dev/null || umount -l "$mount" || true
  done
  # Whatever is still mounted is the host's: removing the tree would remove that.
  if [ -n "$(mounts)" ]; then
    echo "bare: still mounted, so nothing is removed: $(mounts)" >&2
  elif [ "${KEEP:-}" = 1 ]; then
    echo "bare: kept $tree"
  else
    rm -rf --one-file-system "$work"
  fi
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# In the tree, with none of this environment but the way to the network.
inside() {
  chroot "$tree" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    /bin/sh -euc "$1"
}

step() {
  echo "bare: Debian $release, $(($(date +%s) - started)) s: $*"
}

step "debootstrap $suite"
debootstrap --variant=minbase "$suite" "$tree" ${MIRROR:+"$MIRROR"} >"$work/debootstrap.log" 2>&1 \
  || { tail -n 20 "$work/debootstrap.log" >&2; fail "debootstrap $suite"; }
mount -t proc proc "$tree/proc"
mount -t sysfs -o ro sysfs "$tree/sys"
mount --bind /dev "$tree/dev"
mkdir -p "$tree/dev/shm"
mount -t tmpfs tmpfs "$tree/run"
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$tree/etc/resolv.conf"

step "README's first line"
line=$(sed -n 's/^On a bare Debian.*`\(apt-get update.*\)`.*/\1/p' "$source/README.md")
[ -n "$line" ] || fail "README.md has no line for a bare Debian"
inside "DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; $line" >"$work/apt.log" 2>&1 \
  || { tail -n 20 "$work/apt.log" >&2; fail "$line"; }

step "clone of $(git -C "$source" rev-parse --short HEAD)"
mkdir "$tree/src"
git clone -q --no-hardlinks "$source" "$tree/src/optireduce"
for target in ${TARGETS:-bench test}; do
  # README shows both; a target of the caller's own needs no such promise.
  [ -n "${TARGETS:-}" ] || grep -q "^make $target " "$source/README.md" \
    || fail "README.md does not show 'make $target'"
  step "make $target ${MAKE_ARGS:-}"
  inside "cd /src/optireduce && make $target ${MAKE_ARGS:-}" || fail "make $target"
done
step "$(inside '. /etc/os-release; echo "$PRETTY_NAME, $(g++ --version | head -n 1)"' || true)"
echo "bare: PASS: Debian $release in $(($(date +%s) - started)) s"
