import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { AuthFlowId, ProjectId } from '@berth/contract/common/ids.ts'
import { newId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ConnectionEvent, LoginRequest } from '@berth/contract/managed-auth/connection.ts'
import type { SubmitRequest } from '@berth/contract/managed-auth/interaction.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Caller } from '../../access/caller.ts'
import { HandoffTokens } from '../../access/handoff-tokens.ts'
import { readBearer } from '../../access/session-credentials.ts'
import { heartbeat, stateEvent } from './connection-record.ts'
import type { ConnectionService } from './connection-service.ts'
import type { StoredConnection } from './connection-store.ts'
import type { FlowRunner } from './flows/flow-runner.ts'
import type { FlowSecrets } from './flows/flow-secrets.ts'
import type { FlowSignals } from './flows/flow-signals.ts'
import { flowMilliseconds } from './flows/flow-state.ts'
import type { FlowStore, StoredFlow } from './flows/flow-store.ts'
import { modeOf, readAnswer } from './flows/submission.ts'

const codeBytes = 32
const maxWrongCodes = 10
/** Clients abandon a silent stream, and some of them ignore comments. */
const heartbeatMilliseconds = 10_000

interface FlowServiceOptions {
  readonly connections: ConnectionService
  readonly store: FlowStore
  readonly runner: FlowRunner
  readonly signals: FlowSignals
  readonly secrets: FlowSecrets
  readonly tokens: HandoffTokens
  readonly serverId: string
  readonly clock: Clock
}

export interface BegunLogin {
  readonly connection: StoredConnection
  readonly flow: StoredFlow
  readonly code: string
}

/** Operations of callers on flows: start one, answer it, follow it, and hand it to a person. */
export class FlowService {
  readonly #options: FlowServiceOptions

  constructor(options: FlowServiceOptions) {
    this.#options = options
  }

  /** Starts a login. Cancels one that is in progress. */
  async login(projectId: ProjectId, id: string, request: LoginRequest): Promise<BegunLogin> {
    const { connections, store, runner, secrets, serverId, clock } = this.#options
    const connection = await connections.get(projectId, id)
    const browser = await connections.browserOf(projectId, connection.browser, request ?? {})
    const now = clock.now()
    const flowId = newId('auth-flow', now)
    const code = randomBytes(codeBytes).toString('base64url')
    const begun = await store.begin({
      id: flowId,
      connection_id: connection.id,
      flow_type: connection.authenticated_at === null ? 'LOGIN' : 'REAUTH',
      is_attended: true,
      status: 'IN_PROGRESS',
      step: 'DISCOVERING',
      server_id: serverId,
      session_id: null,
      options: JSON.stringify({ record: request?.record_session ?? connection.record_session, browser }),
      handoff_hash: hashOf(code),
      sealed_handoff: await secrets.sealCode(projectId, flowId, code),
      created_at: now,
      updated_at: now,
      expires_at: new Date(now.getTime() + flowMilliseconds),
    })
    if (!begun) throw new BerthError('auth_connection_not_found', { connection: id })
    if (begun.canceled) await runner.stop(begun.canceled)
    void runner.run(flowId)
    return { connection, flow: begun.flow, code }
  }

  /** Accepts an answer. The state of the flow shows the outcome. */
  async submit(projectId: ProjectId, id: string, request: SubmitRequest): Promise<void> {
    const { connections, store, secrets, signals, clock } = this.#options
    modeOf(request)
    const connection = await connections.get(projectId, id)
    const flow = await connections.newestFlow(connection)
    if (flow?.status !== 'IN_PROGRESS') throw new BerthError('no_active_flow')
    const { interaction_id: asked } = request
    if (asked !== undefined && asked !== flow.interaction_id) throw new BerthError('stale_interaction')
    if (!flow.page || flow.interaction_id === null) throw new BerthError('no_active_flow')
    const answer = readAnswer(request, flow.page, flow.known_refs)
    const sealed = await secrets.sealAnswer(projectId, flow.id, answer)
    const provider =
      answer.kind === 'choice' ? flow.page.choices.find(({ ref }) => ref === answer.ref)?.provider : undefined
    const columns = { sealed_answer: sealed, ...(provider !== undefined && { sso_provider: provider }) }
    if (!(await store.answer(flow, columns, clock.now()))) throw new BerthError('stale_interaction')
    signals.notify(connection.id)
  }

