import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AgentEvent, AgentState, agentEventsPath, getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { EventRateLimiter } from './event-rate-limiter.ts'

/*
 * Programs in a machine run as the same user as its agent and can take it over. So nothing that an agent says is
 * trusted beyond its own session, and its messages are limited in size, number and time.
 */

const answerLimitMilliseconds = 5_000
const maxAnswerBytes = 1024 * 1024
/** The longest lines contain the last output of a program: 20 lines of 2,000 characters. */
const maxEventLength = 128 * 1024

interface AgentCall {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers?: Record<string, string | string[] | undefined>
  readonly body?: Readable | string
  readonly signal?: AbortSignal
}

/** Sends a request to an agent over the unix socket of its machine. The caller reads the response body. */
export async function callAgent(
  agentSocket: string,
  { method, path, headers, body, signal }: AgentCall,
): Promise<IncomingMessage> {
  const request: ClientRequest = httpRequest({
    socketPath: agentSocket,
    method,
    path,
    // An agent may respond before it has received the whole body. Closing the connection then would make the remaining
    // write fail and discard the response.
    headers: { host: 'agent', ...(body && { connection: 'keep-alive' }), ...headers },
    agent: false,
    ...(signal && { signal }),
  })
  // A malformed response raises another error on the request, which would end the process without a listener. The
  // reader of the body receives it too.
  request.on('error', () => {})
  // The error also occurs where the response is awaited.
  if (body instanceof Readable) pipeline(body, request).catch(() => {})
  else request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

/** Sends a request and reads the whole response. Rejects when it is too long or does not arrive before the signal. */
export async function requestAgent(
  agentSocket: string,
  call: AgentCall & { readonly signal: AbortSignal; readonly maxBytes?: number },
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await callAgent(agentSocket, call)
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
export async function readAgentState(agentSocket: string): Promise<AgentState> {
  const { method, path } = getAgentState
  const signal = AbortSignal.timeout(answerLimitMilliseconds)
  const { text } = await requestAgent(agentSocket, { method, path, signal })
  return AgentState.parse(JSON.parse(text))
}

/**
 * Yields the agent's events until it disconnects or the signal aborts. Rejects at the first invalid event. Events
 * beyond the rate limit wait in the machine. Callers that reconnect pass the same rate limiter again.
 */
export async function* followAgent(
  agentSocket: string,
  signal: AbortSignal,
  pace = new EventRateLimiter(),
): AsyncGenerator<AgentEvent> {
  const response = await callAgent(agentSocket, { method: 'GET', path: agentEventsPath, signal })
  response.setEncoding('utf8')
  let unfinished = ''
  // readline would let an error of the stream end the process.
  for await (const chunk of response) {
    const lines = `${unfinished}${chunk}`.split('\n')
    unfinished = lines.pop() ?? ''
    for (const line of [...lines, unfinished]) {
      if (line.length > maxEventLength) throw new Error(`it sends an event of more than ${maxEventLength} characters`)
    }
    for (const line of lines) {
      const event = AgentEvent.parse(JSON.parse(line))
      await pace.admit(event, line.length, signal)
      yield event
    }
  }
}
