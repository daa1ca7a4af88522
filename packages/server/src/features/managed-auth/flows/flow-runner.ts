import type { AuthFlowId, ProfileId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type AuthBrowsers, authTagName } from '../auth-browsers.ts'
import type { ConnectionStore, StoredConnection } from '../connection-store.ts'
import type { FlowCompletion } from './flow-completion.ts'
import { FlowDrive } from './flow-drive.ts'
import type { FlowSignals } from './flow-signals.ts'
import type { FlowFailure } from './flow-state.ts'
import type { FlowSteps, Step } from './flow-steps.ts'
import type { FlowStore, StoredFlow } from './flow-store.ts'

/** How often the page is observed while a person is asked. */
const noticeMilliseconds = 5_000

interface FlowRunnerOptions {
  readonly store: FlowStore
  readonly connections: ConnectionStore
  readonly browsers: AuthBrowsers
  readonly steps: FlowSteps
  readonly completion: FlowCompletion
  readonly signals: FlowSignals
  /** The profile of the connection, created if it is missing. */
  readonly profileOf: (connection: StoredConnection) => Promise<ProfileId>
  readonly serverId: string
  readonly clock: Clock
  readonly logger: Logger
}

interface Running {
  readonly controller: AbortController
  readonly done: Promise<void>
}

/** The server stops. It resumes the flow after its next start. */
class ServerStops extends Error {}
/** The flow has ended, for any reason. */
class FlowIsOver extends Error {}

/**
 * Runs the flows of this server. The progress of a flow is stored in its row, so a restarted server resumes it: it
 * observes the page of the browser, which is still running.
 */
export class FlowRunner {
  readonly #options: FlowRunnerOptions
  readonly #running = new Map<AuthFlowId, Running>()
  /** The browsers of running flows. */
  readonly #sessions = new Map<AuthFlowId, SessionId>()
  #isClosing = false

  constructor(options: FlowRunnerOptions) {
    this.#options = options
  }

  /** Runs the flow until it ends. Never rejects. */
  run(id: AuthFlowId): Promise<void> {
    const known = this.#running.get(id)
    if (known) return known.done
    const controller = new AbortController()
    if (this.#isClosing) controller.abort(new ServerStops())
    const done = this.#run(id, controller.signal).finally(() => this.#running.delete(id))
    this.#running.set(id, { controller, done })
    return done
  }

  /** Ends the browser of a flow that has ended. If another server has it, that server notices. */
  async stop(flow: StoredFlow): Promise<void> {
    this.#options.signals.notify(flow.connection_id)
    const running = this.#running.get(flow.id)
    running?.controller.abort(new FlowIsOver())
    await running?.done
    // It may not be running yet, because its server was restarted.
    if (flow.session_id) await this.#options.browsers.end(flow.session_id)
  }

  /** Resumes the flows of an earlier process of this server. */
  async recover(): Promise<void> {
    const { store, browsers, serverId } = this.#options
    const left = await store.listLeftSessions(serverId, authTagName)
    for (const { id } of await store.listInProgress(serverId)) void this.run(id)
    await Promise.all(left.map((id) => browsers.end(id)))
  }

  /** Ends the flows of servers that are gone. It is unknown what these have typed. */
  async failOrphans(): Promise<void> {
    const { store, serverId } = this.#options
    for (const flow of await store.listOrphans()) {
      if (flow.server_id !== serverId) await this.#fail(flow, interrupted)
    }
  }

  /** Ends an interrupted flow that a job had started: the job is repeated, the login is not. */
  async failInterrupted(flow: StoredFlow): Promise<void> {
    await this.#fail(flow, interrupted)
    const connection = await this.#options.connections.findById(flow.connection_id)
    if (connection && flow.session_id) await this.#options.browsers.end(flow.session_id)
  }

  /** The browser of a flow may end before the flow. */
  noteSessionEnded(sessionId: SessionId): void {
    for (const [id, known] of this.#sessions) {
      if (known === sessionId) this.#running.get(id)?.controller.abort(new BrowserIsGone())
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true
    for (const { controller } of this.#running.values()) controller.abort(new ServerStops())
    await Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  async #run(id: AuthFlowId, signal: AbortSignal): Promise<void> {
    const { store, logger } = this.#options
    try {
      await this.#drive(id, signal)
    } catch (error) {
      if (signal.reason instanceof ServerStops) return
      const flow = await store.find(id).catch(() => undefined)
      if (flow?.status === 'IN_PROGRESS') {
        // The message of an agent can quote its page, and with it what was typed there.
        logger.warn({ flowId: id, reason: reasonOf(error) }, 'a login has failed')
        await this.#fail(flow, failureOf(error)).catch((cause: unknown) =>
          logger.error({ err: cause, flowId: id }, 'could not store the failure of a login'),
        )
      }
    }
    if (!(signal.reason instanceof ServerStops)) await this.#endBrowser(id)
  }

  async #endBrowser(id: AuthFlowId): Promise<void> {
    const sessionId = this.#sessions.get(id)
    this.#sessions.delete(id)
    if (sessionId) await this.#options.browsers.end(sessionId)
  }

  async #drive(id: AuthFlowId, signal: AbortSignal): Promise<void> {
    const { store, steps } = this.#options
    let drive: FlowDrive | undefined
    for (;;) {
      signal.throwIfAborted()
      const flow = await store.find(id)
      if (flow?.status !== 'IN_PROGRESS') return
      const connection = await this.#options.connections.findById(flow.connection_id)
      if (!connection) return
      if (flow.session_id) this.#sessions.set(id, flow.session_id)
      if (flow.evidence) {
        await this.#options.completion.complete(flow, connection, await this.#options.profileOf(connection))
        return
      }
      if (await this.#expire(flow)) continue
      if (!drive) {
        drive = await this.#begin(flow, connection, signal)
        continue
      }
      const step = { flow, connection, drive, signal }
      if (flow.step === 'AWAITING_INPUT') await this.#awaitInput(step)
      else if (flow.step === 'AWAITING_EXTERNAL_ACTION') await this.#awaitAction(step)
      else if (flow.sealed_answer) await steps.useAnswer(step)
      else await steps.proceed(step)
    }
  }

  async #awaitAction(step: Step): Promise<void> {
    const { signals, steps } = this.#options
    if (!(await steps.watch(step))) await signals.next(step.flow.connection_id, step.signal)
  }

