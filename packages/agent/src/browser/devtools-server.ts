import { agentLoopbackAddress, machinePorts } from '@berth/contract/agent/machine/machine-network.ts'

/** How the agent's own processes connect to Chromium's DevTools server, which refuses all other sources. */
export const toDevToolsServer = { host: '127.0.0.1', localAddress: agentLoopbackAddress } as const

/** The address for all other programs of the machine. */
export const devToolsAddress = `http://127.0.0.1:${machinePorts.devTools}`
