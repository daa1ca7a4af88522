import { readFile } from 'node:fs/promises'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'

/**
 * Reads the file that the driver wrote. Only its version is checked: the driver has its type from the same contract, and
 * the schema would be loaded before every start of Chromium.
 */
export async function readConfig(path: string | undefined): Promise<AgentConfig> {
  if (path === undefined) throw new Error('the path of the configuration is missing')
  const config = JSON.parse(await readFile(path, 'utf8')) as AgentConfig
  if (config.contract_version !== agentContractVersion) {
    throw new Error(`the driver speaks version ${config.contract_version}, this agent version ${agentContractVersion}`)
  }
  return config
}
