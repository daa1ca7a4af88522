import { setTimeout as delay } from 'node:timers/promises'
import type { DeploymentId, InvocationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import type { DeploymentStore } from '../deployments/deployment-store.ts'
import type { AppLogs } from '../logs/app-logs.ts'
import { isLackOfRoom, waitsForRoom } from '../machines/app-machine.ts'
import { AppFailure } from '../machines/app-process.ts'
import type { WarmMachines } from '../machines/warm-machines.ts'
import type { InvocationSessions } from './invocation-sessions.ts'
import type { InvocationEnd, InvocationStore, StoredInvocation } from './invocation-store.ts'

const pollMilliseconds = 2_000
/** After this time, the server of an invocation counts as lost. */
const graceMilliseconds = 60_000
const interrupted = 'The server that ran it has stopped.'

const firstPauseMilliseconds = 500
const longestPauseMilliseconds = 5_000

/** Where an invocation may wait for room. One that was handed over waits on its new server first. */
type RoomWait = 'anywhere' | 'here'

/** Finds other servers with room, and lost ones. */
export interface OtherServers {
  findRoom(except: string): Promise<string | undefined>
  listLost(witness: string): Promise<readonly string[]>
}

interface InvocationRunnerOptions {
  readonly store: InvocationStore
  readonly deployments: DeploymentStore
  readonly machines: WarmMachines
  readonly logs: AppLogs
  readonly sessions: InvocationSessions
  readonly servers: OtherServers
  readonly jobs: JobQueue
  readonly serverId: string
  readonly clock: Clock
  readonly logger: Logger
}

/** Another caller or server has ended it. */
class EndedElsewhere extends Error {}

/**
 * Runs the invocations of this server. An invocation never runs twice: one that a server leaves unfinished has failed.
 */
export class InvocationRunner {
  readonly #options: InvocationRunnerOptions
  readonly #running = new Map<InvocationId, AbortController>()

  constructor(options: InvocationRunnerOptions) {
    this.#options = options
  }

  /**
   * Resolves when the invocation has ended, whatever the result, or continues on another server. If there is no room
   * for it and it does not wait, returns the error and does not end it. Never rejects.
   */
  start(invocation: StoredInvocation, waits: 'not' | RoomWait): Promise<BerthError | undefined> {
    const { id, deadline } = invocation
    const { clock, logger } = this.#options
    const ending = new AbortController()
    this.#running.set(id, ending)
    const left = Math.max(0, deadline.getTime() - clock.now().getTime())
    const seconds = Math.round((deadline.getTime() - invocation.created_at.getTime()) / 1000)
    const timer = setTimeout(() => ending.abort(new AppFailure(`It did not end within ${seconds} s.`)), left)
    const watch = setInterval(() => void this.#look(id, ending), pollMilliseconds)
    return this.#run(invocation, waits, ending.signal)
      .catch((error: unknown) => {
        logger.error({ err: error, invocationId: id }, 'an invocation could not be ended')
        return undefined
      })
      .finally(() => {
        clearTimeout(timer)
        clearInterval(watch)
        this.#running.delete(id)
      })
  }

  /** It may have been ended on another server. */
  async #look(id: InvocationId, ending: AbortController): Promise<void> {
    if (!(await this.#options.store.isUnfinished(id).catch(() => true))) ending.abort(new EndedElsewhere())
  }

  /** Takes over an invocation that its server has no room for. */
  async take(id: InvocationId): Promise<void> {
    const { store, serverId } = this.#options
    const invocation = await store.findQueued(id, serverId)
    if (invocation && !this.#running.has(id)) void this.start(invocation, 'here')
  }

  async #run(
    { id, deployment_id: deploymentId }: StoredInvocation,
    waits: 'not' | RoomWait,
    signal: AbortSignal,
  ): Promise<BerthError | undefined> {
    const { logs } = this.#options
    const onLine = logs.writer(deploymentId, id)
    for (let attempt = 0; ; attempt += 1) {
      // Its state is `queued` until there is room.
      const isStillFull = attempt > 0 ? await this.#startMachine(deploymentId, signal) : undefined
      const lackOfRoom = isStillFull ?? (await this.#runOnce(id, onLine, signal))
      if (!lackOfRoom || waits === 'not') return lackOfRoom
      if (attempt === 0 && waits === 'anywhere') onLine(waitsForRoom)
      // A handed-over invocation stays here at first, because reports about room are some seconds old.
      const isHere = await this.#requeue(id, deploymentId, attempt > 0 || waits === 'anywhere')
      if (!isHere) return undefined
      const pause = Math.min(firstPauseMilliseconds * 2 ** attempt, longestPauseMilliseconds)
      await delay(pause, undefined, { signal }).catch(() => {})
      if (!signal.aborted) continue
      const isOver = !(signal.reason instanceof EndedElsewhere)
      if (isOver) await this.end(id, { status: 'failed', reason: lackOfRoom.message })
      return undefined
    }
  }

  /** Returns an error if there is no room. Other failures end the invocation. */
  async #startMachine(id: DeploymentId, signal: AbortSignal): Promise<BerthError | undefined> {
    return this.#options.machines.start(id, signal).then(
      () => undefined,
      (error: unknown) => (isLackOfRoom(error) ? error : undefined),
    )
  }

  /** Runs and ends it, unless there is no room for its machine. */
  async #runOnce(
    invocationId: InvocationId,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<BerthError | undefined> {
    const { store, serverId, machines, logs } = this.#options
    const invocation = await store.begin(invocationId, serverId)
    if (!invocation) return undefined
    const { id, deployment_id: deploymentId, app_name: app, action_name: action, payload } = invocation
    logs.notify(deploymentId)
    const call = { invocationId: id, app, action, payload: payload ?? undefined }
    let end: InvocationEnd
    try {
      end = { status: 'succeeded', output: await machines.run(deploymentId, call, onLine, signal) }
    } catch (error) {
      if (error instanceof EndedElsewhere) return undefined
      if (isLackOfRoom(error)) return error
      end = { status: 'failed', reason: this.#reasonOf(error, id) }
    }
    await logs.flush()
    await this.end(id, end)
    return undefined
  }

  /** Makes it wait, on another server if one has room. Returns whether it waits here. */
  async #requeue(id: InvocationId, deploymentId: DeploymentId, mayLeave: boolean): Promise<boolean> {
    const { store, servers, jobs, serverId, logs } = this.#options
    const other = mayLeave ? await servers.findRoom(serverId) : undefined
    const waits = await store.requeue(id, serverId, other, jobs)
    await logs.flush()
    logs.notify(deploymentId)
    return waits && other === undefined
  }

  /** Ends an invocation, and its code if it is still running. Undefined if it had already ended. */
  async end(id: InvocationId, end: InvocationEnd): Promise<StoredInvocation | undefined> {
    const { store, clock } = this.#options
    const ended = await store.finish(id, end, clock.now())
    this.#running.get(id)?.abort(new EndedElsewhere())
    if (ended) await this.#follow(ended)
    return ended
  }

  /** Cleans up after an invocation. The sessions of a successful one stay with its owner. */
  async #follow({ id, project_id, deployment_id, status }: StoredInvocation): Promise<void> {
    const { sessions, logs } = this.#options
    logs.notify(deployment_id)
    if (status === 'failed') await sessions.end(project_id, id)
    await this.#release(deployment_id)
  }

  async #release(id: DeploymentId): Promise<void> {
    const { deployments, clock } = this.#options
    const { status } = await deployments.get(id)
    if (status !== 'running') await deployments.releaseKeys(clock.now())
  }

  /** After a start: ends what the earlier process of this server was running. */
  async recover(): Promise<void> {
    const { store, serverId, clock } = this.#options
    for (const lost of await store.failLost({ serverIds: [serverId] }, interrupted, clock.now()))
      await this.#follow(lost)
  }

  /** Ends the invocations of servers that are gone, whether or not they return. */
  async failOverdue(): Promise<void> {
    const { store, deployments, servers, serverId, clock } = this.#options
    const serverIds = await servers.listLost(serverId)
    for (const lost of await store.failLost({ serverIds }, interrupted, clock.now())) await this.#follow(lost)
    const overdueSince = new Date(clock.now().getTime() - graceMilliseconds)
    for (const lost of await store.failLost({ overdueSince }, interrupted, clock.now())) await this.#follow(lost)
    await deployments.releaseKeys(clock.now())
  }

  /** Ends the invocations that run here, before the server stops. */
  async close(): Promise<void> {
    await this.recover()
    for (const ending of this.#running.values()) ending.abort(new EndedElsewhere())
    await this.#options.logs.flush()
  }

  /** The reason in terms that its caller may see. */
  #reasonOf(error: unknown, invocationId: InvocationId): string {
    if (error instanceof AppFailure || error instanceof BerthError) return error.message
    this.#options.logger.error({ err: error, invocationId }, 'an invocation could not be run')
    return 'It could not be run because of a problem of this service.'
  }
}
