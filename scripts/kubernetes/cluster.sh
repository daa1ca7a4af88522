#!/bin/bash
# Runs a command in a Kubernetes cluster of one node that exists as long as the command runs.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage, as root on Debian: scripts/kubernetes/cluster.sh [--traefik] [--image ARCHIVE]... COMMAND...

The command runs in the namespaces of the node, where it reaches the pods: its network is the cluster's alone. It sees the
files of this host, KUBECONFIG is set, and kubectl and helm are in PATH. Pods reach what listens at 10.200.0.1. The cluster
leaves nothing on this host.

The programs of the node are in BERTH_KUBERNETES_CACHE (default: ~/.cache/kube-1.37.2). If they are missing they are built
from Go modules first, for about 15 minutes. With --traefik, Traefik is one of them: tests of the chart's Ingress need it.
USAGE
}

here=$(dirname -- "$(readlink -f -- "$0")")
cache=${BERTH_KUBERNETES_CACHE:-$HOME/.cache/kube-1.37.2}
packages=(containernetworking-plugins iptables ipset iproute2 openssl)
images=()
extras=()
groups=()
node=
work=

say() {
  printf 'cluster: %s\n' "$*" >&2
}

fail() {
  say "$*"
  exit 69
}

install_packages() {
  local name missing=()
  for name in "${packages[@]}"; do dpkg -s "$name" >/dev/null 2>&1 || missing+=("$name"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends "${missing[@]}" >&2
}

# A control group for the cluster in each hierarchy, below the one of this process: the node uses it as its root.
make_groups() {
  local controllers path group
  while IFS=: read -r _ controllers path; do
    controllers=${controllers#name=}
    [ -n "$controllers" ] && [ -d "/sys/fs/cgroup/$controllers" ] || continue
    group=/sys/fs/cgroup/$controllers${path%/}/$(basename "$work")
    mkdir -p "$group"
    groups+=("$group")
    if [ "$controllers" = cpuset ]; then
      # A new cpuset has neither processors nor memory, and no process can enter it like that.
      cat "$(dirname "$group")/cpuset.cpus" >"$group/cpuset.cpus"
      cat "$(dirname "$group")/cpuset.mems" >"$group/cpuset.mems"
    fi
  done </proc/self/cgroup
  [ ${#groups[@]} -gt 0 ] || fail 'needs control groups of version 1; with version 2 alone, set KUBECONFIG to a cluster of yours'
}

start_node() {
  local group
  for group in "${groups[@]}"; do echo "$BASHPID" >"$group/cgroup.procs"; done
  exec unshare --mount --cgroup --net --pid --ipc --uts --fork --kill-child --mount-proc \
    "$here/node.sh" "$cache" "$work" "$cache/pause.tar" "${images[@]}" >"$work/node.log" 2>&1 </dev/null
}

wait_for_node() {
  local started=$SECONDS
  until [ -e "$work/ready" ]; do
    kill -0 "$node" 2>/dev/null || fail_with_log 'the node ended'
    [ $((SECONDS - started)) -lt 300 ] || fail_with_log 'the node is not ready after 5 minutes'
    sleep 0.2
  done
  say "ready after $((SECONDS - started)) s"
}

fail_with_log() {
  tail -n 30 "$work/node.log" >&2
  fail "$1"
}

# Ends every process of the cluster with its first one, then removes its files and groups.
take_down() {
  local group attempt
  if [ -n "$node" ]; then
    kill -KILL "$(first_process)" "$node" 2>/dev/null || true
    wait "$node" 2>/dev/null || true
  fi
  for attempt in {1..50}; do
    for group in "${groups[@]}"; do
      [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    [ -n "$(ls -d "${groups[@]}" 2>/dev/null)" ] || break
    sleep 0.1
  done
  rm -rf --one-file-system -- "$work"
}

first_process() {
  tr -d ' ' <"/proc/$node/task/$node/children" 2>/dev/null
}

while [ $# -gt 0 ]; do
  case $1 in
    --image)
      images+=("$(readlink -f -- "${2:?--image takes an archive}")")
      shift 2
      ;;
    --traefik)
      extras=(traefik)
      shift
      ;;
    -h | --help)
      usage
      exit
      ;;
    -*) fail "there is no option $1; --help tells which there are" ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || fail 'which command shall run in it?'
[ "$(id -u)" = 0 ] || fail 'needs root, for the namespaces of a node'
install_packages
"$here/build-programs.sh" "$cache" "${extras[@]}"
work=$(mktemp -d /var/tmp/berth-cluster-XXXXXX)
trap take_down EXIT
make_groups
start_node &
node=$!
wait_for_node
status=0
nsenter --target "$(first_process)" --mount --net --pid --cgroup --ipc --uts --wd="$PWD" \
  env KUBECONFIG="$work/admin.conf" PATH="$cache:$PATH" BERTH_KUBERNETES_CACHE="$cache" \
  BERTH_TEST_KUBERNETES_HOST=10.200.0.1 "$@" || status=$?
if [ -e "$work/ended" ]; then
  cat "$work/ended" >&2
  fail 'the node ended while the command ran'
fi
exit "$status"
