import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { agentExtensionsPath } from '@berth/contract/agent/agent-protocol.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ReachableMachine } from '../../drivers/driver.ts'
import { requestAgent } from '../agent-client.ts'
import { AgentRefusal } from '../command-agent.ts'

/** An archive. */
export interface SentExtension {
  /** The name of its folder in the session. */
  readonly name: string
  /** Opened when it is its turn. */
  readonly open: () => Promise<AsyncIterable<Uint8Array>>
}

/** Resolves when the agent has loaded all of them. After a rejection, none is loaded. */
export async function sendExtensions(
  machine: ReachableMachine,
  sent: readonly SentExtension[],
  signal: AbortSignal,
): Promise<void> {
  const boundary = `berth-${randomUUID()}`
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  const body = Readable.from(multipart(boundary, sent), { objectMode: false })
  const call = { method: 'POST', path: agentExtensionsPath, headers, body, signal }
  const { status, text } = await requestAgent(machine, call).catch((cause: unknown) => {
    throw cause instanceof BerthError ? cause : new BerthError('operation_interrupted', undefined, { cause })
  })
  if (status !== 201) throw refusalOf(new AgentRefusal(agentExtensionsPath, status, text), sent)
}

async function* multipart(boundary: string, sent: readonly SentExtension[]): AsyncGenerator<Uint8Array> {
  for (const [index, { name, open }] of sent.entries()) {
    const head = (member: string) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="extensions[${index}][${member}]"`
    yield Buffer.from(`${head('name')}\r\n\r\n${name}\r\n${head('zip_file')}; filename="${index}.zip"\r\n\r\n`)
    yield* await open()
    yield Buffer.from('\r\n')
  }
  yield Buffer.from(`--${boundary}--\r\n`)
}

/** The agent's message is for the owner of the session, who should see why Chromium rejects an extension. */
function refusalOf(refusal: AgentRefusal, sent: readonly SentExtension[]): BerthError {
  if (refusal.status !== 400) return new BerthError('operation_interrupted', undefined, { cause: refusal })
  const [, extension, reason] = /^The extension (\S+) cannot be loaded: (.*)$/s.exec(refusal.message) ?? []
  const names = sent.map(({ name }) => name).join(', ')
  return new BerthError(
    'extension_not_loadable',
    { extension: extension ?? names, reason: reason ?? refusal.message },
    { cause: refusal },
  )
}
