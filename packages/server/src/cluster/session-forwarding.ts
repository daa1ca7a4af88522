import type { IncomingMessage } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { idPattern, type ProjectId, type SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { errorBody, pathOf, retryHeaders, toBerthError } from '@berth/runtime/http/error-reply.ts'
import { readAll, readWithin } from '@berth/runtime/http/json-body.ts'
import { fastifyPath } from '@berth/runtime/http/mount.ts'
import { endWithResponse } from '@berth/runtime/http/raw-response.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import { publicUrlOf } from '../access/public-url.ts'
import { readBearer, readTokenQuery } from '../access/session-credentials.ts'
import type { SessionTokens } from '../access/session-tokens.ts'
import type { ServerStore } from '../features/servers/server-store.ts'
import type { SessionHandovers } from '../features/sessions/machines/session-handovers.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import type { ResolvedSession, SessionStore } from '../features/sessions/records/session-store.ts'
import { sessionRoot } from '../features/sessions/records/session-urls.ts'
import { ownSessionOf } from '../own-session/own-session-guard.ts'
import { deferContinue, sendContinue } from './expected-continue.ts'
import { forwardFullCreates } from './forward-full-creates.ts'
import { clientAddressOf, isForwarded, receiveForwarded } from './forwarded-requests.ts'
import { type Forward, HttpForwarder, hasBody, misdirectedHeader, UnreadBody } from './http-forwarder.ts'
import { OpenForwards } from './open-forwards.ts'
import type { PeerSignature } from './peers/peer-signature.ts'
import type { Peers } from './peers/peers.ts'
import { UpgradeForwarder } from './upgrade-forwarder.ts'

interface SessionForwardingOptions {
  readonly serverId: string
  /** Whether there are other servers. */
  readonly isShared: boolean
  readonly peers: Peers
  readonly servers: Pick<ServerStore, 'findRoom'>
  readonly signature: PeerSignature
  readonly store: Pick<SessionStore, 'resolve'>
  readonly machines: Pick<SessionMachines, 'has'>
  /** Absent when each server has its own machines. */
  readonly handovers: Pick<SessionHandovers, 'adoptForRequest'> | undefined
  readonly tokens: Pick<SessionTokens, 'verify'>
  readonly logger: Logger
}

interface Reach {
  readonly findOwner: () => Promise<string | undefined>
  /** Whether the whole request is still available. */
  readonly canRepeat: () => boolean
  /** Rejects with `session_unreachable` when nothing was done, or when a repeat is safe. */
  readonly forward: (owner: string) => Promise<void>
}

type TakeUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

const sessionRoute = '/browsers/:id_or_name'
const tokenRoute = `${sessionRoot}/:`
const belowSession = new RegExp(`^${sessionRoot}/([^/]+)/`)
const readingMethods = ['GET', 'HEAD']
const bodyMilliseconds = 30_000
/** Longer than the time until a lost server is detected. */
const movingMilliseconds = 20_000
const pauseMilliseconds = 1_000
const sessionFields: ReadonlyMap<string, readonly string[]> = new Map(
  publicEndpoints.flatMap(({ method, path, sessionField }) =>
    sessionField ? [[`${method} ${fastifyPath(path)}`, sessionField] as const] : [],
  ),
)

/**
 * Forwards every request for a session to the server that has its machine, before any of its body is read. That server
 * authorizes, processes and audits it as if it had arrived there. A request is forwarded once. A server that receives a
 * forwarded request for a session it does not have rejects it.
 */
export class SessionForwarding {
  readonly #options: SessionForwardingOptions
  readonly #forwards: OpenForwards
  readonly #http: HttpForwarder
  readonly #upgrades: UpgradeForwarder

  constructor(options: SessionForwardingOptions) {
    this.#options = options
    this.#forwards = new OpenForwards(options.peers)
    this.#http = new HttpForwarder(this.#forwards)
    this.#upgrades = new UpgradeForwarder(this.#forwards)
  }

  get openConnections(): number {
    return this.#upgrades.openConnections
  }

  /** Tells the clients of WebSockets to reconnect. */
  restart(): void {
    this.#upgrades.restart()
  }

  close(): void {
    this.#forwards.close()
    this.#http.close()
  }

  /** Must run before all code that reads the headers of a request. */
  receive(request: IncomingMessage): void {
    receiveForwarded(request, this.#options.signature, this.#options.serverId)
  }

  attach(app: FastifyInstance): void {
    if (!this.#options.isShared) return
    deferContinue(app.server)
    app.addHook('preParsing', async (request, reply, payload) => {
      const goOn = () => sendContinue(request.raw, reply.raw)
      const field = namedInBody(request)
      if (field) goOn()
      const limitBytes = request.routeOptions.bodyLimit ?? app.initialConfig.bodyLimit ?? 0
      const read = field && (await readNamedSession(payload as Readable, limitBytes, field))
      const findOwner = () =>
        read?.session ? this.#otherOwnerInProject(projectOf(request), read.session) : this.#otherOwnerOf(request)
      const unread = !read && hasBody(request.raw) ? new UnreadBody(request.raw, goOn) : undefined
      const canRepeat = () => !unread?.isBegun
      const forward = (owner: string) => {
        if (isForwarded(request.raw)) reply.header(misdirectedHeader, '1')
        return this.#forwardTo(owner, request, reply, read?.body ?? unread)
      }
      const isElsewhere = await this.#reach(request.raw, { findOwner, canRepeat, forward }).catch((error: unknown) => {
        // A client that is still sending reads the response afterwards.
        unread?.discard()
        throw error
      })
      if (isElsewhere) return undefined
      goOn()
      return read ? Readable.from([read.body]) : payload
    })
    // When machines are shared, lack of capacity affects all servers.
    if (!this.#options.handovers) forwardFullCreates(app, (request, reply) => this.#createElsewhere(request, reply))
  }

  /**
   * Forwards to the server that has the session, and returns whether there is one. When sessions can move, a session
   * whose server is lost gets a new one within seconds, so this waits for it. A client whose request cannot be repeated
   * here has to repeat it.
   */
  async #reach(request: IncomingMessage, { findOwner, canRepeat, forward }: Reach): Promise<boolean> {
    const deadline = performance.now() + movingMilliseconds
    // For a forwarded request, the other server repeats the lookup.
    const waits = this.#options.handovers !== undefined && !isForwarded(request)
    for (;;) {
      const owner = await findOwner()
      if (owner === undefined) return false
      try {
        await forward(owner)
        return true
      } catch (error) {
        if (toBerthError(error).code !== 'session_unreachable' || !waits) throw error
        if (!canRepeat() || performance.now() > deadline) {
          throw new BerthError('session_moving', undefined, { cause: error })
        }
        this.#options.peers.forget()
        await delay(pauseMilliseconds)
      }
    }
  }

  async #forwardTo(owner: string, request: FastifyRequest, reply: FastifyReply, body: Forward['body']): Promise<void> {
    const host = request.headers.host ?? new URL(publicUrlOf(request.raw, undefined)).host
    const forward = { ...(await this.#wayTo(owner, request.raw)), host, body }
    await this.#http.forward(request.raw, reply, forward).catch((error: unknown) => {
      this.#options.peers.forget()
      throw error
    })
  }

  /** Returns whether another server has handled a create that this one has no capacity for. */
  async #createElsewhere(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const { servers, serverId } = this.#options
    if (isForwarded(request.raw)) return false
    const owner = await servers.findRoom(serverId)
    if (owner === undefined) return false
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    try {
      await this.#forwardTo(owner, request, reply, body)
      return true
    } catch (error) {
      if (toBerthError(error).code === 'session_unreachable') return false // Nothing was sent.
      throw error
    }
  }

  /** Handles upgrades. `serve` handles those for sessions of this server, and rejects those for unknown sessions. */
  upgrades(serve: TakeUpgrade): TakeUpgrade {
    return (request, socket, head) => {
      this.receive(request)
      if (!this.#options.isShared) return serve(request, socket, head)
      // Until its target is known, its errors are ignored.
      const ignore = () => socket.destroy()
      socket.on('error', ignore)
      this.#takeUpgrade(request, socket, head, serve).catch((thrown: unknown) => {
        const error = toBerthError(thrown)
        if (error.status >= 500) {
          this.#options.logger.error({ err: error.cause ?? error }, `a WebSocket was rejected: ${error.code}`)
        }
        endWithResponse(socket, error.status, errorBody(error), retryHeaders(error))
      })
    }
  }

  async #takeUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, serve: TakeUpgrade): Promise<void> {
    const [, id] = belowSession.exec(pathOf(request.url ?? '')) ?? []
    const findOwner = async () => (ownSessionOf(request.socket) === undefined ? this.#otherOwnerById(id) : undefined)
    // The session moved on while the request was on its way: the server that forwarded it repeats the lookup.
    if (this.#options.handovers && isForwarded(request) && (await findOwner()) !== undefined)
      return void socket.destroy()
    const forward = async (owner: string) =>
      this.#upgrades.forward(request, socket, head, await this.#wayTo(owner, request))
    const isElsewhere = await this.#reach(request, { findOwner, canRepeat: () => true, forward })
    if (!isElsewhere) serve(request, socket, head)
  }

  async #wayTo(owner: string, request: IncomingMessage) {
    const { peers, signature, serverId } = this.#options
    if (isForwarded(request)) throw unreachable('it was passed on to a server that does not have the session')
    const address = await peers.addressOf(owner)
    if (!address) throw unreachable(`its server ${owner} is gone`)
    const facts = { from: serverId, to: owner, client: clientAddressOf(request) }
    return { owner, address, signature: signature.sign(facts, request) }
  }

  /** The other server that must handle the request. Undefined if it is for this server, or for no active session. */
  async #otherOwnerOf(request: FastifyRequest): Promise<string | undefined> {
    // From a machine of this server: it is for that session, or rejected.
    if (ownSessionOf(request.raw.socket) !== undefined) return undefined
    const { url: route = '' } = request.routeOptions
    const params = request.params as Record<string, string | undefined>
    if (route.startsWith(tokenRoute)) return this.#otherOwnerById(params.session_id ?? params.session)
    if (route === sessionRoute && readingMethods.includes(request.method)) return undefined
    if (route === sessionRoute || route.startsWith(`${sessionRoute}/`)) {
      return this.#otherOwnerInProject(projectOf(request), params.id_or_name ?? '')
    }
    // Puppeteer's discovery, where only the token identifies the session.
    const token = isDiscovery(route) ? tokenOf(request) : undefined
    return token === undefined ? undefined : this.#otherOwnerById((await this.#options.tokens.verify(token))?.sessionId)
  }

  async #otherOwnerInProject(projectId: ProjectId, idOrName: string): Promise<string | undefined> {
    const { store } = this.#options
    if (idOrName.includes('\0') || (await this.#isHere(idOrName as SessionId))) return undefined
    return this.#unlessHere(await store.resolve({ projectId }, idOrName, ['starting', 'active']))
  }

  async #otherOwnerById(id: string | undefined): Promise<string | undefined> {
    const { store } = this.#options
    if (id === undefined || !idPattern.test(id) || (await this.#isHere(id as SessionId))) return undefined
    return this.#unlessHere(await store.resolve({ sessionId: id as SessionId }, id, ['starting', 'active']))
  }

  async #isHere(id: SessionId): Promise<boolean> {
    const { machines, handovers } = this.#options
    if (!machines.has(id)) return false
    await handovers?.adoptForRequest(id)
    return true
  }

  async #unlessHere(session: Pick<ResolvedSession, 'id' | 'driver_id'> | undefined): Promise<string | undefined> {
    const { serverId, handovers } = this.#options
    if (session?.driver_id !== serverId) return session?.driver_id
    await handovers?.adoptForRequest(session.id)
    return undefined
  }
}

