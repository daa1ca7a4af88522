# Makes root file systems from Debian packages. Sourced by other scripts, which define `say`.

# The package sources of the host's distribution, without additional ones.
distribution_sources() {
  local file
  for file in /etc/apt/sources.list.d/{debian,ubuntu}.sources /etc/apt/sources.list; do
    [ ! -s "$file" ] || printf '%s\n' "$file"
  done
}

# build_debian_system ARCHIVE PACKAGES [options of mmdebstrap...]: a minimal system with these packages, as a tar archive.
# Reuses an archive of the same day.
build_debian_system() {
  local archive=$1 packages=$2 release sources
  shift 2
  if [ -e "$archive" ] && [ -z "$(find "$archive" -mtime +0)" ]; then return 0; fi
  command -v mmdebstrap >/dev/null || {
    say 'installing mmdebstrap'
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null
  }
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mapfile -t sources < <(distribution_sources)
  say "building a minimal $release with $(tr , ' ' <<<"$packages" | wc -w) packages and what they need"
  # Excludes procps and other packages of priority `important`: berth has to install what it uses.
  mmdebstrap --quiet --variant=minbase --include="$packages" "$@" "$release" "$archive.partial.tar" "${sources[@]}"
  mv "$archive.partial.tar" "$archive"
}
