import type { IncomingMessage } from 'node:http'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import { listFiles, readFile } from '@berth/contract/agent/operations/fs-operations.ts'
import type { FileInfo } from '@berth/contract/agent/operations/fs-types.ts'
import type { z } from 'zod'
import type { ReachableMachine } from '../../drivers/driver.ts'
import { callAgent, requestAgent } from '../agent-client.ts'
import { AgentRefusal } from '../command-agent.ts'

/** The default download folder. Clients can choose another one. */
const downloadsFolder = '/home/kernel/Downloads'
/** The names of a file during its download, before and after its final name is known. */
const unfinished = /\.crdownload$|^\.(org\.chromium\.Chromium|com\.google\.Chrome)\.\w{6}$/
const listLimitMilliseconds = 10_000
/** Enough for some ten thousand files. */
const maxListBytes = 4 * 1024 ** 2

type DownloadedFile = Pick<FileInfo, 'name' | 'size_bytes' | 'mod_time'>

const Files = listFiles.reply as z.ZodType<FileInfo[]>

/** The finished downloads in the machine, sorted by name. Empty if the folder does not exist. */
export async function listDownloadedFiles(machine: ReachableMachine): Promise<readonly DownloadedFile[]> {
  const path = pathOf(listFiles.agentPath, downloadsFolder)
  const bounds = { signal: AbortSignal.timeout(listLimitMilliseconds), maxBytes: maxListBytes }
  const { status, text } = await requestAgent(machine, { method: 'GET', path, ...bounds })
  if (status === 404) return []
  if (status !== 200) throw new AgentRefusal(path, status, text)
  return Files.parse(JSON.parse(text)).filter(
    ({ is_dir, mode, name }) => !is_dir && mode.startsWith('-') && !unfinished.test(name),
  )
}

/** The agent's response with the file or the requested range of it. */
export function readDownloadedFile(
  machine: ReachableMachine,
  name: string,
  { range, signal }: { readonly range?: string | undefined; readonly signal?: AbortSignal } = {},
): Promise<IncomingMessage> {
  const path = pathOf(readFile.agentPath, `${downloadsFolder}/${name}`)
  return callAgent(machine, { method: 'GET', path, ...(range && { headers: { range } }), ...(signal && { signal }) })
}

function pathOf(operation: string, path: string): string {
  return `${agentOperationsPath}${operation}?path=${encodeURIComponent(path)}`
}
