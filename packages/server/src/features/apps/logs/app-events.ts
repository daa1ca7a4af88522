import type { DeploymentEvent, InvocationEvent } from '@berth/contract/apps/app.ts'
import { type Since, timeOf } from '@berth/contract/apps/since.ts'
import type { DeploymentId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { appSummary, deploymentRecord, invocationRecord } from '../app-records.ts'
import type { DeploymentStore, StoredDeployment } from '../deployments/deployment-store.ts'
import type { InvocationStore, StoredInvocation } from '../invocations/invocation-store.ts'
import type { AppLogStore, LogOwner } from './app-log-store.ts'
import type { AppLogs } from './app-logs.ts'

/** How often to poll for changes that happen on other servers. */
const pollMilliseconds = 1_000
/** Clients abandon a silent stream, and some of them ignore comments. */
const heartbeatMilliseconds = 10_000

interface AppEventsOptions {
  readonly deployments: DeploymentStore
  readonly invocations: InvocationStore
  readonly logStore: AppLogStore
  readonly logs: AppLogs
  readonly clock: Clock
}

interface Following {
  readonly since: Since | undefined
  readonly signal: AbortSignal
}

/** Events of deployments and invocations, for callers that follow them. */
export class AppEvents {
  readonly #options: AppEventsOptions

  constructor(options: AppEventsOptions) {
    this.#options = options
  }

  /**
   * Yields its state, its log, and each later state. Clients stop reading at `running`, so its apps are sent before.
   */
  async *ofDeployment(first: StoredDeployment, following: Following): AsyncGenerator<DeploymentEvent> {
    const { deployments } = this.#options
    const isOver = ({ status }: StoredDeployment) => status === 'failed' || status === 'stopped'
    const lines = this.#lines({ deploymentId: first.id }, following)
    let sent: StoredDeployment['status'] | undefined
    for await (const current of this.#looks(first.id, () => deployments.get(first.id), following.signal)) {
      if (current === 'heartbeat') {
        yield { event: 'sse_heartbeat', timestamp: this.#now() }
        continue
      }
      const isNew = current.status !== sent
      if (isNew && sent === undefined && !isOver(current)) yield* this.#deploymentState(current)
      yield* lines()
      // Clients stop reading there. Later readers find the reason in the state.
      if (isNew && sent !== undefined && current.status === 'failed') yield this.#failure(current)
      if (isNew && (sent !== undefined || isOver(current))) yield* this.#deploymentState(current)
      sent = current.status
      if (isOver(current)) return
    }
  }

  #failure({ status_reason: reason }: StoredDeployment): DeploymentEvent {
    const error = { code: 'deployment_failed', message: reason ?? 'The deployment has failed.' }
    return { event: 'error', error, timestamp: this.#now() }
  }

  async *#deploymentState(deployment: StoredDeployment): AsyncGenerator<DeploymentEvent> {
    if (deployment.status === 'running') {
      for (const version of await this.#options.deployments.listVersions(deployment.id)) {
        yield { event: 'app_version_summary', ...appSummary(version), timestamp: this.#now() }
      }
    }
    yield { event: 'deployment_state', deployment: deploymentRecord(deployment), timestamp: this.#now() }
  }

  /** Like `ofDeployment`, for an invocation. */
  async *ofInvocation(first: StoredInvocation, following: Following): AsyncGenerator<InvocationEvent> {
    const { invocations } = this.#options
    const isOver = ({ finished_at }: StoredInvocation) => finished_at !== null
    const look = async () => (await invocations.find(first.project_id, first.id)) ?? first
    const state = (invocation: StoredInvocation): InvocationEvent => ({
      event: 'invocation_state',
      invocation: invocationRecord(invocation),
      timestamp: this.#now(),
    })
    const lines = this.#lines({ invocationId: first.id }, following)
    let sent: StoredInvocation['status'] | undefined
    for await (const current of this.#looks(first.deployment_id, look, following.signal)) {
      if (current === 'heartbeat') {
        yield { event: 'sse_heartbeat', timestamp: this.#now() }
        continue
      }
      const isNew = current.status !== sent
      if (isNew && !isOver(current)) yield state(current)
      yield* lines()
      if (isNew && isOver(current)) yield state(current)
      sent = current.status
      if (isOver(current)) return
    }
  }

  /** Polls when something changes and at intervals. Reads the state first, so that no earlier line is missed. */
  async *#looks<Row>(
    id: DeploymentId,
    look: () => Promise<Row>,
    signal: AbortSignal,
  ): AsyncGenerator<Row | 'heartbeat'> {
    const { logs } = this.#options
    let beatAt = performance.now()
    while (!signal.aborted) {
      const wait = new AbortController()
      const timer = setTimeout(() => wait.abort(), pollMilliseconds)
      // Before the poll, so that a change during it counts as a new one.
      const change = logs.next(id, AbortSignal.any([signal, wait.signal]))
      try {
        yield await look()
        if (performance.now() - beatAt >= heartbeatMilliseconds) {
          beatAt = performance.now()
          yield 'heartbeat'
        }
        await change
      } finally {
        clearTimeout(timer)
        wait.abort()
      }
    }
  }

  #lines(owner: LogOwner, { since, signal }: Following) {
    const { logStore, clock } = this.#options
    const from = since && timeOf(since, clock.now())
    let last = 0
    return async function* (): AsyncGenerator<{ event: 'log'; message: string; timestamp: string }> {
      while (!signal.aborted) {
        const lines = await logStore.read(owner, last, from)
        if (lines.length === 0) return
        for (const { id, message, created_at } of lines) {
          last = id
          yield { event: 'log', message, timestamp: created_at.toISOString() }
        }
      }
    }
  }

  #now(): string {
    return this.#options.clock.now().toISOString()
  }
}
