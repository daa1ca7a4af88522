import { newId, type ProjectId, type ReplayId, type SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { maxFramerateWithoutGpu, type ReplayEndReason, type ReplayRequest } from '@berth/contract/replays/replay.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { startRecording } from '../../../agent-link/transfers/recording-link.ts'
import type { RangedContent } from '../../../blobs/part-content.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import { ReplayFile } from './replay-file.ts'
import type { ReplayParts } from './replay-parts.ts'
import type { Replay, ReplayStore } from './replay-store.ts'
import { beginRecording, RunningReplay } from './running-replay.ts'

const maxAtOnce = 4
const maxOfSession = 1_000
const minutesUntilOrphaned = 5
const removedAtOnce = 100
const finishRetry = { firstPauseMilliseconds: 200, longestPauseMilliseconds: 5_000, patienceMilliseconds: 10_000 }

export interface ReplaysConfig {
  readonly retentionDays: number
  /** The limit of one recording. */
  readonly maxBytes: number
  /** The limit of all recordings of a project. */
  readonly maxProjectBytes: number
}

interface ReplayServiceOptions {
  readonly store: ReplayStore
  readonly parts: ReplayParts
  readonly sessions: SessionStore
  readonly machines: SessionMachines
  readonly driverId: string
  readonly config: ReplaysConfig
  readonly clock: Clock
  readonly logger: Logger
}

interface SessionReference {
  readonly projectId: ProjectId
  readonly session: string
}

type Recording = Pick<ReplayRequest, 'framerate' | 'max_duration_in_seconds'>

interface Running {
  readonly recording: Recording
  readonly replay: RunningReplay
}

/** Records the screens of sessions. Data is stored as it arrives, so that it survives any failure. */
export class ReplayService {
  readonly #options: ReplayServiceOptions
  /** Starts and stops of one session run one after another. */
  readonly #queue = new KeyedQueue<SessionId>()
  readonly #running = new Map<ReplayId, Running>()
  /** Recordings whose rows are written or about to be. */
  readonly #known = new Set<ReplayId>()
  /** The updates of rows of recordings that have ended. */
  readonly #finishing = new Map<ReplayId, Promise<void>>()
  /** Sessions between two segments. */
  readonly #changing = new Set<SessionId>()
  readonly #closing = new AbortController()

  constructor(options: ReplayServiceOptions) {
    this.#options = options
  }

  async start({ projectId, session: idOrName }: SessionReference, request: ReplayRequest): Promise<Replay> {
    const session = await this.#options.sessions.find(projectId, idOrName, false)
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    if (request.framerate > maxFramerateWithoutGpu && !session.gpu) {
      const reason = `more than ${maxFramerateWithoutGpu} frames per second need a session with gpu: true.`
      throw new BerthError('field_not_supported', { field: 'framerate', reason })
    }
    return this.#queue.run(session.id, async () => {
      await this.#requireRoom(session)
      return this.#start(session, request)
    })
  }

  async #requireRoom({ id, project_id }: Session): Promise<void> {
    const { store, config } = this.#options
    const refuse = (reason: string) => {
      throw new BerthError('replay_limit_reached', { reason })
    }
    if (this.#runningOf(id).length >= maxAtOnce)
      refuse(`The session already has ${maxAtOnce} running recordings, which is the limit. Stop one.`)
    if ((await store.countOf(id)) >= maxOfSession)
      refuse(`The session has ${maxOfSession} recordings, which is its limit.`)
    if ((await store.sizeOf(project_id)) >= config.maxProjectBytes) {
      refuse('The recordings of this project have reached their size limit. Space becomes free when recordings expire.')
    }
  }

  async #start(
    { id: sessionId, project_id }: Pick<Session, 'id' | 'project_id'>,
    recording: Recording,
  ): Promise<Replay> {
    const { machines, store, parts, driverId, config, clock, logger } = this.#options
    const machine = machines.get(sessionId)
    const id = newId('replay', clock.now())
    const { framerate, max_duration_in_seconds: max_seconds } = recording
    const response = await startRecording(machine, { id, framerate, ...(max_seconds && { max_seconds }) }).catch(failed)
    try {
      const { head, fragments } = await beginRecording(response).catch(failed)
      const started = { id, project_id, session_id: sessionId, driver_id: driverId, head, started_at: clock.now() }
      this.#known.add(id)
      const row = await store.insert(started)
      const maxMilliseconds = max_seconds === undefined ? undefined : max_seconds * 1000
      const { maxBytes } = config
      const replay = new RunningReplay({ replay: row, machine, response, fragments, parts, maxBytes, maxMilliseconds })
      this.#running.set(id, { recording, replay })
      const finished = replay.ended.then(async (reason) => {
        await this.#finish(id, reason)
        logger.info({ sessionId, replayId: id, reason }, 'a recording has ended')
      })
      this.#finishing.set(
        id,
        finished
          .catch((error: unknown) =>
            logger.error({ err: error, replayId: id }, 'could not store the end of a recording'),
          )
          .finally(() => {
            this.#running.delete(id)
            this.#finishing.delete(id)
            this.#known.delete(id)
          }),
      )
      return row
    } catch (error) {
      response.destroy()
      this.#known.delete(id)
      throw error
    }
  }

  async #finish(id: ReplayId, reason: ReplayEndReason): Promise<void> {
    const { store, config, clock } = this.#options
    const end = { reason, finishedAt: clock.now(), retentionDays: config.retentionDays }
    await retry(() => store.finish(id, end), { ...finishRetry, signal: this.#closing.signal })
  }

  /** Oldest first. */
  async list(reference: SessionReference): Promise<readonly Replay[]> {
    return this.#options.store.list((await this.#session(reference)).id)
  }

  /** Stops the recording and resolves when it can be read. Succeeds for one that has ended. */
  async stop(reference: SessionReference, replayId: string): Promise<void> {
    const { id, session_id } = await this.#get(reference, replayId)
    await this.#queue.run(session_id, () => this.#end(id, 'stopped'))
  }

  async #end(id: ReplayId, reason: ReplayEndReason): Promise<void> {
    const finished = this.#finishing.get(id)
    await this.#running.get(id)?.replay.end(reason)
    await finished
  }

  /** Call before the session loses its machine. */
  async endOfSession(sessionId: SessionId): Promise<void> {
    // Nothing is recorded during a change, and a change that hangs ends only with the machine.
    if (this.#changing.has(sessionId)) return
    await this.#queue.run(sessionId, () => this.#endAll(sessionId, 'session_ended'))
  }

  async #endAll(sessionId: SessionId, reason: ReplayEndReason): Promise<void> {
    await Promise.all(this.#runningOf(sessionId).map(({ replay }) => this.#end(replay.replay.id, reason)))
  }

  isRecording(sessionId: SessionId): boolean {
    return this.#runningOf(sessionId).length > 0
  }

  /**
   * Runs a change of the screen size between two segments: each recording is stopped, and a new one with the same
   * settings starts.
   */
  async betweenSegments(sessionId: SessionId, change: () => Promise<void>): Promise<void> {
    await this.#queue.run(sessionId, async () => {
      const interrupted = this.#runningOf(sessionId)
      await this.#endAll(sessionId, 'viewport_changed')
      this.#changing.add(sessionId)
      try {
        await change()
      } finally {
        this.#changing.delete(sessionId)
        await Promise.all(interrupted.map((running) => this.#continue(sessionId, running)))
      }
    })
  }

  /** The next segment gets the remaining time. If it fails to start, the change itself does not fail. */
  async #continue(sessionId: SessionId, { recording, replay: before }: Running): Promise<void> {
    const { max_duration_in_seconds: maxSeconds, framerate } = recording
    const left = maxSeconds === undefined ? undefined : Math.ceil(maxSeconds - before.milliseconds / 1000)
    if (left !== undefined && left < 1) return
    const next = { framerate, ...(left !== undefined && { max_duration_in_seconds: left }) }
    const { project_id } = before.replay
    await this.#start({ id: sessionId, project_id }, next).catch((error: unknown) =>
      this.#options.logger.warn({ err: error, sessionId }, 'could not start the next segment of a recording'),
    )
  }

  async open(reference: SessionReference, replayId: string): Promise<RangedContent | undefined> {
    return this.#open(await this.#get(reference, replayId))
  }

  /** Undefined while it is being recorded. */
  async openById(id: ReplayId): Promise<RangedContent | undefined> {
    return this.#open(await this.getById(id))
  }

  async getById(id: ReplayId): Promise<Replay> {
    const replay = await this.#options.store.findById(id)
    if (!replay) throw new BerthError('replay_not_found', { replay: id })
    return replay
  }

  async #open(replay: Replay): Promise<RangedContent | undefined> {
    const { store, parts } = this.#options
    if (replay.finished_at === null) return undefined
    const file = new ReplayFile(replay.head, await store.listParts(replay.id))
    const { sizeBytes } = file
    return { id: replay.id, sizeBytes, read: (range) => file.read(range, (part) => parts.read(replay, part)) }
  }

  /** Includes ended sessions, by id. */
  async #session({ projectId, session: idOrName }: SessionReference): Promise<Session> {
    const session = await this.#options.sessions.find(projectId, idOrName, true)
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    return session
  }

  async #get(reference: SessionReference, replayId: string): Promise<Replay> {
    const { id } = await this.#session(reference)
    const replay = await this.#options.store.find(id, replayId)
    if (!replay) throw new BerthError('replay_not_found', { replay: replayId })
    return replay
  }

  #runningOf(sessionId: SessionId): readonly Running[] {
    return [...this.#running.values()].filter(({ replay }) => replay.replay.session_id === sessionId)
  }

  /**
   * Completes the recordings that an earlier run of this server left when it was killed, and those whose end could not
   * be written: they consist of what is stored.
   */
  async finishInterrupted(): Promise<void> {
    const { store, driverId } = this.#options
    const unfinished = await store.listUnfinished(driverId)
    await this.#finishAsStored(unfinished.filter((id) => !this.#known.has(id)))
  }

  /** Ends the recordings of a session that moves to another server, which cannot continue them. */
  async endAtMove(sessionId: SessionId): Promise<void> {
    await this.#queue.run(sessionId, () => this.#endAll(sessionId, 'interrupted'))
  }

  /** Completes the recordings that the session's previous server left when it was killed. */
  async finishLeft(sessionId: SessionId): Promise<void> {
    const { store, driverId } = this.#options
    await this.#finishAsStored(await store.listLeft(sessionId, driverId))
  }

  /** Removes expired recordings, and completes those of servers that are gone. */
  async expire(): Promise<void> {
    const { store, parts, clock } = this.#options
    const now = clock.now()
    await this.#finishAsStored(await store.listOrphans(new Date(now.getTime() - minutesUntilOrphaned * 60_000)))
    for (let ids = await store.listExpired(now, removedAtOnce); ids.length > 0; ) {
      for (const id of ids) {
        for (const part of await store.listParts(id)) await parts.remove(part)
        await store.delete(id)
      }
      ids = await store.listExpired(now, removedAtOnce)
    }
  }

  async #finishAsStored(ids: readonly ReplayId[]): Promise<void> {
    const { store, config } = this.#options
    const end = { reason: 'interrupted', retentionDays: config.retentionDays } as const
    await Promise.all(ids.map((id) => store.finish(id, end)))
  }

  /** Used by the sweep of unreferenced blobs. */
  listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    return this.#options.store.listUsedBlobs(names)
  }

  /** Stops the recordings of this server, before it stops. */
  async close(): Promise<void> {
    const ended = [...this.#running.keys()].map((id) => this.#end(id, 'interrupted'))
    await Promise.all(ended)
    this.#closing.abort()
  }
}

function failed(cause: Error): never {
  if (cause instanceof BerthError) throw cause
  // The agent's message is already a complete sentence.
  const reason = cause.message.replace(/^The recording could not be started: /, '').slice(0, 300)
  throw new BerthError('replay_start_failed', { reason }, { cause })
}