function projectOf(request: FastifyRequest): ProjectId {
  return (request.caller as Caller).projectId
}

/** The member of the body that names the session, for routes whose URL does not. */
function namedInBody({ routeOptions: { url = '' }, method, raw }: FastifyRequest): readonly string[] | undefined {
  const isHere = isForwarded(raw) || ownSessionOf(raw.socket) !== undefined
  return isHere ? undefined : sessionFields.get(`${method} ${url}`)
}

/** The route validates the body. */
async function readNamedSession(
  payload: Readable,
  limitBytes: number,
  field: readonly string[],
): Promise<{ readonly body: Buffer; readonly session: string }> {
  const body = await readWithin(bodyMilliseconds, readAll(payload, limitBytes))
  try {
    const session = field.reduce((value, name) => value?.[name], JSON.parse(body.toString()))
    return { body, session: typeof session === 'string' ? session : '' }
  } catch {
    return { body, session: '' }
  }
}

function isDiscovery(route: string): boolean {
  return route === '/' || route === '/json' || route === '/json/*'
}

function tokenOf({ url, headers }: FastifyRequest): string | undefined {
  return readTokenQuery(url).token ?? readBearer(headers.authorization)
}

function unreachable(reason: string): BerthError {
  return new BerthError('session_unreachable', undefined, { cause: new Error(reason) })
}
