#!/bin/bash
# The first process of the namespaces of a node: node.sh PROGRAMS WORK IMAGE-ARCHIVES... Started by cluster.sh. Everything
# of the cluster ends with it.
set -euo pipefail

programs=$1
work=$2
shift 2
images=("$@")
names=()
address=10.200.0.1
logs=$work/log
mkdir -p "$work"/{log,containerd,kubelet,etcd,keys,cni,var-log,var-lib-cni,proc}
export PATH="$programs:/usr/sbin:/usr/bin:/sbin:/bin" KUBECONFIG=$work/admin.conf

say() {
  printf 'node: %s\n' "$*"
}

# Runs a program in the background with a log of its name: start NAME COMMAND...
start() {
  local name=$1
  shift
  "$@" >"$logs/$name.log" 2>&1 &
  names[$!]=$name
}

wait_until() {
  local what=$1 attempt
  shift
  for attempt in {1..1200}; do
    if "$@" >/dev/null 2>&1; then
      say "$what"
      return 0
    fi
    sleep 0.1
  done
  say "not after two minutes: $what"
  exit 1
}

prepare_network() {
  hostname node1
  ip link set lo up
  # An address that is not loopback, in a network that no packet leaves.
  ip link add node0 type bridge
  ip addr add "$address/24" dev node0
  ip link set node0 up
  # kube-proxy gives packets to Services another destination, once they have a route at all.
  ip route add 10.96.0.0/24 dev node0
}

prepare_files() {
  local hierarchy setting file
  mount --make-rshared /
  # The hierarchies again, as seen from this control group.
  for hierarchy in cpu cpuacct cpuset memory devices freezer blkio pids; do
    umount -l "/sys/fs/cgroup/$hierarchy" 2>/dev/null || true
    mount -t cgroup -o "$hierarchy" cgroup "/sys/fs/cgroup/$hierarchy"
  done
  umount -l /sys/fs/cgroup/systemd /sys/fs/cgroup/unified 2>/dev/null || true
  if [ -d /sys/fs/cgroup/systemd ]; then mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd; fi
  # The kubelet and kube-proxy write settings of the whole host, so they get files of their own.
  for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_max{keys,bytes}; do
    file=$work/sysctl-${setting//\//-}
    cat "/proc/sys/$setting" >"$file"
    mount --bind "$file" "/proc/sys/$setting"
  done
  # The kernel lets user namespaces mount a proc only if one exists with nothing mounted over it.
  mount -t proc proc "$work/proc"
  mount -t tmpfs tmpfs /run
  mkdir -p /run/{containerd,lock} /var/lib/{kubelet,cni}
  mount --bind "$work/kubelet" /var/lib/kubelet
  mount --make-shared /var/lib/kubelet
  mount --bind "$work/var-lib-cni" /var/lib/cni
  mount --bind "$work/var-log" /var/log
  mkdir -p /var/log/{pods,containers}
}

# A client configuration with a token: write_client NAME USER [GROUP]
write_client() {
  local name=$1 user=$2 group=${3:-} token
  token=$(openssl rand -hex 16)
  printf '%s,%s,%s,"%s"\n' "$token" "$user" "$name" "$group" >>"$work/keys/tokens.csv"
  cat >"$work/$name.conf" <<CONF
apiVersion: v1
kind: Config
current-context: cluster
contexts: [{ name: cluster, context: { cluster: cluster, user: user } }]
clusters: [{ name: cluster, cluster: { server: "https://$address:6443", certificate-authority: "$work/keys/apiserver.crt" } }]
users: [{ name: user, user: { token: "$token" } }]
CONF
}

start_containerd() {
  cat >"$work/containerd.toml" <<TOML
version = 2
root = "$work/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
disable_apparmor = true
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$work/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
options = { BinaryName = "$programs/runc", SystemdCgroup = false }
TOML
  cat >"$work/cni/10-pods.conflist" <<'JSON'
{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "ranges": [[{ "subnet": "10.244.0.0/24" }]],
        "routes": [{ "dst": "0.0.0.0/0" }]
      }
    }
  ]
}
JSON
  start containerd containerd -c "$work/containerd.toml"
  wait_until 'containerd answers' ctr version
  local image
  for image in "${images[@]}"; do
    ctr -n k8s.io images import "$image" >>"$logs/images.log" 2>&1
    say "imported $image"
  done
}

