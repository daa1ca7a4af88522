import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { AgentEvent, AgentState, agentEventsPath, getAgentState } from '@berth/contract/agent/agent-endpoints.ts'

const answerLimitMilliseconds = 5_000

interface AgentCall {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers?: Record<string, string | string[] | undefined>
  readonly signal?: AbortSignal
}

/** Calls an agent over the unix socket of its machine; the body of the answer is the caller's to read. */
export async function callAgent(
  agentSocket: string,
  { method, path, headers, signal }: AgentCall,
): Promise<IncomingMessage> {
  const request: ClientRequest = httpRequest({
    socketPath: agentSocket,
    method,
    path,
    headers: { host: 'agent', ...headers },
    agent: false,
    ...(signal && { signal }),
  })
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

/** What the agent says of itself; rejects when it does not answer in time. */
export async function readAgentState(agentSocket: string): Promise<AgentState> {
  const { method, path } = getAgentState
  const signal = AbortSignal.timeout(answerLimitMilliseconds)
  const response = await callAgent(agentSocket, { method, path, signal })
  return AgentState.parse(await new Response(response).json())
}

/** Follows the agent's events until it goes away or the signal ends it. */
export async function* followAgent(agentSocket: string, signal: AbortSignal): AsyncGenerator<AgentEvent> {
  const response = await callAgent(agentSocket, { method: 'GET', path: agentEventsPath, signal })
  response.setEncoding('utf8')
  let unfinished = ''
  // Not readline: it lets the error of a stream that breaks off end the process.
  for await (const chunk of response) {
    const lines = `${unfinished}${chunk}`.split('\n')
    unfinished = lines.pop() ?? ''
    for (const line of lines) yield AgentEvent.parse(JSON.parse(line))
  }
}
