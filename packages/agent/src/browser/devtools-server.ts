import { agentLoopbackAddress, machinePorts } from '@berth/contract/agent/machine/machine-network.ts'

/** How the agent's own processes connect to Chromium's DevTools server, which refuses every other source. */
export const toDevToolsServer = { host: '127.0.0.1', localAddress: agentLoopbackAddress } as const

/** Where all other programs of the machine find it. */
export const devToolsAddress = `http://127.0.0.1:${machinePorts.devTools}`
