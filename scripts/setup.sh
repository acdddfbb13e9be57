#!/bin/sh
# setup.sh [PACKAGE...]: installs what the build, the tests and the benchmark need, and the packages
# named, where this machine lacks them (Debian 12, 13 and their kin). Says what it installs; does
# nothing, and says nothing, when nothing is missing.
set -eu

packages="build-essential git ca-certificates cmake ninja-build pkg-config
  python3 python3-dev python3-venv libgtest-dev libgmock-dev libbenchmark-dev libboost-dev
  libeigen3-dev libgflags-dev libsodium-dev nettle-dev libisal-dev iproute2 nftables procps $*"

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "setup: no dpkg on this system; these Debian packages (or their like) are needed:" >&2
  echo "setup:" $packages >&2
  exit 0  # the configure step names whatever is missing
fi

missing=""
for package in $packages; do
  state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  case "$state" in
    ii*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "setup: missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "setup:   apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi

echo "setup: installing$missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
  install -y --no-install-recommends $missing
