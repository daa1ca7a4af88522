/*
 * The network of a machine, as the driver makes it and the agent finds it. No schema: the agent loads this at every
 * start of a session.
 */

/**
 * The machine's own addresses. The IPv4 one is of a range for hosts that translate for themselves (RFC 7335), so that it
 * hides no site; the IPv6 one is local, so that programs prefer IPv4 where a site has both.
 */
export const machineAddresses = { ipv4: '192.0.0.2', ipv6: 'fd00:6265:7274:68::2' } as const

/** Where everything goes that is not the machine's own: to the agent. It is the name server too. */
export const gatewayAddresses = { ipv4: '192.0.0.1', ipv6: 'fd00:6265:7274:68::1' } as const

/** Of the interface that programs see, of the one behind it whose frames the agent reads and writes, and of the gateway. */
export const linkAddresses = {
  program: '02:00:00:00:00:02',
  agent: '02:00:00:00:00:01',
  gateway: '02:00:00:00:00:03',
} as const

/** The agent's own source on loopback. A rule keeps Chromium's DevTools server from all others; pages cannot choose theirs. */
export const agentLoopbackAddress = '127.98.116.104'

export const machinePorts = {
  /** Captured connections; below 1,024, where no program of the machine can listen. */
  capture: 1,
  /** Where programs of the machine find DevTools; the agent refuses Chromium there. */
  devTools: 9222,
  /** Chromium's DevTools server, for the agent alone. */
  chromium: 9223,
} as const

/** Open files that the first program of a machine inherits: 3 is the agent's socket, 4 to 6 are the driver's own. */
export const inheritedDescriptors = {
  agentSocket: 3,
  captureIpv4: 7,
  captureIpv6: 8,
  frames: 9,
} as const
