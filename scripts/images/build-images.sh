#!/bin/bash
# Builds the images of berth from Debian packages and this checkout, without Docker.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage, as root on Debian: scripts/images/build-images.sh [--out FOLDER] [--tag TAG] [server|machine|standalone...]

  --out FOLDER  where the archives go; default: dist/images
  --tag TAG     default: dev. The images are localhost/berth-server:TAG, localhost/berth-machine:TAG and
                localhost/berth-standalone:TAG

Without a name it builds server and machine, which are for Kubernetes. standalone is all of berth for one host.

It writes an archive for `ctr images import` or `docker load`, and an SBOM (CycloneDX), for each image. The Debian systems
are built once a day and kept in /var/tmp/berth-images.
USAGE
}

checkout=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
. "$checkout/scripts/images/debian-system.sh"
cache=/var/tmp/berth-images
out=$checkout/dist/images
tag=dev
targets=()
root=

say() {
  printf 'build-images: %s\n' "$*" >&2
}

fail() {
  say "$*"
  exit 1
}

# Leaves out manuals and translations. Licenses stay.
debian_options=(
  --dpkgopt='path-exclude=/usr/share/man/*'
  --dpkgopt='path-exclude=/usr/share/locale/*'
  --dpkgopt='path-exclude=/usr/share/doc/*'
  --dpkgopt='path-include=/usr/share/doc/*/copyright'
)


build() {
  local target=$1 image=localhost/berth-$1:$tag archive=$out/berth-$1.tar packages system started=$SECONDS
  packages=$(node "$checkout/scripts/images/list-packages.ts" "$target" | paste -sd,)
  # Another list results in another image.
  system=$cache/$target-$(sha256sum <<<"$packages" | head -c 8).tar
  build_debian_system "$system" "$packages" "${debian_options[@]}"
  root=$(mktemp -d "$cache/root-XXXXXX")
  tar -x -C "$root" -f "$system" --exclude='./dev/*'
  say "$target: adding berth"
  "$checkout/scripts/images/add-users.sh" "$root"
  "$checkout/scripts/images/fill-image.sh" "$target" "$root"
  (cd "$checkout" && node scripts/images/write-sbom.ts "$root" "berth-$target" "$out/berth-$target.cdx.json") >&2
  say "$target: packing $(du -sh "$root" | cut -f1)"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
  # The same content results in the same image.
  tar -C "$root" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner -cf "$archive.layer" .
  node "$checkout/scripts/images/pack-image.ts" "$archive.layer" "$archive" "$image" "$(node "$checkout/scripts/images/image-config.ts" "$target")"
  rm -rf "$archive.layer" "$root"
  root=
  say "$target: $image is in $archive ($(du -h "$archive" | cut -f1)), after $((SECONDS - started)) s"
}

remove_root() {
  [ -z "$root" ] || rm -rf --one-file-system -- "$root"
}

while [ $# -gt 0 ]; do
  case $1 in
    --out)
      out=${2:?--out takes a folder}
      shift
      ;;
    --tag)
      tag=${2:?--tag takes a tag}
      shift
      ;;
    server | machine | standalone) targets+=("$1") ;;
    -h | --help)
      usage
      exit
      ;;
    *) fail "there is no option $1; --help tells which there are" ;;
  esac
  shift
done

[ "$(id -u)" = 0 ] || fail 'needs root, to unpack a system'
# The lock file and the day determine the content; the commit determines its date.
SOURCE_DATE_EPOCH=$(git -C "$checkout" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
trap remove_root EXIT
mkdir -p "$cache" "$out"
[ ${#targets[@]} -gt 0 ] || targets=(server machine)
for target in "${targets[@]}"; do build "$target"; done
