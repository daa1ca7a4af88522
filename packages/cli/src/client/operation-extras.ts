import { followDeployment, followInvocation } from '@berth/contract/apps/app-endpoints.ts'
import { getLiveView } from '@berth/contract/browsers/live-view-endpoints.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import open from 'open'
import type { ApiClient } from '../api/api-client.ts'
import type { OperationExtras } from '../api/operation-commands.ts'
import { printLine } from '../output.ts'
import { followToEnd } from './follow-to-end.ts'

interface ProcessResult {
  readonly exit_code: number
  readonly stdout_b64: string
  readonly stderr_b64: string
}

/** By operation. */
export const operationExtras: OperationExtras = {
  createBrowser: {
    flag: ['open', 'open the live view in a browser on this computer'],
    printsReply: false,
    run: (reply, client) => openLiveView(client, (reply as { session_id: string }).session_id),
  },
  getBrowserLiveView: {
    flag: ['open', 'open it in a browser on this computer'],
    printsReply: false,
    run: async (reply) => openPage((reply as { url: string }).url),
  },
  executeCommand: {
    printsReply: true,
    run: (reply) => {
      const { exit_code: exitCode, stdout_b64: stdout, stderr_b64: stderr } = reply as ProcessResult
      process.stdout.write(Buffer.from(stdout, 'base64'))
      process.stderr.write(Buffer.from(stderr, 'base64'))
      process.exitCode = exitCode < 0 ? 1 : exitCode
    },
  },
  createDeployment: {
    flag: ['wait', 'follow the build to its end'],
    printsReply: true,
    run: (reply, client, output) => followToEnd(client, followDeployment as Endpoint, idOf(reply), output),
  },
  createInvocation: {
    flag: ['wait', 'follow it to its end'],
    printsReply: true,
    run: (reply, client, output) => followToEnd(client, followInvocation as Endpoint, idOf(reply), output),
  },
}

async function openLiveView(client: ApiClient, id: string): Promise<void> {
  const { url } = await client.call<{ url: string }>(getLiveView as Endpoint, { params: { id_or_name: id } })
  await openPage(url)
}

async function openPage(url: string): Promise<void> {
  // The address is also printed to standard error: a computer without a browser cannot open it.
  printLine(`live view: ${url}`)
  const opened = await open(url)
  opened.on('error', () => undefined)
}

function idOf(reply: unknown): string {
  return (reply as { id: string }).id
}
