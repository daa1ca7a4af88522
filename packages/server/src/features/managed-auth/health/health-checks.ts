import { type CheckLoginReply, checkLogin } from '@berth/contract/agent/login/login-endpoints.ts'
import {
  type AuthConnectionId,
  type AuthFlowId,
  newId,
  type ProfileId,
  type SessionId,
} from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Transaction } from 'kysely'
import type { Tables } from '../../../database/tables.ts'
import { checkAuthConnection, reauthenticate } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import type { AuthBrowsers } from '../auth-browsers.ts'
import type { ConnectionStore, StoredConnection } from '../connection-store.ts'
import { allowedFor } from '../flows/allowed-domains.ts'
import type { FlowRunner } from '../flows/flow-runner.ts'
import type { FlowSignals } from '../flows/flow-signals.ts'
import { flowMilliseconds } from '../flows/flow-state.ts'
import type { FlowStore } from '../flows/flow-store.ts'
import { reauthOf } from '../reauth.ts'
import type { TimelineStore } from '../timeline-store.ts'
import type { CheckStore } from './check-store.ts'

const checkMilliseconds = 45_000
const takenAtOnce = 20

interface HealthChecksOptions {
  readonly connections: ConnectionStore
  readonly flows: FlowStore
  readonly checks: CheckStore
  readonly timeline: TimelineStore
  readonly browsers: AuthBrowsers
  readonly runner: FlowRunner
  readonly signals: FlowSignals
  readonly profileOf: (connection: StoredConnection) => Promise<ProfileId>
  readonly jobs: JobQueue
  readonly serverId: string
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Checks whether profiles are still logged in, and logs in again those that are not. A check types nothing, so it may
 * be repeated after a crash. A login is not repeated: the job ends its flow if the server that was running it is gone.
 */
export class HealthChecks {
  readonly #options: HealthChecksOptions

  constructor(options: HealthChecksOptions) {
    this.#options = options
  }

  /** Enqueues the checks that are due, and ends expired flows. */
  async tend(): Promise<void> {
    const { connections, flows, runner, jobs, clock } = this.#options
    const now = clock.now()
    for (const connectionId of await connections.takeDue(now, takenAtOnce)) {
      await jobs.enqueue(checkAuthConnection, { connectionId })
    }
    for (const flow of await flows.expire(now)) void runner.stop(flow)
  }

  /** Ends the flows of servers that are gone, and removes old history. */
  async cleanUp(): Promise<void> {
    const { runner, timeline, clock } = this.#options
    await runner.failOrphans()
    await timeline.removeOld(clock.now())
  }

  async check(connectionId: AuthConnectionId, signal: AbortSignal): Promise<void> {
    const { connections, checks, browsers, clock, logger } = this.#options
    const connection = await connections.findById(connectionId)
    if (!connection?.health_checks || connection.authenticated_at === null) return
    for (const session of await checks.removeUnfinished(connectionId)) await browsers.end(session)
    const now = clock.now()
    const check = { id: newId('auth-check', now), connection_id: connectionId, created_at: now }
    await checks.insert({ ...check, previous_status: connection.status })
    let sessionId: SessionId | undefined
    try {
      const profileId = await this.#options.profileOf(connection)
      const { project_id: projectId, browser } = connection
      const session = await browsers.start({ projectId, profileId, browser, purpose: check.id }, signal)
      sessionId = session.id
      await checks.note(check.id, { session_id: sessionId, telemetry_captured: session.telemetry !== null })
      if (connection.record_session) {
        await checks.note(check.id, { replay_id: (await browsers.record(projectId, sessionId)) ?? null })
      }
      const found = await browsers.ask(sessionId, checkLogin, questionOf(connection), signal)
      await this.#apply(check, connection, found)
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ connectionId, reason: (error as Error).message.slice(0, 200) }, 'a login could not be checked')
      const message =
        error instanceof BerthError ? error.message : 'The browser of the check does not respond as expected.'
      await checks.note(check.id, {
        status: connection.status,
        error_code: 'browser_error',
        error_message: message,
        ended_at: clock.now(),
      })
    } finally {
      if (sessionId) await browsers.end(sessionId)
    }
  }

  async #apply(
    check: {
      readonly id: ReturnType<typeof newId<'auth-check'>>
      readonly connection_id: AuthConnectionId
      readonly created_at: Date
    },
    connection: StoredConnection,
    { logged_in, problem }: CheckLoginReply,
  ): Promise<void> {
    const { checks, clock } = this.#options
    const now = clock.now()
    if (logged_in === 'unknown') {
      const message = 'The site does not tell whether the profile is logged in.'
      const error = { code: knownProblems.includes(problem ?? '') ? (problem ?? '') : 'website_error', message }
      await checks.apply(check, { status: undefined, error }, { now, also: async () => {} })
      return
    }
    const status = logged_in === 'yes' ? 'AUTHENTICATED' : 'NEEDS_AUTH'
    const mayLogIn = logged_in === 'no' && connection.auto_reauth && reauthOf(connection).isPossible
    let flowId: AuthFlowId | undefined
    await checks.apply(
      check,
      { status },
      {
        now,
        also: async (transaction) => {
          if (mayLogIn) flowId = await this.#beginReauth(connection, now, transaction)
        },
      },
    )
    if (flowId) this.#options.signals.notify(connection.id)
  }

  /** In the transaction that stores the result of the check. A flow in progress does the same already. */
  async #beginReauth(
    { id, record_session: record, browser }: StoredConnection,
    now: Date,
    transaction: Transaction<Tables>,
  ): Promise<AuthFlowId | undefined> {
    const { flows, jobs } = this.#options
    const flow = await flows.beginUnlessBusy(
      {
        id: newId('auth-flow', now),
        connection_id: id,
        flow_type: 'REAUTH',
        is_attended: false,
        status: 'IN_PROGRESS',
        step: 'DISCOVERING',
        server_id: null,
        session_id: null,
        options: JSON.stringify({ record, browser }),
        handoff_hash: null,
        sealed_handoff: null,
        created_at: now,
        updated_at: now,
        expires_at: new Date(now.getTime() + flowMilliseconds),
      },
      transaction,
    )
    if (flow) await jobs.enqueue(reauthenticate, { flowId: flow.id }, { transaction })
    return flow?.id
  }

  /** Runs a flow to its end, once: a repeated job finds it claimed. */
  async reauthenticate(flowId: AuthFlowId, signal: AbortSignal): Promise<void> {
    const { flows, runner, serverId } = this.#options
    const taken = await flows.take(flowId, serverId)
    const flow = taken ?? (await flows.find(flowId))
    if (flow?.status !== 'IN_PROGRESS') return
    if (flow.server_id !== serverId) {
      await runner.failInterrupted(flow)
      return
    }
    // The next start of this server resumes the flow, whatever happens to the job.
    await Promise.race([runner.run(flowId), rejectedBy(signal)])
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

const knownProblems: readonly string[] = ['network_error', 'bot_detected', 'captcha_blocked', 'rate_limited']

function questionOf(connection: StoredConnection) {
  const { domain, evidence } = connection
  return {
    domain,
    ...(evidence && { evidence }),
    allowed_domains: allowedFor(connection, []),
    timeout_ms: checkMilliseconds,
  }
}
