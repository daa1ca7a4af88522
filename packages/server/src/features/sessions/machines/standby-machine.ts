import type { Duplex } from 'node:stream'
import { readAgentState } from '../../../agent-link/agent-client.ts'
import type { Driver, EgressSocket, Machine, ReachableMachine } from '../../../drivers/driver.ts'

interface StandbyMachineOptions {
  readonly machine: Machine
  readonly driver: Pick<Driver, 'freeze' | 'thaw' | 'reclaimMemory'>
  /** The time without use after which it is frozen. When absent, it is never frozen. */
  readonly afterMilliseconds: number | undefined
  /** Whether an earlier server froze it. */
  readonly isFrozen: boolean
  /** Checked before a freeze: false while its session is being created or adopted. */
  readonly mayStandBy: () => boolean
  readonly onChange: (isFrozen: boolean) => void
  readonly onMemoryReturned: (bytes: number) => void
  readonly onFailure: (error: Error) => void
}

/** The delay before memory is reclaimed, so that a session that is used again soon keeps it. */
const memoryMilliseconds = 60_000

/**
 * The machine of a session, frozen while nobody uses it:
 *
 * awake → freezing   it has been unused for long enough, and its agent confirms it
 * freezing → frozen  nothing in it runs any more
 * frozen → awake     somebody requests a connection, which waits until the machine runs
 *
 * This class opens every connection to the agent, and an open connection counts as use. Exceptions are the connections
 * with which the server follows the agent, and those of `passive`. The agent reports activity without a connection, such as
 * a process that a caller has started.
 */
export class StandbyMachine implements Machine {
  readonly id: Machine['id']
  readonly egressSocket: EgressSocket
  readonly ended: Promise<void>
  /** Resolves when the machine runs for the first time since its adoption. */
  readonly awake: Promise<void>
  readonly #options: StandbyMachineOptions
  readonly #begin = Promise.withResolvers<void>()
  #isFrozen: boolean
  /** Never rejects. */
  #freezing: Promise<void> | undefined
  #waking: Promise<void> | undefined
  #isClosed = false
  #uses = 0
  #usedAt = performance.now()
  /** Absent while the agent reports activity, or before its first report. */
  #idleAt: number | undefined
  #timer: NodeJS.Timeout | undefined
  #memoryTimer: NodeJS.Timeout | undefined

  constructor(options: StandbyMachineOptions) {
    const { machine, isFrozen } = options
    this.#options = options
    this.id = machine.id
    this.egressSocket = machine.egressSocket
    this.ended = machine.ended
    this.awake = this.#begin.promise
    this.#isFrozen = isFrozen
    if (isFrozen) this.#reclaimMemoryLater()
    else this.#begin.resolve()
  }

  /**
   * Connections that do not count as use: they neither wake the machine nor keep it awake, and it may be frozen while
   * they are open.
   */
  readonly passive: ReachableMachine = {
    connect: async () => {
      if (this.#isFrozen || this.#freezing) throw new Error('the machine is frozen')
      return this.#options.machine.connect()
    },
  }

  get isFrozen(): boolean {
    return this.#isFrozen
  }

  async connect(): Promise<Duplex> {
    const endUse = this.#use()
    try {
      await this.wake()
      const connection = await this.#options.machine.connect()
      connection.once('close', endUse)
      return connection
    } catch (error) {
      endUse()
      throw error
    }
  }

  /** Resolves when the machine runs, immediately unless it is frozen. */
  wake(): Promise<void> {
    if (!this.#isFrozen && !this.#freezing) return Promise.resolve()
    this.#waking ??= this.#wake().finally(() => {
      this.#waking = undefined
    })
    return this.#waking
  }

  /** Freezes it now, unless it is in use. */
  async standBy(): Promise<void> {
    if (this.#options.afterMilliseconds === undefined || !(await this.#isUnused())) return
    this.#freezing ??= this.#freeze().finally(() => {
      this.#freezing = undefined
    })
    await this.#freezing
  }

  /** Call when the agent has reported whether there is activity. */
  noteActivity(isIdle: boolean): void {
    this.#idleAt = isIdle ? (this.#idleAt ?? performance.now()) : undefined
    this.#arm()
  }

  /**
   * Stops freezing and waking the machine. Resolves when no freeze is in progress, because a machine that is being
   * frozen could not be stopped.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearTimeout(this.#memoryTimer)
    await this.#freezing
  }

  #use(): () => void {
    this.#uses += 1
    clearTimeout(this.#timer)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#uses -= 1
      this.#usedAt = performance.now()
      this.#arm()
    }
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const { afterMilliseconds: after } = this.#options
    if (after === undefined || this.#idleAt === undefined || this.#uses > 0 || this.#isFrozen || this.#isClosed) return
    const wait = Math.max(this.#idleAt, this.#usedAt) + after - performance.now()
    this.#timer = setTimeout(() => void this.#standByOrWait(), Math.max(0, wait)).unref()
  }

  async #standByOrWait(): Promise<void> {
    await this.standBy()
    if (this.#isFrozen) return
    // It is in use, or could not be frozen.
    this.#usedAt = performance.now()
    this.#arm()
  }

  /** Also asks the agent, because its reports of many short activities are delayed. */
  async #isUnused(): Promise<boolean> {
    if (!this.#canFreeze()) return false
    const state = await readAgentState(this.#options.machine).catch(() => undefined)
    return state?.state === 'ready' && state.idle_since !== null && this.#canFreeze()
  }

  #canFreeze(): boolean {
    const isAwake = !this.#isFrozen && !this.#freezing && !this.#waking
    return isAwake && this.#uses === 0 && !this.#isClosed && this.#options.mayStandBy()
  }

  async #freeze(): Promise<void> {
    const { driver, onChange, onFailure } = this.#options
    try {
      await driver.freeze(this.id)
      this.#isFrozen = true
      onChange(true)
      if (!this.#isClosed) this.#reclaimMemoryLater()
    } catch (error) {
      // A partially frozen machine would not respond.
      await driver.thaw(this.id).catch(() => {})
      if (!this.#isClosed) onFailure(error as Error)
    }
  }

  #reclaimMemoryLater(): void {
    const { driver, onMemoryReturned, onFailure } = this.#options
    this.#memoryTimer = setTimeout(() => {
      driver.reclaimMemory(this.id).then(onMemoryReturned, (error: Error) => {
        // It may have been removed meanwhile.
        if (!this.#isClosed) onFailure(error)
      })
    }, memoryMilliseconds).unref()
  }

  async #wake(): Promise<void> {
    clearTimeout(this.#memoryTimer)
    await this.#freezing
    if (!this.#isFrozen) return
    await this.#options.driver.thaw(this.id)
    this.#isFrozen = false
    this.#begin.resolve()
    this.#options.onChange(false)
  }
}
