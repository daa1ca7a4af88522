#!/bin/bash
# Builds the programs of a Kubernetes node from Go modules: build-programs.sh FOLDER [traefik]. Existing programs are kept.
# Needs Go 1.26 and gcc. On two processors it takes about 15 minutes, on eight about 4. With `traefik`, which only tests of
# the chart's Ingress need, it takes a third longer.
set -euo pipefail

kubernetes=v1.37.2
containerd=v2.4.2
runc=v1.5.3
helm=v3.22.0
kwok=v0.8.0
etcd=v3.6.16
router=v2.1.0
# An ingress controller and gateway in one Go program, without nginx, Envoy or HAProxy. 3.7 requires a module that is not
# published.
traefik=v3.6.12
# The version that this Traefik implements.
gateway=v1.4.0
programs=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl)

mkdir -p "$1"
folder=$(readlink -f -- "$1")
export GOTOOLCHAIN=local GOFLAGS='-mod=mod -buildvcs=false'

say() {
  printf 'build-programs: %s\n' "$*" >&2
}

# build MODULE-FOLDER PACKAGE OUT LDFLAGS [flags...]
build() {
  local module=$1 package=$2 out=$folder/$3 flags=$4 started=$SECONDS
  shift 4
  [ ! -x "$out" ] || return 0
  (cd "$module" && go build -trimpath "$@" -ldflags "-s -w $flags" -o "$out.partial" "$package")
  mv "$out.partial" "$out"
  say "$(basename "$out") after $((SECONDS - started)) s"
}

# A module that requires only the one to build, so that dependencies have the versions of its own go.mod.
module_for() {
  local path=$1 version=$2 module
  module=$folder/module-$(tr / - <<<"$path")-$version
  mkdir -p "$module"
  [ -s "$module/go.mod" ] || printf 'module programs\n\ngo 1.26\n\nrequire %s %s\n' "$path" "$version" >"$module/go.mod"
  printf '%s\n' "$module"
}

# Where the go command keeps a module: module_folder PATH VERSION.
module_folder() {
  go mod download -json "$1@$2" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p'
}

# Kubernetes' go.mod replaces the modules of its own repository with folders. Their releases are v0 with the same
# numbers.
kubernetes_module() {
  local module go_mod
  module=$(module_for k8s.io/kubernetes "$kubernetes")
  if ! grep -q '^replace' "$module/go.mod"; then
    go_mod=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
    {
      printf 'module programs\n\n'
      grep '^go ' "$go_mod"
      printf 'godebug default=go1.26\nrequire k8s.io/kubernetes %s\n' "$kubernetes"
      sed -nE "s#^\s*(replace )?(k8s.io/[a-z0-9-]+) => ./staging/.*#replace \2 => \2 v0.${kubernetes#v1.}#p" "$go_mod"
    } >"$module/go.mod"
    # All programs in one build: a changed go.mod in between would recompile everything.
    {
      printf '//go:build tools\n\npackage programs\n\nimport (\n'
      printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' "${programs[@]}"
      printf ')\n'
    } >"$module/programs.go"
  fi
  printf '%s\n' "$module"
}

# The process that holds the namespaces of a pod.
write_pause() {
  local module=$folder/module-pause
  [ ! -e "$folder/pause.tar" ] || return 0
  mkdir -p "$module" "$folder/pause"
  printf 'module pause\n\ngo 1.26\n' >"$module/go.mod"
  cat >"$module/main.go" <<'GO'
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
GO
  CGO_ENABLED=0 build "$module" . pause/pause ''
  tar -C "$folder/pause" -cf "$folder/pause.layer" pause
  node "$(dirname -- "$(readlink -f -- "$0")")/../images/pack-image.ts" "$folder/pause.layer" "$folder/pause.tar" \
    localhost/pause:1 '{"Entrypoint":["/pause"]}'
  rm "$folder/pause.layer"
}

begin=$SECONDS
missing() {
  local program
  for program in "$@"; do [ -x "$folder/$program" ] || return 0; done
  return 1
}

if missing "${programs[@]}"; then
  say "building Kubernetes $kubernetes into $folder: 15 minutes on two processors"
  module=$(kubernetes_module)
  version="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes"
  version="$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
  for program in "${programs[@]}"; do CGO_ENABLED=0 build "$module" "k8s.io/kubernetes/cmd/$program" "$program" "$version"; done
fi
if missing containerd containerd-shim-runc-v2 ctr; then
  module=$(module_for github.com/containerd/containerd/v2 "$containerd")
  for program in containerd containerd-shim-runc-v2 ctr; do
    CGO_ENABLED=0 build "$module" "github.com/containerd/containerd/v2/cmd/$program" "$program" '' \
      -tags 'no_btrfs no_devmapper no_zfs'
  done
fi
if missing runc; then
  # Without seccomp support it starts no pod, because the kubelet sets a filter for each.
  dpkg -s libseccomp-dev pkg-config >/dev/null 2>&1 || {
    say 'installing libseccomp-dev and pkg-config'
    DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends libseccomp-dev pkg-config >&2
  }
  module=$(module_for github.com/opencontainers/runc "$runc")
  CGO_ENABLED=1 build "$module" github.com/opencontainers/runc runc '' -tags seccomp
fi
if missing etcd; then
  # Debian's etcd does not report the progress of watches, so clients that stream lists would repeat them.
  CGO_ENABLED=0 build "$(module_for go.etcd.io/etcd/server/v3 "$etcd")" go.etcd.io/etcd/server/v3 etcd ''
fi
if missing helm; then
  CGO_ENABLED=0 build "$(module_for helm.sh/helm/v3 "$helm")" helm.sh/helm/v3/cmd/helm helm ''
fi
if missing kwok; then
  CGO_ENABLED=0 build "$(module_for sigs.k8s.io/kwok "$kwok")" sigs.k8s.io/kwok/cmd/kwok kwok ''
fi
if missing kube-router; then
  module=$(module_for github.com/cloudnativelabs/kube-router/v2 "$router")
  CGO_ENABLED=0 build "$module" github.com/cloudnativelabs/kube-router/v2/cmd/kube-router kube-router ''
fi
if [ "${2:-}" = traefik ] && missing traefik; then
  # Before the program, so that they exist if it does.
  mkdir -p "$folder/gateway-api"
  install -m 644 "$(module_folder sigs.k8s.io/gateway-api "$gateway")"/config/crd/standard/*.yaml "$folder/gateway-api"
  # In its own folder, because its go.mod replaces modules.
  module=$(module_folder github.com/traefik/traefik/v3 "$traefik")
  CGO_ENABLED=0 build "$module" ./cmd/traefik traefik '' -mod=readonly
fi
write_pause
[ $((SECONDS - begin)) -lt 5 ] || say "all of it took $((SECONDS - begin)) s"
