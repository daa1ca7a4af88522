/*
 * The network of a machine: the driver creates it and the agent uses it. This file has no schema, because the agent
 * loads it at every start of a session.
 */

/**
 * The machine's own addresses. The IPv4 address belongs to a range for hosts that translate addresses themselves (RFC
 * 7335), so it hides no site. The IPv6 address is local, so programs prefer IPv4 for sites that have both.
 */
export const machineAddresses = { ipv4: '192.0.0.2', ipv6: 'fd00:6265:7274:68::2' } as const

/** The default gateway, which is the agent. It is also the name server. */
export const gatewayAddresses = { ipv4: '192.0.0.1', ipv6: 'fd00:6265:7274:68::1' } as const

/**
 * MAC addresses of the interface that programs see, of its peer (whose frames the agent handles) and of the gateway.
 */
export const linkAddresses = {
  program: '02:00:00:00:00:02',
  agent: '02:00:00:00:00:01',
  gateway: '02:00:00:00:00:03',
} as const

/**
 * The agent's source address on loopback. A firewall rule accepts only this address at Chromium's DevTools server, and
 * pages cannot choose their source address.
 */
export const agentLoopbackAddress = '127.98.116.104'

export const machinePorts = {
  /** Receives intercepted connections. No program of the machine can listen below port 1,024. */
  capture: 1,
  /** The DevTools port for programs of the machine. The agent rejects connections from Chromium here. */
  devTools: 9222,
  /** Chromium's DevTools server, which only the agent can reach. */
  chromium: 9223,
} as const

/**
 * File descriptors that the first program of a machine inherits. 3 is the agent's socket. 4 to 6 belong to the driver.
 */
export const inheritedDescriptors = {
  agentSocket: 3,
  captureIpv4: 7,
  captureIpv6: 8,
  frames: 9,
} as const