  async #awaitInput(step: Step): Promise<void> {
    const { signals, steps } = this.#options
    await signals.next(step.flow.connection_id, step.signal)
    if (performance.now() < step.drive.noticeAt) return
    step.drive.noticeAt = performance.now() + noticeMilliseconds
    await steps.notice(step)
  }

  async #expire({ connection_id, expires_at, waits_until }: StoredFlow): Promise<boolean> {
    const { store, clock, signals } = this.#options
    const now = clock.now()
    if (now < expires_at && (waits_until === null || now < waits_until)) return false
    await store.expire(now, [connection_id])
    signals.notify(connection_id)
    return true
  }

  /** Starts a browser with the profile on the login page, or finds the browser of an earlier run. */
  async #begin(flow: StoredFlow, connection: StoredConnection, signal: AbortSignal): Promise<FlowDrive | undefined> {
    const { browsers, store, signals } = this.#options
    const { project_id: projectId } = connection
    if (flow.session_id) {
      const session = await browsers.find(projectId, flow.session_id)
      if (!session) throw new BrowserIsGone()
      return new FlowDrive({ browsers, connection, sessionId: session.id, signal })
    }
    const profileId = await this.#options.profileOf(connection)
    const { browser, record } = flow.options
    const session = await browsers.start({ projectId, profileId, browser, purpose: flow.id }, signal)
    this.#sessions.set(flow.id, session.id)
    if (!(await store.noteSession(flow.id, session.id, session.telemetry !== null))) return undefined
    signals.notify(flow.connection_id)
    if (record) await this.#record(flow, projectId)
    const drive = new FlowDrive({ browsers, connection, sessionId: session.id, signal })
    await drive.open(flow)
    return drive
  }

  async #record({ id }: StoredFlow, projectId: ProjectId): Promise<void> {
    const { browsers, store } = this.#options
    const sessionId = this.#sessions.get(id)
    const replayId = sessionId && (await browsers.record(projectId, sessionId))
    if (replayId) await store.noteReplay(id, replayId)
  }

  async #fail({ id, connection_id }: StoredFlow, { code, message }: FlowFailure): Promise<void> {
    const { store, clock, signals } = this.#options
    const failure = { status: 'FAILED' as const, error_code: code, error_message: message }
    await store.end(id, failure, { now: clock.now() })
    signals.notify(connection_id)
  }
}

class BrowserIsGone extends Error {}

const interrupted: FlowFailure = {
  code: 'internal_error',
  message: 'The server stopped during the login. Start another one.',
}

function reasonOf(error: unknown): string {
  return error instanceof BerthError ? error.code : (error as Error).name
}

function failureOf(error: unknown): FlowFailure {
  if (error instanceof BrowserIsGone) return { code: 'browser_error', message: 'The browser of the login has exited.' }
  if (!(error instanceof BerthError)) {
    return { code: 'browser_error', message: 'The browser of the login does not respond as expected.' }
  }
  if (error.code === 'credential_provider_failed') return { code: 'customer_input_required', message: error.message }
  const isOfBrowser = error.status >= 500 || error.status === 429 || error.status === 404
  return { code: isOfBrowser ? 'browser_error' : 'internal_error', message: error.message }
}
