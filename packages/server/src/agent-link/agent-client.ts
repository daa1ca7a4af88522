import { once } from 'node:events'
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AgentState, getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { ReachableMachine } from '../drivers/driver.ts'

/*
 * Programs in a machine run as the same user as its agent and can take it over. So data from an agent is trusted only
 * for its own session, and its messages are limited in size, number and time.
 */

const answerLimitMilliseconds = 5_000
const maxAnswerBytes = 1024 * 1024

interface AgentCall {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers?: Record<string, string | string[] | undefined>
  readonly body?: Readable | string
  readonly signal?: AbortSignal
}

/** Calls the agent of a machine on a separate connection. The caller has to read the body of the response. */
export async function callAgent(
  machine: ReachableMachine,
  { method, path, headers, body, signal }: AgentCall,
): Promise<IncomingMessage> {
  const request: ClientRequest = httpRequest({
    method,
    path,
    // An agent may respond before it has received the whole body. Closing the connection then would make the remaining
    // write fail and discard the response.
    headers: { host: 'agent', ...(body && { connection: 'keep-alive' }), ...headers },
    agent: new MachineConnections(machine),
    ...(signal && { signal }),
  })
  // A malformed response also raises an error of the request, which would end the process if nobody listened. The
  // reader of the body sees it there.
  request.on('error', () => {})
  // The error also occurs where the response is awaited.
  if (body instanceof Readable) pipeline(body, request).catch(() => {})
  else request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

/** Sends a request and reads the whole response. Rejects when it is too long or does not arrive before the signal. */
export async function requestAgent(
  machine: ReachableMachine,
  call: AgentCall & { readonly signal: AbortSignal; readonly maxBytes?: number },
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await callAgent(machine, call)
  const chunks: Buffer[] = []
  const { maxBytes = maxAnswerBytes } = call
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the agent's response to ${call.path} has more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return { status: response.statusCode ?? 502, text: Buffer.concat(chunks).toString() }
}

/** Returns the agent's state. Rejects when it does not respond in time. */
export async function readAgentState(machine: ReachableMachine): Promise<AgentState> {
  const { method, path } = getAgentState
  const signal = AbortSignal.timeout(answerLimitMilliseconds)
  const { text } = await requestAgent(machine, { method, path, signal })
  return AgentState.parse(JSON.parse(text))
}

/** Makes Node.js speak HTTP over connections of the machine's driver. */
class MachineConnections extends HttpAgent {
  readonly #machine: ReachableMachine

  constructor(machine: ReachableMachine) {
    super()
    this.#machine = machine
  }

  override createConnection(_options: unknown, callback: (error: Error | null, connection: Duplex) => void): undefined {
    this.#machine.connect().then(
      (connection) => callback(null, connection),
      // For an error, Node.js ignores the connection.
      (error: Error) => callback(error, undefined as unknown as Duplex),
    )
  }
}
