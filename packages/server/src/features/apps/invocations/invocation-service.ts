import { defaultVersion, type InvocationRequest, syncTimeoutSeconds } from '@berth/contract/apps/app.ts'
import { type Since, timeOf } from '@berth/contract/apps/since.ts'
import { type InvocationId, newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { LimitService } from '../../limits/limit-service.ts'
import type { Session } from '../../sessions/session-service.ts'
import type { DeploymentStore } from '../deployments/deployment-store.ts'
import type { InvocationRunner } from './invocation-runner.ts'
import type { InvocationSessions } from './invocation-sessions.ts'
import type { InvocationEnd, InvocationFilter, InvocationStore, StoredInvocation } from './invocation-store.ts'

const asyncTimeoutSeconds = 900
const retentionDays = 30
const cancelReason = 'It was cancelled.'

type InvocationQuery = Omit<InvocationFilter, 'since'> & { readonly since: Since | undefined }

interface InvocationServiceOptions {
  readonly store: InvocationStore
  readonly deployments: DeploymentStore
  readonly runner: InvocationRunner
  readonly limits: LimitService
  readonly sessions: InvocationSessions
  readonly serverId: string
  readonly clock: Clock
}

/** The invocations of a project's apps. */
export class InvocationService {
  readonly #options: InvocationServiceOptions

  constructor(options: InvocationServiceOptions) {
    this.#options = options
  }

  /**
   * Responds immediately for an asynchronous invocation. A synchronous one continues when its caller disconnects,
   * because clients repeat the request.
   */
  async create(projectId: ProjectId, request: InvocationRequest): Promise<StoredInvocation> {
    const { store, runner, limits, serverId, clock } = this.#options
    const { app_name: appName, action_name: actionName, payload } = request
    const app = await this.#findAction(projectId, request)
    const now = clock.now()
    const seconds = request.async ? (request.async_timeout_seconds ?? asyncTimeoutSeconds) : syncTimeoutSeconds
    const row = {
      id: newId('invocation', now),
      project_id: projectId,
      deployment_id: app.deployment_id,
      app_name: appName,
      version: app.version,
      action_name: actionName,
      status: 'queued' as const,
      status_reason: null,
      payload: payload || null,
      output: null,
      server_id: serverId,
      created_at: now,
      deadline: new Date(now.getTime() + seconds * 1000),
      finished_at: null,
    }
    const invocation = await limits.takeInvocationSlot(projectId, appName, (database) => store.insert(row, database))
    const ended = runner.start(invocation, request.async ? 'anywhere' : 'not')
    if (request.async) return invocation
    const lackOfRoom = await ended
    // Removed unless its caller has ended it: another server may create it instead, and its slot becomes free.
    if (lackOfRoom && (await store.removeUnfinished(invocation.id))) throw lackOfRoom
    return this.get(projectId, invocation.id)
  }

  async #findAction(projectId: ProjectId, request: InvocationRequest) {
    const { app_name: appName, action_name: actionName, version } = request
    const app = await this.#options.deployments.findApp(projectId, appName, version)
    if (!app) {
      const which = version === defaultVersion ? '' : ` with the version ${version}`
      throw new BerthError('action_not_found', { reason: `There is no app ${appName}${which}.` })
    }
    if (app.actions.includes(actionName)) return app
    throw new BerthError('action_not_found', { reason: `The app ${appName} has no action ${actionName}.` })
  }

  async get(projectId: ProjectId, id: string): Promise<StoredInvocation> {
    const invocation = await this.#options.store.find(projectId, id)
    if (!invocation) throw new BerthError('invocation_not_found', { invocation: id })
    return invocation
  }

  /** Accepts only the whole id: which resources belong to an invocation must not depend on other invocations. */
  async getWhole(projectId: ProjectId, id: string): Promise<StoredInvocation> {
    const invocation = await this.get(projectId, id)
    if (invocation.id !== id) throw new BerthError('invocation_not_found', { invocation: id })
    return invocation
  }

  list({ since, ...filter }: InvocationQuery, page: PageRequest): Promise<Page<StoredInvocation>> {
    const { store, clock } = this.#options
    return store.list({ ...filter, since: since && timeOf(since, clock.now()) }, page)
  }

  /** If a caller and the code both end it, the first end counts. */
  async update(projectId: ProjectId, id: string, { status, output }: InvocationEnd): Promise<StoredInvocation> {
    const found = await this.get(projectId, id)
    const reason = status === 'failed' ? cancelReason : undefined
    const ended = await this.#options.runner.end(found.id, { status, output: output || undefined, reason })
    if (ended) return ended
    const { status: current } = await this.get(projectId, found.id)
    throw new BerthError('invocation_finished', { invocation: found.id, status: current })
  }

  async listSessions(projectId: ProjectId, id: string): Promise<readonly Session[]> {
    const invocation = await this.get(projectId, id)
    return this.#options.sessions.list(projectId, invocation.id)
  }

  async deleteSessions(projectId: ProjectId, id: string): Promise<void> {
    const invocation = await this.get(projectId, id)
    await this.#options.sessions.end(projectId, invocation.id)
  }

  /** The invocation that a create of a session names, if it is running. */
  async findRunning(projectId: ProjectId, id: string): Promise<InvocationId | undefined> {
    const found = await this.#options.store.find(projectId, id)
    return found?.id === id && found.finished_at === null ? found.id : undefined
  }

  /** Ends a new session whose invocation failed while the session was starting. */
  async admit(session: Session): Promise<void> {
    if (session.invocation_id === null) return
    const invocation = await this.#options.store.find(session.project_id, session.invocation_id)
    if (invocation?.id !== session.invocation_id || invocation.status !== 'failed') return
    await this.#options.sessions.end(session.project_id, invocation.id)
    throw new BerthError('invocation_finished', { invocation: invocation.id, status: invocation.status })
  }

  async removeOld(): Promise<void> {
    const { store, clock } = this.#options
    await store.removeOld(new Date(clock.now().getTime() - retentionDays * 24 * 3_600_000))
  }
}
