import { readFile } from 'node:fs/promises'
import type { ListenOptions } from 'node:net'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import { inheritedDescriptors } from '@berth/contract/agent/machine/machine-network.ts'

/**
 * Reads the file that the driver wrote. Only its version is checked: the driver uses the type of the same contract, and
 * loading the schema would delay every start of Chromium.
 */
export async function readConfig(path: string | undefined): Promise<AgentConfig> {
  if (path === undefined) throw new Error('the path of the configuration is missing')
  const config = JSON.parse(await readFile(path, 'utf8')) as AgentConfig
  if (config.contract_version !== agentContractVersion) {
    throw new Error(`the driver speaks version ${config.contract_version}, this agent version ${agentContractVersion}`)
  }
  return config
}

/** Where the agent listens: on an inherited socket, or the configured address. */
export function listenOptions({ listen_address: address }: AgentConfig): ListenOptions | { readonly fd: number } {
  if (address === undefined) return { fd: inheritedDescriptors.agentSocket }
  const [, ipv6, other, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(address) ?? []
  const host = ipv6 ?? other
  if (host === undefined || !(Number(port) <= 65_535)) throw new Error(`${address} is not an address to listen on`)
  return { host, port: Number(port) }
}
