import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { readFile, uploadZip, writeFile } from '@berth/contract/agent/operations/fs-operations.ts'
import {
  killProcess,
  type ProcessOutput,
  spawnProcess,
  streamProcessOutput,
  writeProcessInput,
} from '@berth/contract/agent/operations/process-operations.ts'
import { filledPath } from '@berth/contract/endpoint.ts'
import type { z } from 'zod'
import { callAgent } from '../../../agent-link/agent-client.ts'
import { AgentRefusal, commandAgent } from '../../../agent-link/command-agent.ts'
import { EventRateLimiter } from '../../../agent-link/event-rate-limiter.ts'
import { followAgent } from '../../../agent-link/follow-agent.ts'
import type { ReachableMachine } from '../../../drivers/driver.ts'

/** Includes the time in which an agent on a busy host loads its programs. */
const commandLimitMilliseconds = 45_000
/** In characters of the output's events. A program that floods its output is ended within seconds. */
const outputPerCredit = 4_000
const maxRefusalBytes = 64 * 1024

export interface ProgramRequest {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly timeout_sec?: number
}

/** The operations that the server uses in the machine of an app: the same that callers use in their sessions. */
export class MachineOperations {
  readonly #machine: ReachableMachine

  constructor(machine: ReachableMachine) {
    this.#machine = machine
  }

  async spawn(request: ProgramRequest, signal?: AbortSignal): Promise<string> {
    const body = { ...request, args: [...request.args] }
    return (await this.#command(spawnProcess, {}, body, signal)).process_id
  }

  async write(processId: string, text: string, signal?: AbortSignal): Promise<void> {
    const body = { data_b64: Buffer.from(text).toString('base64') }
    await this.#command(writeProcessInput, { process_id: processId }, body, signal)
  }

  /** Yields the output of a program, at a rate that the server can process, and finally its exit code. */
  output(processId: string, signal: AbortSignal): AsyncGenerator<ProcessOutput> {
    const stream = onAgent(streamProcessOutput, { process_id: processId })
    return followAgent(this.#machine, stream, { signal, pace: new EventRateLimiter(1, outputPerCredit) })
  }

  /** Kills a program and everything it has started. Succeeds for one that has ended. */
  async kill(processId: string): Promise<void> {
    await this.#command(killProcess, { process_id: processId }, { signal: 'KILL' }).catch((error: unknown) => {
      if (!(error instanceof AgentRefusal)) throw error
    })
  }

  async unpack(archive: Readable, folder: string, signal: AbortSignal): Promise<void> {
    const boundary = 'berth-archive'
    const part = (head: string) => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`
    const body = Readable.from(
      (async function* () {
        yield Buffer.from(`${part('name="dest_path"')}${folder}\r\n${part('name="zip_file"; filename="source.zip"')}`)
        yield* archive as AsyncIterable<Buffer>
        yield Buffer.from(`\r\n--${boundary}--\r\n`)
      })(),
      { objectMode: false },
    )
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
    await this.#send(uploadZip, '', { headers, body, signal })
  }

  async writeFile(path: string, body: Readable, signal: AbortSignal): Promise<void> {
    const headers = { 'content-type': 'application/octet-stream' }
    await this.#send(writeFile, `?path=${encodeURIComponent(path)}`, { headers, body, signal })
  }

  async readFile(path: string, signal: AbortSignal): Promise<Readable> {
    return this.#send(readFile, `?path=${encodeURIComponent(path)}`, { signal, keepsBody: true })
  }

  #command<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType, Reply extends z.ZodType>(
    operation: Operation<Params, Query, Body, Reply>,
    params: Readonly<Record<string, string>>,
    body: z.input<Body>,
    signal?: AbortSignal,
  ): Promise<z.output<Reply>> {
    const options = { limitMilliseconds: commandLimitMilliseconds, ...(signal && { signal }) }
    return commandAgent(this.#machine, onAgent(operation, params), body, options)
  }

  async #send(operation: Operation, query: string, { keepsBody = false, ...call }: Sending): Promise<IncomingMessage> {
    const { method, path, status } = onAgent(operation, {})
    const response = await callAgent(this.#machine, { method, path: `${path}${query}`, ...call })
    if (response.statusCode !== status)
      throw new AgentRefusal(path, response.statusCode ?? 502, await bounded(response))
    if (!keepsBody) {
      response.resume()
      await once(response, 'close')
    }
    return response
  }
}

interface Sending {
  readonly headers?: Record<string, string>
  readonly body?: Readable
  readonly signal: AbortSignal
  readonly keepsBody?: boolean
}

function onAgent<Declared extends Operation>(operation: Declared, params: Readonly<Record<string, string>>): Declared {
  return { ...operation, path: `${agentOperationsPath}${filledPath(operation.agentPath, params)}` }
}

async function bounded(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response) {
    text += chunk
    if (text.length > maxRefusalBytes) break
  }
  return text
}
