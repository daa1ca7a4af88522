import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { webDriverSessionPattern } from '@berth/contract/agent/agent-protocol.ts'
import {
  agentUpgrades,
  cdpUpgrade,
  liveViewUpgrade,
  readOnlyLiveViewUpgrade,
} from '@berth/contract/agent/agent-upgrades.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { findUpgrade } from '@berth/contract/upgrade.ts'
import { errorBody, pathOf, retryHeaders, toBerthError } from '@berth/runtime/http/error-reply.ts'
import { endWithResponse } from '@berth/runtime/http/raw-response.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionAccess } from '../../access/session-access.ts'
import { readSessionCredentials } from '../../access/session-credentials.ts'
import type { SessionMachines } from '../../features/sessions/machines/session-machines.ts'
import { seleniumCdpPath, sessionRoot } from '../../features/sessions/records/session-urls.ts'
import { WebSocketSplice } from '../../ingress/websocket-splice.ts'
import { restrictToOwnSession } from '../../own-session/own-session-guard.ts'
import { isReadOnlyView } from '../live-view/live-view-query.ts'
import { acceptance, checkHandshake, handshakeForAgent } from './handshake.ts'
import { readHandshakeResponse } from './handshake-response.ts'
import type { SessionConnections } from './session-connections.ts'

interface RelayOptions {
  readonly access: Pick<SessionAccess, 'admit' | 'admitViewer'>
  readonly machines: Pick<SessionMachines, 'get'>
  readonly connections: SessionConnections
  readonly logger: Logger
}

const target = new RegExp(`^${sessionRoot}/([^/]+)(/.+?)/?$`)

/**
 * Relays WebSockets to the agents. Each side gets a separate handshake. After it, bytes are copied in both directions
 * without parsing, and backpressure slows a fast side down to a slow one.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #open = new Set<WebSocketSplice>()

  constructor(options: RelayOptions) {
    this.#options = options
  }

  /** Handles an upgrade request of the server. */
  readonly take = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // An error affects only this connection.
    socket.on('error', () => socket.destroy())
    this.#take(request, socket, head).catch((thrown: unknown) => this.#refuse(socket, toBerthError(thrown)))
  }

  get openConnections(): number {
    return this.#open.size
  }

  /** Closes every connection. The sessions continue. */
  close(): void {
    for (const splice of this.#open) splice.close()
  }

  /** Tells every client to reconnect. The sessions continue. */
  restart(): void {
    for (const splice of this.#open) splice.restart()
  }

  async #take(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    restrictToOwnSession(request)
    const { sessionId, path } = upgradeTarget(request)
    const registered = this.#options.connections.add(sessionId, () => client.destroy())
    client.once('close', () => registered[Symbol.dispose]())
    if (client.destroyed) return registered[Symbol.dispose]()
    const { session, agentPath } = await this.#admit(request, sessionId, path)
    checkHandshake(request.headers)
    const machine = this.#options.machines.get(session.id)
    const agent = await machine.connect().catch((cause: unknown) => {
      throw new BerthError('session_unreachable', undefined, { cause })
    })
    agent.on('error', () => agent.destroy())
    client.on('close', () => agent.destroy())
    if (client.destroyed) return void agent.destroy()
    agent.write(handshakeForAgent(agentPath, request.headers))
    const { protocol, rest } = await readHandshakeResponse(agent)
    if (client.destroyed) return
    client.write(acceptance(request.headers, protocol))
    if (rest.length > 0) client.write(rest)
    if (head.length > 0) agent.write(head)
    this.#splice(client, agent, rest)
  }

  async #admit(request: IncomingMessage, sessionId: string, path: string) {
    const { access } = this.#options
    const credentials = readSessionCredentials(request)
    if (path !== liveViewUpgrade.path) return { session: await access.admit(credentials, sessionId), agentPath: path }
    const { session, isReadOnly } = await access.admitViewer(credentials, sessionId)
    // The agent drops input, not the page, so a client that opens the WebSocket without the page gains nothing.
    const agentPath = isReadOnly || isReadOnlyView(request.url ?? '') ? readOnlyLiveViewUpgrade.path : path
    return { session, agentPath }
  }

  #splice(client: Duplex, agent: Duplex, sent: Buffer): void {
    const splice = new WebSocketSplice({ client, upstream: agent, sent, onEnd: () => this.#open.delete(splice) })
    this.#open.add(splice)
  }

  #refuse(socket: Duplex, error: BerthError): void {
    if (error.status >= 500) {
      this.#options.logger.error({ err: error.cause ?? error }, `a WebSocket was rejected: ${error.code}`)
    }
    endWithResponse(socket, error.status, errorBody(error), retryHeaders(error))
  }
}

/** Matches `/s/{session}/` followed by a path that `agentPathOf` knows, with or without a trailing slash. */
function upgradeTarget({ url = '' }: IncomingMessage): { readonly sessionId: string; readonly path: string } {
  const [, sessionId, asked] = target.exec(pathOf(url)) ?? []
  const path = asked && agentPathOf(asked)
  if (!sessionId || !path) throw new BerthError('route_not_found', { method: 'websocket', path: pathOf(url) })
  return { sessionId, path }
}

function agentPathOf(path: string): string | undefined {
  if (findUpgrade(agentUpgrades, path)) return path
  // CDP next to a session of classic WebDriver, at the path that Selenium clients use.
  const [, , command] = webDriverSessionPattern.exec(path) ?? []
  return command === seleniumCdpPath ? cdpUpgrade.path : undefined
}
