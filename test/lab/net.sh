#!/bin/sh
# net.sh: a small network of network namespaces on this machine, for measurements. Needs root,
# iproute2, nftables and ethtool.
#
#   net.sh up RANKS [CONDITION]   makes it, after taking down what an earlier `up` made
#   net.sh exec RANK COMMAND...   runs COMMAND at RANK (0, 1, ...): a namespace and host name of its
#                                 own, eth0 with address 10.88.0.(RANK + 1)
#   net.sh agent HOST COMMAND...  the same by address, in the place of ssh, for mpirun
#   net.sh down                   ends what runs there, and removes all that `up` made
#
# CONDITION
#   clean   segmentation and receive offload on, as with a real network card: packets travel by 64
#           KiB (the default)
#   mtu     offloads off: every packet of 1500 bytes by itself
#   lossP   mtu, and P % of all TCP and UDP packets dropped at random, such as loss1 or loss0.1
#   gigabit clean, and ports of 1 Gbit/s with queues of 512 KB
#
# TCP is CUBIC, the default of most systems (LAB_TCP=bbr for another that this kernel has). All
# that is made lies in namespaces named orlab-...; nothing else of the machine is changed, and a
# namespace that this script did not make is never touched. LAB_NAME=other makes a second network
# beside the first.
set -eu

prefix=${LAB_NAME:-orlab}
state=/run/optireduce-lab.$prefix  # a line for every namespace made: its name and its inode
subnet=10.88.0
switch=$prefix-switch
tcp=${LAB_TCP:-cubic}

fail() {
  echo "net.sh: $*" >&2
  exit 1
}

# The inode tells our namespace from one that somebody else gave the same name.
inode_of() {
  stat -L -c %i "/run/netns/$1" 2>/dev/null || true
}

is_ours() {
  grep -qx "$1 $(inode_of "$1")" "$state/made" 2>/dev/null
}

make_namespace() {
  [ -z "$(inode_of "$1")" ] || fail "namespace $1 is there and not mine: \`ip netns del $1\`?"
  ip netns add "$1"
  echo "$1 $(inode_of "$1")" >>"$state/made"
  ip -n "$1" link set lo up
  ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null || true
}

mac_of() {
  printf '02:00:0a:58:00:%02x' "$1"
}

make_switch() {
  make_namespace "$switch"
  ip -n "$switch" link add bridge type bridge stp_state 0 mcast_snooping 0
  ip -n "$switch" link set bridge up
}

make_host() {  # rank, on|off
  name=$prefix-$1
  address=$subnet.$(($1 + 1))
  make_namespace "$name"
  ip -n "$name" link add eth0 mtu 1500 address "$(mac_of "$1")" type veth \
    peer name "port$1" netns "$switch"
  ip -n "$switch" link set "port$1" mtu 1500 master bridge up
  ip -n "$name" address add "$address/24" dev eth0
  ip -n "$name" link set eth0 up
  # By route: a namespace may not choose every one of the kernel's by sysctl.
  ip -n "$name" route replace "$subnet.0/24" dev eth0 proto kernel scope link src "$address" \
    congctl "$tcp" || fail "this kernel has no TCP congestion control $tcp (LAB_TCP)"
  ip netns exec "$name" ethtool -K eth0 tso "$2" gso "$2" gro "$2" tx-udp-segmentation "$2" \
    >/dev/null || fail "ethtool cannot turn the offloads $2"
}

# Fixed neighbours and ports: no loss or flood of address resolution in a measurement.
introduce_hosts() {  # ranks
  a=0
  while [ "$a" -lt "$1" ]; do
    bridge -n "$switch" fdb replace "$(mac_of "$a")" dev "port$a" master static
    b=0
    while [ "$b" -lt "$1" ]; do
      [ "$a" -eq "$b" ] || ip -n "$prefix-$a" neigh replace "$subnet.$((b + 1))" \
        lladdr "$(mac_of "$b")" dev eth0 nud permanent
      b=$((b + 1))
    done
    a=$((a + 1))
  done
}

