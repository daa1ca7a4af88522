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

/** How often the page is looked at while a person is asked. */
const noticeMilliseconds = 5_000

interface FlowRunnerOptions {
  readonly store: FlowStore
  readonly connections: ConnectionStore
  readonly browsers: AuthBrowsers
  readonly steps: FlowSteps
  readonly completion: FlowCompletion
  readonly signals: FlowSignals
  /** The profile of the connection, which is made where it is missing. */
  readonly profileOf: (connection: StoredConnection) => Promise<ProfileId>
  readonly serverId: string
  readonly clock: Clock
  readonly logger: Logger
}

interface Running {
  readonly controller: AbortController
  readonly done: Promise<void>
}

/** Why a flow is not driven any further: the server stops. What is in progress goes on with its next start. */
class ServerStops extends Error {}
/** The flow has ended, whoever ended it. */
class FlowIsOver extends Error {}

/**
 * Drives the flows of this server. What a flow has reached is in its row, so that a server that is started again goes on
 * where the last one was: it asks the browser, which is still there, what its page is.
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

  /** Drives the flow until it is over. It rejects for nothing. */
  run(id: AuthFlowId): Promise<void> {
    const known = this.#running.get(id)
    if (known) return known.done
    const controller = new AbortController()
    if (this.#isClosing) controller.abort(new ServerStops())
    const done = this.#run(id, controller.signal).finally(() => this.#running.delete(id))
    this.#running.set(id, { controller, done })
    return done
  }

  /** The flow has ended: its browser ends as well. On another server, that one finds out. */
  async stop(flow: StoredFlow): Promise<void> {
    this.#options.signals.notify(flow.connection_id)
    const running = this.#running.get(flow.id)
    running?.controller.abort(new FlowIsOver())
    await running?.done
    // It may not have been driven yet, since its server was started again.
    if (flow.session_id) await this.#options.browsers.end(flow.session_id)
  }

  /** Goes on with what an earlier run of this server has left. */
  async recover(): Promise<void> {
    const { store, browsers, serverId } = this.#options
    const left = await store.listLeftSessions(serverId, authTagName)
    for (const { id } of await store.listInProgress(serverId)) void this.run(id)
    await Promise.all(left.map((id) => browsers.end(id)))
  }

  /** Ends what a server that is gone has left. It is not known what it has typed. */
  async failOrphans(): Promise<void> {
    const { store, serverId } = this.#options
    for (const flow of await store.listOrphans()) {
      if (flow.server_id !== serverId) await this.#fail(flow, interrupted)
    }
  }

  /** Of one that was taken by a job and has been interrupted: the job comes again, and the login does not. */
  async failInterrupted(flow: StoredFlow): Promise<void> {
    await this.#fail(flow, interrupted)
    const connection = await this.#options.connections.findById(flow.connection_id)
    if (connection && flow.session_id) await this.#options.browsers.end(flow.session_id)
  }

  /** The browser of a flow may end without the flow. */
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
        // The message of an agent can quote its page, and so what was typed there.
        logger.warn({ flowId: id, reason: reasonOf(error) }, 'a login has failed')
        await this.#fail(flow, failureOf(error)).catch((cause: unknown) =>
          logger.error({ err: cause, flowId: id }, 'could not note that a login has failed'),
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

  /** A browser with the profile, on the login page; or the browser that an earlier run has left. */
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
  message: 'The server that drove the login has stopped in the middle of it. Begin another one.',
}

function reasonOf(error: unknown): string {
  return error instanceof BerthError ? error.code : (error as Error).name
}

function failureOf(error: unknown): FlowFailure {
  if (error instanceof BrowserIsGone) return { code: 'browser_error', message: 'The browser of the login has ended.' }
  if (!(error instanceof BerthError)) {
    return { code: 'browser_error', message: 'The browser of the login does not do its part.' }
  }
  if (error.code === 'credential_provider_failed') return { code: 'customer_input_required', message: error.message }
  const isOfBrowser = error.status >= 500 || error.status === 429 || error.status === 404
  return { code: isOfBrowser ? 'browser_error' : 'internal_error', message: error.message }
}