start_api() {
  openssl genrsa -out "$work/keys/accounts.key" 2048 2>/dev/null
  # The default quota of 2 GiB is too small for the revisions of ten thousand pods.
  start etcd etcd --data-dir "$work/etcd" --quota-backend-bytes=8589934592 --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
    --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380
  start apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address="$address" \
    --cert-dir="$work/keys" --token-auth-file="$work/keys/tokens.csv" --authorization-mode=Node,RBAC \
    --allow-privileged=true --service-cluster-ip-range=10.96.0.0/24 \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$work/keys/accounts.key" \
    --service-account-signing-key-file="$work/keys/accounts.key" --kubelet-preferred-address-types=InternalIP
}

start_controllers() {
  # The default is 50 bindings a second, which would limit every benchmark.
  start scheduler kube-scheduler --kubeconfig="$work/scheduler.conf" \
    --authentication-kubeconfig="$work/scheduler.conf" --authorization-kubeconfig="$work/scheduler.conf" \
    --leader-elect=false --bind-address=127.0.0.1 --kube-api-qps=1000 --kube-api-burst=2000
  start controllers kube-controller-manager --kubeconfig="$work/controllers.conf" --leader-elect=false \
    --bind-address=127.0.0.1 --use-service-account-credentials=true \
    --service-account-private-key-file="$work/keys/accounts.key" --root-ca-file="$work/keys/apiserver.crt" \
    --controllers='*,-node-ipam-controller'
}

start_kubelet() {
  cat >"$work/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $address
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: ""
# The disk belongs to the host, however full it is.
imageGCHighThresholdPercent: 100
evictionHard: { nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", memory.available: 100Mi }
localStorageCapacityIsolation: false
YAML
  start kubelet keep_kubelet
}

# Started again when it ends, as on other nodes. The pods go on meanwhile.
keep_kubelet() {
  while true; do
    kubelet --config="$work/kubelet.yaml" --kubeconfig="$work/kubelet.conf" --hostname-override=node1 \
      --node-ip="$address" --root-dir=/var/lib/kubelet || true
    sleep 1
  done
}

# Services as in other clusters. Connection tracking settings belong to the whole host, and stay unchanged.
start_proxy() {
  cat >"$work/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: { kubeconfig: "$work/proxy.conf" }
clusterCIDR: 10.244.0.0/24
bindAddress: $address
healthzBindAddress: 127.0.0.1:10256
conntrack: { maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
YAML
  start proxy kube-proxy --config="$work/proxy.yaml" --hostname-override=node1
}

# Applies NetworkPolicies, also between pods of one bridge.
start_policies() {
  [ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
  start policies kube-router --kubeconfig="$work/policies.conf" --run-firewall=true --run-router=false \
    --run-service-proxy=false --run-loadbalancer=false --service-cluster-ip-range=10.96.0.0/24 \
    --hostname-override=node1 --health-port=0
}

prepare_network
prepare_files
write_client admin admin system:masters
write_client kubelet system:node:node1 system:nodes
write_client controllers system:kube-controller-manager
write_client scheduler system:kube-scheduler
write_client proxy system:kube-proxy
write_client policies network-policies system:masters
start_api
start_containerd
wait_until 'the API answers' kubectl get --raw /readyz
start_controllers
start_kubelet
start_proxy
wait_until 'the node is ready' kubectl wait --for=condition=Ready node/node1 --timeout=1s
start_policies
# Pods cannot be created before this account exists.
wait_until 'the default service account is there' kubectl --namespace default get serviceaccount default
touch "$work/ready"
# The first that ends stops the cluster.
status=0
wait -n -p program || status=$?
name=${names[$program]}
{
  say "$name ended with $status. Its last lines:"
  tail -n 30 "$logs/$name.log"
} | tee "$work/ended"
exit 1