drop() {  # per cent
  below=$(awk -v percent="$1" 'BEGIN { printf "%d", percent * 10000 + 0.5 }')
  ip netns exec "$switch" nft -f - <<END
table bridge lab {
  chain forward {
    type filter hook forward priority 0;
    ether type ip ip protocol { tcp, udp } numgen random mod 1000000 < $below counter drop
  }
}
END
}

# The host's own queue is deep and pushes back on it; the port's is shallow and drops. Both buckets
# hold a whole 64 KiB packet, which would be cut otherwise.
limit_rate() {  # ranks
  rank=0
  while [ "$rank" -lt "$1" ]; do
    tc -n "$prefix-$rank" qdisc replace dev eth0 root tbf rate 1gbit burst 72kb limit 4mb
    tc -n "$switch" qdisc replace dev "port$rank" root tbf rate 1gbit burst 72kb limit 512kb
    rank=$((rank + 1))
  done
}

up() {  # ranks, condition
  ranks=$1 condition=$2 loss=''
  case $ranks in
    *[!0-9]* | '') fail "RANKS is a number" ;;
  esac
  [ "$ranks" -ge 1 ] && [ "$ranks" -le 64 ] || fail "RANKS is 1 to 64"
  case $condition in
    clean | mtu | gigabit) ;;
    loss[0-9]*)
      loss=${condition#loss}
      case $loss in
        *[!0-9.]* | *.*.*) fail "lossP: P is a number of per cent" ;;
      esac
      awk -v percent="$loss" 'BEGIN { exit !(percent > 0 && percent < 100) }' \
        || fail "lossP: P is more than 0 and less than 100"
      ;;
    *) fail "condition '$condition' is none of clean, mtu, lossP, gigabit" ;;
  esac
  offload=off
  case $condition in
    clean | gigabit) offload=on ;;
  esac
  down
  mkdir -p "$state"
  make_switch
  rank=0
  while [ "$rank" -lt "$ranks" ]; do
    make_host "$rank" "$offload"
    rank=$((rank + 1))
  done
  introduce_hosts "$ranks"
  [ -z "$loss" ] || drop "$loss"
  [ "$condition" != gigabit ] || limit_rate "$ranks"
}

processes() {
  while read -r name _; do
    if is_ours "$name"; then ip netns pids "$name"; fi
  done <"$state/made"
}

down() {
  [ -e "$state/made" ] || return 0
  for signal in TERM KILL; do
    pids=$(processes)
    [ -n "$pids" ] || break
    # shellcheck disable=SC2086 # one word for each process
    kill -s "$signal" $pids 2>/dev/null || true
    sleep 0.3
  done
  while read -r name _; do
    if is_ours "$name"; then ip netns del "$name"; fi
  done <"$state/made"
  rm -f "$state/made"
  rmdir "$state" 2>/dev/null || true
}

at() {  # rank, command...
  name=$prefix-$1
  shift
  is_ours "$name" || fail "no rank ${name#"$prefix"-}: net.sh up RANKS comes first"
  # shellcheck disable=SC2016 # for the inner shell
  exec ip netns exec "$name" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$name" "$@"
}

usage() {
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
}

command=${1:-help}
case $command in
  up | exec | agent | down)
    [ "$(id -u)" -eq 0 ] || fail "needs root, for network namespaces"
    for tool in ip bridge tc nft ethtool; do
      command -v "$tool" >/dev/null \
        || fail "needs $tool: apt-get install iproute2 nftables ethtool"
    done
    shift
    ;;
esac
case $command in
  up) up "${1:-}" "${2:-clean}" ;;
  down) down ;;
  exec)
    [ "$#" -ge 2 ] || fail "exec RANK COMMAND..."
    at "$@"
    ;;
  agent)
    host=$1
    shift
    at "$((${host##*.} - 1))" sh -c "$*"
    ;;
  help | --help | -h) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