  /** Yields the state of the newest flow and each later one until the flow ends. Waits for a flow if there is none. */
  async *follow(
    connection: StoredConnection,
    { publicUrl, signal }: { readonly publicUrl: string; readonly signal: AbortSignal },
  ): AsyncGenerator<ConnectionEvent> {
    const { connections, signals, clock } = this.#options
    let flow: StoredFlow | undefined
    let toldVersion: number | undefined
    let beatAt = performance.now()
    while (!signal.aborted) {
      // Before the poll, so that a change during it counts as a new one.
      const change = signals.next(connection.id, signal)
      const before: StoredFlow | undefined = flow
      flow = before ? await this.#look(before) : await connections.newestFlow(connection)
      if (flow && flow.version !== toldVersion) {
        toldVersion = flow.version
        yield stateEvent(flow, await connections.linksOf(connection.project_id, flow, publicUrl), clock.now())
        if (flow.status !== 'IN_PROGRESS') return
      } else if (performance.now() - beatAt >= heartbeatMilliseconds) {
        beatAt = performance.now()
        yield heartbeat(clock.now())
      }
      if (!flow && !(await connections.exists(connection))) return
      await change
    }
  }

  /** The current state of the flow. A flow that was deleted with its connection counts as canceled. */
  async #look(flow: StoredFlow): Promise<StoredFlow> {
    const { store, connections } = this.#options
    await connections.expire(flow.connection_id)
    const now = await store.find(flow.id)
    return now ?? { ...flow, status: 'CANCELED', step: 'COMPLETED', page: null, version: flow.version + 1 }
  }

  /** A code works once. After too many wrong codes, the flow accepts none. */
  async exchange(id: string, code: string): Promise<{ readonly flowId: AuthFlowId; readonly token: string }> {
    const { connections, store, tokens, clock } = this.#options
    const connection = await connections.getAny(id)
    const flow = await connections.newestFlow(connection)
    const now = clock.now()
    const hash = hashOf(code)
    if (!flow?.handoff_hash?.equals(hash)) {
      if (flow?.status === 'IN_PROGRESS') await store.countHandoffTry(flow.id, maxWrongCodes, now)
      throw new BerthError('handoff_code_invalid')
    }
    if (!(await store.useHandoff(flow.id, hash, now))) throw new BerthError('handoff_code_used')
    const token = await tokens.issue({ connectionId: connection.id, flowId: flow.id }, now)
    return { flowId: flow.id, token }
  }

  /**
   * The caller of a request with a hand-off token, which gives access to the newest flow only. Undefined for other
   * requests.
   */
  async callerOf({ authorization }: IncomingHttpHeaders): Promise<Caller | undefined> {
    const { connections, tokens, clock } = this.#options
    const bearer = readBearer(authorization)
    if (!HandoffTokens.isToken(bearer)) return undefined
    const refuse = () =>
      new BerthError('unauthorized', { reason: 'The login of this token is over. Start another one.' })
    const subject = await tokens.verify(bearer, clock.now())
    if (!subject) throw refuse()
    const connection = await connections.findAny(subject.connectionId)
    const flow = connection && (await connections.newestFlow(connection))
    if (!connection || flow?.id !== subject.flowId) throw refuse()
    return {
      // The caller has no key: the audit log shows the flow instead.
      keyId: subject.flowId as never,
      keyName: '',
      organizationId: connection.organization_id,
      keyProjectId: connection.project_id,
      chosenProjectId: connection.project_id,
      defaultProjectId: connection.project_id,
      projectId: connection.project_id,
      handoffConnectionId: connection.id,
    }
  }
}

function hashOf(code: string): Buffer {
  return createHash('sha256').update(code).digest()
}
