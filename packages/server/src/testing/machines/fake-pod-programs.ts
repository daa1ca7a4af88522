import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import {
  type AgentState,
  followAgentEvents,
  followAgentState,
  followAgentTelemetry,
  getAgentState,
} from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import { podProtocols } from '@berth/contract/agent/machine/machine-pod.ts'
import { egressContractVersion, egressLifelinePath, getEgressState } from '@berth/contract/egress/egress-endpoints.ts'

function stateSince(idleSince: number): AgentState {
  return { contract_version: agentContractVersion, state: 'ready', idle_since: idleSince }
}

const egressState = { contract_version: egressContractVersion, build: 'fake', machines: [] }
/** Streams with an immediate event. The others stay open without one. */
const streams = new Set<string>([followAgentState.path, followAgentEvents.path, followAgentTelemetry.path])

/** Responds as the agent, the egress and the supervisor of any machine. */
export function createFakePodPrograms() {
  /** By connection: since when its machine is idle, in milliseconds. */
  const idleSince = new WeakMap<Socket, number>()
  const agent = createServer((request, response) =>
    answerAsAgent(request, response, stateSince(idleSince.get(request.socket) as number)),
  )
  const egress = createServer(answerAsEgress)
  for (const server of [agent, egress]) server.requestTimeout = 0
  return {
    /** Every machine is idle from its creation on, at `createdAt` in milliseconds. */
    serve(client: TLSSocket, protocol: string, createdAt: number): void {
      idleSince.set(client, createdAt)
      if (protocol === podProtocols.agent) agent.emit('connection', client)
      else if (protocol === podProtocols.egress) egress.emit('connection', client)
      else if (protocol === podProtocols.supervisor) answerAsSupervisor(client)
      else client.destroy()
    },
  }
}

function answerAsAgent(request: IncomingMessage, response: ServerResponse, state: AgentState): void {
  const path = request.url?.split('?', 1)[0] ?? ''
  request.resume()
  if (streams.has(path)) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(path === followAgentState.path ? `data: ${JSON.stringify(state)}\n\n` : ':\n\n')
    return
  }
  if (path === getAgentState.path) sendJson(response, state)
  else request.once('end', () => response.writeHead(204).end())
}

function answerAsEgress(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  if (request.url === egressLifelinePath) {
    response.writeHead(200)
    response.flushHeaders()
  } else if (request.url === getEgressState.path) sendJson(response, egressState)
  else request.once('end', () => response.writeHead(204).end())
}

/** Every request succeeds, and nothing was ever frozen or killed for its memory. */
function answerAsSupervisor(client: TLSSocket): void {
  client.once('data', (request: Buffer) => {
    const text = request.toString().startsWith('memory-kills')
      ? '0'
      : request.toString().startsWith('state')
        ? 'running'
        : ''
    client.end(`ok ${text.length}\n${text}`)
  })
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
