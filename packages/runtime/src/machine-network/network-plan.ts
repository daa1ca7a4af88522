import {
  agentLoopbackAddress,
  gatewayAddresses,
  linkAddresses,
  machineAddresses,
  machinePorts,
} from '@berth/contract/agent/machine/machine-network.ts'

/*
 * The network of a machine leads to the agent. Two interfaces in the machine form a veth pair: programs use eth0, and
 * the agent holds a packet socket on eth1. The first packet of each connection, and everything that is not TCP, leaves
 * by eth0 and reaches the agent. The rest of each connection stays on loopback, where a listener has the destination's
 * address. So the agent decides about every connection before it is established, and its bytes pass through ordinary
 * sockets.
 */

/** Larger than any Ethernet frame: the two interfaces are connected by memory only. */
const mtu = 65_535
const openingMark = 1
const captureTable = 100

/** Commands for `ip -batch`. With loopback alone, Chromium would report that it is offline. */
export const interfacePlan = [
  'link set lo up',
  `link add eth0 address ${linkAddresses.program} mtu ${mtu} type veth peer name eth1 address ${linkAddresses.agent} mtu ${mtu}`,
  // Prevents an address that appears a second later: Chromium takes it for a network change and aborts what it is
  // loading.
  'link set eth0 addrgenmode none',
  'link set eth1 addrgenmode none',
  `address add ${machineAddresses.ipv4}/29 dev eth0`,
  `address add ${machineAddresses.ipv6}/64 dev eth0 nodad`,
  'link set eth1 up',
  'link set eth0 up',
  ...Object.values(gatewayAddresses).map(
    (address) => `neighbour add ${address} lladdr ${linkAddresses.gateway} dev eth0 nud permanent`,
  ),
  ...routes('default', gatewayAddresses.ipv4, machineAddresses.ipv4),
  '',
].join('\n')

/** Commands for `ip -6 -batch`. Rules do not name a family themselves. */
export const ipv6Plan = [...routes('default', gatewayAddresses.ipv6, machineAddresses.ipv6), ''].join('\n')

/** TCP is local whatever its destination, except packets that open a connection. */
function routes(everything: string, gateway: string, source: string): readonly string[] {
  return [
    `route add ${everything} via ${gateway} dev eth0`,
    `route add local ${everything} dev lo table ${captureTable} src ${source}`,
    `rule add pref 10 fwmark ${openingMark} lookup main`,
    `rule add pref 20 iif lo ipproto 6 lookup ${captureTable}`,
    `rule add pref 30 iif eth0 lookup ${captureTable}`,
  ]
}

const isOpening = 'tcp flags & (fin | syn | rst | ack) == syn'

/** For `nft -f`. */
export const packetRules = `
table inet berth {
  chain route {
    type route hook output priority mangle
    ip daddr { 127.0.0.0/8, ${machineAddresses.ipv4} } accept
    ip6 daddr { ::1, ${machineAddresses.ipv6} } accept
    ${isOpening} meta mark set ${openingMark}
  }
  chain capture {
    type filter hook prerouting priority mangle
    iifname "eth0" ${isOpening} meta nfproto ipv4 tproxy ip to 127.0.0.1:${machinePorts.capture}
    iifname "eth0" ${isOpening} meta nfproto ipv6 tproxy ip6 to [::1]:${machinePorts.capture}
  }
  chain guard {
    type filter hook output priority filter
    ip daddr 127.0.0.0/8 tcp dport ${machinePorts.capture} reject with tcp reset
    ip6 daddr ::1 tcp dport ${machinePorts.capture} reject with tcp reset
    ip daddr 127.0.0.0/8 ip saddr != ${agentLoopbackAddress} tcp dport ${machinePorts.chromium} reject with tcp reset
    oifname "eth0" udp dport != { 53, 5353 } reject with icmpx admin-prohibited
  }
}
`
