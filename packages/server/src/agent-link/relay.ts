import type { IncomingMessage, Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { agentCdpPath, agentDevToolsPath, agentWebDriverPath } from '@berth/contract/agent/agent-protocol.ts'
import { BerthError, errorCatalogue } from '@berth/contract/errors.ts'
import { errorBody, pathOf, toBerthError } from '@berth/runtime/http/error-reply.ts'
import { endWithAnswer } from '@berth/runtime/http/raw-answer.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionAccess } from '../access/session-access.ts'
import type { SessionMachines } from '../features/sessions/session-machines.ts'
import { sessionRoot } from '../features/sessions/session-urls.ts'

interface RelayOptions {
  readonly access: SessionAccess
  readonly machines: SessionMachines
  readonly logger: Logger
}

/** Headers of the handshake that go on; everything else of the client's request stays here, its token above all. */
const handshakeHeaders = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-protocol']

const lastWordsMilliseconds = 2_000

/**
 * Passes websockets on to the agents. The client's handshake is sent to the agent, and from then on bytes are copied
 * both ways, unread; the sockets' own backpressure holds a fast side to the pace of a slow one.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #open = new Set<Duplex>()

  constructor(options: RelayOptions) {
    this.#options = options
  }

  /** Takes every upgrade of the server. */
  attach(server: Server): void {
    server.on('upgrade', (request, socket, head) => {
      // An error before or after the splice is the end of this connection alone.
      socket.on('error', () => socket.destroy())
      this.#take(request, socket, head).catch((thrown: unknown) => this.#refuse(socket, toBerthError(thrown)))
    })
  }

  get openConnections(): number {
    return this.#open.size
  }

  /** Cuts every connection; the sessions stay. */
  close(): void {
    for (const socket of this.#open) socket.destroy()
  }

  async #take(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const target = upgradeTarget(request)
    const session = await this.#options.access.admit(target.token, target.sessionId)
    checkHandshake(request)
    const agentSocket = this.#options.machines.getAgentSocket(session.id)
    if (client.destroyed) return
    splice(client, connect(agentSocket), handshake(request, target.agentPath), head, this.#open)
  }

  #refuse(socket: Duplex, error: BerthError): void {
    if (error.status >= 500) {
      this.#options.logger.error({ err: error.cause ?? error }, `a websocket was refused: ${error.code}`)
    }
    endWithAnswer(socket, error.status, errorBody(error))
  }
}

interface UpgradeTarget {
  readonly sessionId: string
  readonly token: string | null
  readonly agentPath: string
}

/** `/s/{session}/cdp?jwt=…`, `/s/{session}/webdriver?jwt=…` and `/s/{session}/devtools/…?jwt=…`. */
function upgradeTarget(request: IncomingMessage): UpgradeTarget {
  const url = URL.parse(request.url ?? '', 'http://berth')
  const match = new RegExp(`^${sessionRoot}/([^/]+)(/.+)$`).exec(url?.pathname ?? '')
  const [, sessionId, path] = match ?? []
  const isServed = path === agentCdpPath || path === agentWebDriverPath || path?.startsWith(agentDevToolsPath)
  if (!url || !sessionId || !path || !isServed) {
    throw new BerthError('route_not_found', { method: 'websocket', path: pathOf(request.url ?? '') })
  }
  return { sessionId, token: url.searchParams.get('jwt'), agentPath: path }
}

/** RFC 6455 §4.2.1: what a handshake must say. */
function checkHandshake({ headers }: IncomingMessage): void {
  const refuse = (reason: string) => {
    throw new BerthError('bad_request', { reason })
  }
  if (headers.upgrade?.toLowerCase() !== 'websocket') refuse('upgrade: must be websocket.')
  if (headers['sec-websocket-version'] !== '13') refuse('sec-websocket-version: must be 13.')
  if (!/^[A-Za-z0-9+/]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    refuse('sec-websocket-key: must be 16 bytes in Base64.')
  }
}

function handshake(request: IncomingMessage, path: string): string {
  const lines = [`GET ${path} HTTP/1.1`, 'host: agent', 'connection: Upgrade', 'upgrade: websocket']
  for (const name of handshakeHeaders) {
    const value = request.headers[name]
    if (value !== undefined) lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}

function splice(client: Duplex, agent: Socket, request: string, head: Buffer, open: Set<Duplex>): void {
  const tcp = client as Socket
  tcp.setNoDelay(true)
  tcp.setTimeout(0)
  open.add(client)
  const end = () => {
    open.delete(client)
    client.destroy()
    agent.destroy()
  }
  // Half-closed websockets have nothing left to say; one side's end, clean or not, is the other's.
  client.on('close', end)
  agent.on('close', () => {
    // What the browser said last still goes out, but a client that does not read it is not waited for.
    client.end(end)
    setTimeout(end, lastWordsMilliseconds).unref()
  })
  agent.on('error', () => refuseUnanswered(client, agent))
  agent.write(request)
  if (head.length > 0) agent.write(head)
  client.pipe(agent)
  agent.once('data', (first: Buffer) => {
    agent.pause()
    if (!switchesProtocols(first)) return passRefusal(client, agent, first)
    client.write(first)
    agent.pipe(client)
  })
}

function switchesProtocols(answer: Buffer): boolean {
  return answer.toString('latin1', 0, 13) === 'HTTP/1.1 101 '
}

/**
 * An answer that opens no websocket is told under a head of our own, and is the end of the connection. A proxy in front
 * of berth may take such a connection for one that can be used again, and what a taken-over agent would send next for
 * answers to requests of others.
 */
function passRefusal(client: Duplex, agent: Socket, answer: Buffer): void {
  const [head = '', ...rest] = answer.toString('latin1').split('\r\n\r\n')
  const body = Buffer.from(rest.join('\r\n\r\n'), 'latin1')
  const told = Number(/^HTTP\/1\.1 ([45]\d\d) /.exec(head)?.[1] ?? errorCatalogue.session_unreachable.status)
  endWithAnswer(client, told, body)
  agent.destroy()
}

/** An agent that cannot be reached is an answer, not a silent end, while the client still waits for its handshake. */
function refuseUnanswered(client: Duplex, agent: Socket): void {
  if (agent.bytesRead > 0) return
  const error = new BerthError('session_unreachable')
  endWithAnswer(client, error.status, errorBody(error))
}
