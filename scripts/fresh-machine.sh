#!/bin/bash
# Runs both commands of the README on a machine with only a minimal Debian and npm, once as root and once as an
# ordinary user with sudo. Verifies that ./berth installs every program, font and package that berth and its tests use.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage, as root on Debian or Ubuntu: scripts/fresh-machine.sh [--as root|user] [--keep] [tests...]

  --as root|user  only as this user; otherwise as both, one after the other
  --keep          keep the machine's folder, and say where it is
  tests           test files, folders, or parts of their paths, as for ./berth test; without them, all of it

It tests the last commit. The minimal system is built once a day for a release and kept in /var/tmp/berth-fresh-machine.
USAGE
}

checkout=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
work=/var/tmp/berth-fresh-machine
users=(root user)
. "$checkout/scripts/images/debian-system.sh"
keep=
# State of the machine while it runs.
root=

say() {
  printf 'fresh-machine: %s\n' "$*" >&2
}

fail() {
  say "$*"
  exit 1
}

# Settings of this host that a machine needs to reach the package mirrors. Only copied to the machine.
copy_network_settings() {
  local root=$1 file
  cp --dereference /etc/resolv.conf /etc/hosts "$root/etc/"
  for file in /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/auth.conf /etc/apt/auth.conf.d; do
    [ ! -e "$file" ] || cp -r --dereference "$file" "$root/etc/apt/"
  done
  # Certificates that this host trusts in addition to those of its packages, as named by NODE_EXTRA_CA_CERTS and others.
  mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates"
  cp --dereference /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  for file in /etc/npmrc /usr/etc/npmrc /usr/local/etc/npmrc; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$root$file"
    # Debian's npm reads this one.
    [ ! -e "$file" ] || install -D -m 644 "$file" "$root/etc/npmrc"
  done
  for file in /etc/pip.conf ~/.pip/pip.conf ~/.config/pip/pip.conf; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$root/etc/pip.conf"
  done
  [ ! -e ~/.npmrc ] || install -m 600 ~/.npmrc "$root/root/.npmrc"
}

# Runs inside the new namespaces. This process is their first one, and all others end with it.
enter_machine() {
  local root=$1 user=$2
  shift 2
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t proc proc "$root/proc"
  cd "$root"
  # Not chroot: processes in a chroot cannot create user namespaces.
  pivot_root . mnt
  cd /
  umount -l /mnt
  if [ "$user" = root ]; then
    HOME=/root USER=root run_commands "$@"
  else
    useradd --create-home --shell /bin/bash --groups sudo user
    echo 'user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/user
    [ ! -e /root/.npmrc ] || install -o user -m 600 /root/.npmrc /home/user/.npmrc
    chown -R user /opt/berth
    # sudo keeps the settings of proxies and certificates, as on a machine that is configured for them.
    echo 'Defaults env_keep += "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE"' >>/etc/sudoers.d/user
    export -f run_commands say fail
    HOME=/home/user USER=user runuser -u user -- bash -euo pipefail -c 'run_commands "$@"' bash "$@"
  fi
}

# The commands of the README.
run_commands() {
  cd /opt/berth
  local log=/tmp/serve.log output=/tmp/serve.out server
  say "./berth serve, as $(id -un)"
  : >"$output"
  ./berth serve --port 0 --json >"$output" 2>"$log" &
  server=$!
  until grep -q '"event":"ready"' "$output"; do
    kill -0 "$server" 2>/dev/null || { tail -n 30 "$log" >&2; fail './berth serve ended before it was ready'; }
    sleep 0.5
  done
  say 'it is ready; stopping it'
  kill -TERM "$server"
  wait "$server" || { tail -n 30 "$log" >&2; fail "./berth serve ended with exit code $?"; }
  say "./berth test $*"
  ./berth test "$@"
}

# Nothing is mounted in it here: its mounts ended with the namespaces.
remove_machine() {
  if [ -n "$keep" ]; then say "kept $root"; else rm -rf --one-file-system -- "$root"; fi
}

run_machine() {
  local user=$1
  shift
  root=$(mktemp -d "$work/machine-XXXXXX")
  trap remove_machine EXIT
  tar -x -C "$root" -f "$work/system.tar" --exclude='./dev/*'
  copy_network_settings "$root"
  # A repository of its own: in a worktree, .git only names a folder that does not exist on the machine.
  git -c advice.detachedHead=false clone --quiet --no-local --depth 1 "file://$checkout" "$root/opt/berth"
  local status=0
  unshare --mount --pid --ipc --fork --kill-child -- "$checkout/scripts/fresh-machine.sh" --inside "$root" "$user" "$@" || status=$?
  remove_machine
  trap - EXIT
  [ "$status" = 0 ] || fail "as $user: failed with exit code $status"
  say "as $user: passed"
}

if [ "${1-}" = --inside ]; then
  shift
  enter_machine "$@"
  exit
fi

while [ $# -gt 0 ]; do
  case $1 in
    --as)
      case ${2-} in root | user) users=("$2") ;; *) fail '--as takes root or user' ;; esac
      shift
      ;;
    --keep) keep=yes ;;
    -h | --help)
      usage
      exit
      ;;
    -*) fail "there is no option $1; --help tells which there are" ;;
    *) break ;;
  esac
  shift
done

[ "$(id -u)" = 0 ] || fail 'needs root, to build a system and to enter it'
[ -z "$(git -C "$checkout" status --porcelain)" ] || say 'not all is committed; what is tested is the last commit'
mkdir -p "$work"
build_debian_system "$work/system.tar" ca-certificates,npm,sudo
for user in "${users[@]}"; do run_machine "$user" "$@"; done
