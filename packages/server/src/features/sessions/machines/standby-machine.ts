import type { Duplex } from 'node:stream'
import { readAgentState } from '../../../agent-link/agent-client.ts'
import type { Driver, EgressSocket, Machine, ReachableMachine } from '../../../drivers/driver.ts'

interface StandbyMachineOptions {
  readonly machine: Machine
  readonly driver: Pick<Driver, 'freeze' | 'thaw' | 'giveBackMemory'>
  /** How long nobody has to use it before it is frozen. Absent: it never is. */
  readonly afterMilliseconds: number | undefined
  /** An earlier server has frozen it. */
  readonly isFrozen: boolean
  /** Asked before it is frozen: false while its session is being created or adopted. */
  readonly mayStandBy: () => boolean
  readonly onChange: (isFrozen: boolean) => void
  readonly onMemoryReturned: (bytes: number) => void
  readonly onFailure: (error: Error) => void
}

/** Whoever comes back sooner finds all of its memory there. */
const memoryMilliseconds = 60_000

/**
 * The machine of a session, frozen while nobody uses it:
 *
 * awake → freezing   nobody has used it for the time, which its agent confirms
 * freezing → frozen  nothing in it runs any more
 * frozen → awake     somebody asks for a connection, who waits until it goes on
 *
 * Every connection to the agent is opened here, and is a use for as long as it is open: but those by which the server
 * itself follows the agent, and those aside. What goes on inside without one, as a process that a caller has left, the agent tells.
 */
export class StandbyMachine implements Machine {
  readonly id: Machine['id']
  readonly egressSocket: EgressSocket
  readonly ended: Promise<void>
  /** Resolves when the machine runs for the first time since it was taken up. */
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
  /** Absent while the agent tells of activity, or has told nothing yet. */
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
    if (isFrozen) this.#giveBackMemoryLater()
    else this.#begin.resolve()
  }

  /** Connections that are no use: they neither wake it nor keep it awake, and it may be frozen while they are open. */
  readonly aside: ReachableMachine = {
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

  /** Resolves when the machine runs: at once, unless it is frozen. */
  wake(): Promise<void> {
    if (!this.#isFrozen && !this.#freezing) return Promise.resolve()
    this.#waking ??= this.#wake().finally(() => {
      this.#waking = undefined
    })
    return this.#waking
  }

  /** Freezes it now, unless somebody uses it. */
  async standBy(): Promise<void> {
    if (this.#options.afterMilliseconds === undefined || !(await this.#isUnused())) return
    this.#freezing ??= this.#freeze().finally(() => {
      this.#freezing = undefined
    })
    await this.#freezing
  }

  /** The agent has told whether there is activity. */
  noteActivity(isIdle: boolean): void {
    this.#idleAt = isIdle ? (this.#idleAt ?? performance.now()) : undefined
    this.#arm()
  }

  /** Leaves the machine as it is. Resolves when nothing freezes it any more: one that is being frozen could not be ended. */
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
    // Somebody uses it, or it could not be frozen.
    this.#usedAt = performance.now()
    this.#arm()
  }

  /** Asks the agent too: what it tells by itself of many small activities comes late. */
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
      if (!this.#isClosed) this.#giveBackMemoryLater()
    } catch (error) {
      // Half frozen it would answer nobody.
      await driver.thaw(this.id).catch(() => {})
      if (!this.#isClosed) onFailure(error as Error)
    }
  }

  #giveBackMemoryLater(): void {
    const { driver, onMemoryReturned, onFailure } = this.#options
    this.#memoryTimer = setTimeout(() => {
      driver.giveBackMemory(this.id).then(onMemoryReturned, (error: Error) => {
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
