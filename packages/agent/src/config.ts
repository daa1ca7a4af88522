import { readFile } from 'node:fs/promises'
import { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'

/** Reads the file that the driver wrote. */
export async function readConfig(path: string | undefined): Promise<AgentConfig> {
  if (path === undefined) throw new Error('the path of the configuration is missing')
  return AgentConfig.parse(JSON.parse(await readFile(path, 'utf8')))
}
