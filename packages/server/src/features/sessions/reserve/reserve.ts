import { setTimeout as delay } from 'node:timers/promises'
import { type MachineId, newId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Insertable, RawBuilder } from 'kysely'
import { AgentWatch } from '../../../agent-link/agent-watch.ts'
import type { Database } from '../../../database/database.ts'
import type { SessionTable } from '../../../database/tables.ts'
import type { Driver, Machine } from '../../../drivers/driver.ts'
import { appEgressSettings } from '../../../egress-link/app-egress-settings.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import type { CaptchaSolving } from '../captchas/captcha-solving.ts'
import type { SessionEgress } from '../machines/session-egress.ts'
import type { Session } from '../records/session.ts'
import { isUnlaunched, type ReserveKind, type ReserveMiss, reserveKinds, reserveSpec } from './reserve-kind.ts'
import { type PastCreate, planSizes, type ReserveConfig, recentCreates, reserveBytes } from './reserve-plan.ts'
import type { ReserveStore } from './reserve-store.ts'

export interface ReserveOptions {
  readonly config: ReserveConfig
  readonly store: ReserveStore
  readonly driver: Driver
  readonly egress: Pick<SessionEgress, 'settingsOfWaiting'>
  readonly egressLink: Pick<EgressLink, 'openRoute' | 'closeRoute'>
  readonly captchas: Pick<CaptchaSolving, 'solvesFor'>
  /** Makes the agent of a machine load the code that it will need. */
  readonly rehearse: (machine: Machine, kind: ReserveKind, signal: AbortSignal) => Promise<void>
  readonly clock: Clock
  readonly logger: Logger
  /** Defaults to the time for which Chromium is busy after its first page. */
  readonly settleMilliseconds?: number
}

interface ReadyMachine {
  readonly machine: Machine
  readonly kind: ReserveKind
  readonly readyAt: number
  /** The version of its programs. */
  readonly version: string
  hasEnded: boolean
}

/** A machine that a create has chosen. It is being thawed, and no other create gets it. */
export interface ChosenMachine {
  readonly machine: Machine
  readonly kind: ReserveKind
  /** Rejects if it cannot run. */
  readonly awake: Promise<void>
}

const bootLimitMilliseconds = 60_000
const defaultSettleMilliseconds = 1_500
/** Creates at shorter intervals count as one burst, whose last one is waited for. */
const quietMilliseconds = 300
const pauseAfterFailureMilliseconds = 30_000
/** The time to respond to a create after its machine is claimed. */
const answerMilliseconds = 2
const maxAgeMilliseconds = 60 * 60_000

/**
 * Machines that are started in advance: the browser runs, its first page has loaded, and all of it is frozen. Each
 * unclaimed machine has a row. Whoever deletes that row owns the machine: a create, in the transaction that inserts the
 * row of its session, or the reserve itself, which then removes it.
 */
export class Reserve {
  readonly #options: ReserveOptions
  readonly #ready = new Map<MachineId, ReadyMachine>()
  /** Machines that creates have chosen and not claimed yet. */
  readonly #chosen = new Map<MachineId, ReadyMachine>()
  readonly #abort = new AbortController()
  #creates: readonly PastCreate[] = []
  #appMilliseconds: number | undefined
  /** Machines that have started and are still busy for a moment. */
  readonly #settling = new Map<MachineId, { readonly kind: ReserveKind; readonly settled: Promise<void> }>()
  #createsUnderWay = 0
  #lastCreateAt = Number.NEGATIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY
  #round: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #quiet: NodeJS.Timeout | undefined
  /** Counted since the start of this server. */
  readonly claims = new Map<ReserveKind, number>()
  readonly misses = new Map<ReserveMiss, number>()
  #boots = { count: 0, seconds: 0 }

  constructor(options: ReserveOptions) {
    this.#options = options
  }

  get isOff(): boolean {
    return this.#options.config === 'off'
  }

  /** How many machines were started, and the total time that this took. */
  get boots(): { readonly count: number; readonly seconds: number } {
    return this.#boots
  }

  /** The number of ready machines of each kind. */
  get sizes(): Readonly<Record<ReserveKind, number>> {
    const count = (kind: ReserveKind) => [...this.#ready.values()].filter((ready) => ready.kind === kind).length
    return Object.fromEntries(reserveKinds.map((kind) => [kind, count(kind)])) as Record<ReserveKind, number>
  }

  start(intervalMilliseconds: number): void {
    if (this.isOff) return
    this.#timer = setInterval(() => void this.refill(), intervalMilliseconds)
    void this.refill()
  }

  /** Removes all machines. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    clearTimeout(this.#quiet)
    this.#abort.abort(new Error('the server is stopping'))
    await this.#round
    await Promise.all([...this.#settling.values()].map(({ settled }) => settled))
    await Promise.all([...this.#ready.keys(), ...this.#chosen.keys()].map((id) => this.#remove(id)))
  }

  /** Marks a create as in progress until the disposal. Meanwhile the reserve starts no machines. */
  noteCreate(kind: ReserveKind | undefined): Disposable {
    const now = performance.now()
    if (kind === 'app') this.#appMilliseconds = now
    if (kind) this.#creates = [...recentCreates(this.#creates, now), { kind, milliseconds: now }]
    this.#createsUnderWay += 1
    return {
      [Symbol.dispose]: () => {
        this.#createsUnderWay -= 1
        this.#lastCreateAt = performance.now()
        this.#refillWhenQuiet()
      },
    }
  }

  /**
   * Chooses the oldest machine of the kind, if there is one, and starts to thaw it, in parallel with the database
   * statement.
   */
  choose(kind: ReserveKind): ChosenMachine | undefined {
    const [id, ready] = [...this.#ready].find(([, one]) => one.kind === kind) ?? []
    if (!id || !ready || this.#abort.signal.aborted) return undefined
    this.#ready.delete(id)
    this.#chosen.set(id, ready)
    const { driver } = this.#options
    const awake = driver.thaw(id)
    awake.catch(() => {}) // The create that uses it waits for it.
    return { machine: ready.machine, kind, awake }
  }

  /** Claims a machine permanently for a caller without a session. Undefined if none can run. */
  async take(kind: ReserveKind): Promise<Machine | undefined> {
    const chosen = this.choose(kind)
    if (!chosen) {
      this.noteMiss('empty')
      return undefined
    }
    const { machine, awake } = chosen
    const ready = this.#chosen.get(machine.id)
    // It may have been removed meanwhile.
    if (!(await this.#options.store.claim(machine.id))) return undefined
    const runs = await awake.then(
      () => !ready?.hasEnded,
      (error: Error) => {
        this.#noteFailure(error)
        return false
      },
    )
    if (runs) {
      this.noteClaim(chosen, { isWaitedFor: true })
      return machine
    }
    this.#chosen.delete(machine.id)
    this.noteMiss('failed')
    await this.#stop(machine.id)
    return undefined
  }

  /** Claims a chosen machine for a session when the transaction is committed, unless it was removed. */
  claim({ machine }: ChosenMachine, database: Database): Promise<boolean> {
    return this.#options.store.claim(machine.id, database)
  }

  /**
   * Claims it in one statement that also takes a slot and inserts the row of the session. Undefined if one of them
   * fails.
   */
  claimFor(
    { machine }: ChosenMachine,
    row: Insertable<SessionTable>,
    takesSlot: RawBuilder<boolean>,
  ): Promise<Session | undefined> {
    return this.#options.store.claimFor({ ...row, machine_id: machine.id }, takesSlot)
  }

  /** Call after a claim. If nobody waits for the machine, it gets its processor share only after the response. */
  noteClaim({ machine, kind }: ChosenMachine, { isWaitedFor }: { readonly isWaitedFor: boolean }): void {
    this.#chosen.delete(machine.id)
    this.claims.set(kind, (this.claims.get(kind) ?? 0) + 1)
    const raise = () => {
      // Fails for a machine that is gone.
      this.#options.driver.raisePriority(machine.id).catch((error: Error) => this.#logFailure(error))
    }
    if (isWaitedFor) raise()
    else setTimeout(raise, answerMilliseconds)
  }

  /** Returns a chosen machine whose create failed. It has done nothing except run. */
  async putBack({ machine, awake }: ChosenMachine): Promise<void> {
    const { id } = machine
    const ready = this.#chosen.get(id)
    try {
      await awake
      await this.#options.driver.freeze(id)
      if (ready) await this.#openRoute(ready)
      this.#chosen.delete(id)
      if (ready && !this.#abort.signal.aborted) this.#ready.set(id, ready)
    } catch (error) {
      this.#chosen.delete(id)
      await this.#remove(id)
      this.#noteFailure(error as Error)
    }
  }

  noteMiss(reason: ReserveMiss): void {
    if (!this.isOff) this.misses.set(reason, (this.misses.get(reason) ?? 0) + 1)
  }

  /** Removes machines to make room for a create, and returns whether there were any. */
  async makeRoom(): Promise<boolean> {
    this.#pausedUntil = performance.now() + pauseAfterFailureMilliseconds
    const settling = [...this.#settling.keys()]
    const removed = await Promise.all([
      ...[...this.#ready.keys()].map((id) => this.#remove(id)),
      ...settling.map((id) => this.#stop(id).then(() => true)),
    ])
    return removed.includes(true)
  }

  #refillWhenQuiet(): void {
    if (!this.#timer || this.#createsUnderWay > 0 || this.#abort.signal.aborted) return
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(() => void this.refill(), quietMilliseconds + 1).unref()
  }

  /** Brings the reserve to its target sizes: starts one machine after another while no create is in progress. */
  refill(): Promise<void> {
    this.#round ??= this.#refill()
      .catch((error: Error) => this.#noteFailure(error))
      .finally(() => {
        this.#round = undefined
      })
    return this.#round
  }

  async #refill(): Promise<void> {
    if (this.isOff || this.#abort.signal.aborted) return
    const version = await this.#options.driver.programVersion()
    await this.#removeStale(version)
    while (this.#mayBoot()) {
      const kind = await this.#nextKind()
      if (!kind) return
      await this.#boot(kind, version)
    }
  }

  #mayBoot(): boolean {
    const now = performance.now()
    const isQuiet = this.#createsUnderWay === 0 && now - this.#lastCreateAt >= quietMilliseconds
    return isQuiet && now >= this.#pausedUntil && !this.#abort.signal.aborted
  }

  /** Returns a kind with too few machines. Removes machines of kinds with too many. */
  async #nextKind(): Promise<ReserveKind | undefined> {
    const { config, driver } = this.#options
    const settling = [...this.#settling.values()].map(({ kind }) => kind)
    const kinds = [...[...this.#ready.values()].map(({ kind }) => kind), ...settling]
    const room = await driver.freeRoom()
    const freeBytes = (room?.memoryBytes ?? 0) + reserveBytes(kinds)
    const asked = { creates: this.#creates, appMilliseconds: this.#appMilliseconds }
    const planned = planSizes(config, { ...asked, nowMilliseconds: performance.now(), freeBytes })
    const sizeOf = (kind: ReserveKind) => kinds.filter((one) => one === kind).length
    for (const [id, { kind }] of this.#ready) {
      if (sizeOf(kind) <= (planned[kind] ?? 0)) continue
      await this.#remove(id)
      return this.#nextKind()
    }
    return reserveKinds.find((kind) => sizeOf(kind) < (planned[kind] ?? 0))
  }

  async #removeStale(version: string): Promise<void> {
    const now = performance.now()
    for (const [id, ready] of this.#ready) {
      if (ready.hasEnded || now - ready.readyAt > maxAgeMilliseconds || ready.version !== version)
        await this.#remove(id)
    }
  }

  /** Resolves when the next machine may start, while this one settles. */
  async #boot(kind: ReserveKind, version: string): Promise<void> {
    const { driver, captchas, rehearse, clock } = this.#options
    const id = newId('machine', clock.now())
    const spec = reserveSpec(id, kind)
    const begunAt = performance.now()
    try {
      const machine = await driver.start({ ...spec, solvesCaptchas: captchas.solvesFor(spec) }, this.#abort.signal)
      const ready = { machine, kind, readyAt: performance.now(), version, hasEnded: false }
      const watch = await this.#firstPage(ready)
      await rehearse(machine, kind, AbortSignal.any([this.#abort.signal, AbortSignal.timeout(bootLimitMilliseconds)]))
      const settled = this.#settle(ready, begunAt)
        .catch((error: Error) => this.#giveUp(id, error))
        .finally(() => {
          watch?.close()
          this.#settling.delete(id)
        })
      this.#settling.set(id, { kind, settled })
    } catch (error) {
      await this.#stop(id)
      throw error
    }
  }

  /**
   * Resolves with the watch of the agent, which continues, so that a claim does not have to check the browser again.
   */
  async #firstPage(ready: ReadyMachine): Promise<AgentWatch | undefined> {
    // Its agent has responded, and waits for the inputs of the launch.
    if (isUnlaunched(ready.kind)) return undefined
    const { signal } = this.#abort
    const onGone = () => {
      ready.hasEnded = true
    }
    const watch = new AgentWatch(ready.machine, { onState: () => {}, onGone })
    try {
      await within(bootLimitMilliseconds, Promise.race([watch.ready, aborted(signal)]))
      return watch
    } catch (error) {
      watch.close()
      throw error
    }
  }

  /**
   * If it were frozen immediately, a claimed machine would first do the work that follows its first page or the start
   * of its display.
   */
  async #settle(ready: ReadyMachine, begunAt: number): Promise<void> {
    const { driver, store, clock, logger } = this.#options
    const { settleMilliseconds = defaultSettleMilliseconds } = this.#options
    const { machine, kind } = ready
    const { id } = machine
    void machine.ended.then(() => {
      ready.hasEnded = true
    })
    await delay(settleMilliseconds, undefined, { signal: this.#abort.signal })
    await driver.freeze(id)
    await driver.lowerPriority(id)
    if (ready.hasEnded) throw new Error('its browser exited after its first page')
    await this.#openRoute(ready)
    await store.insert(id, kind, clock.now())
    this.#ready.set(id, ready)
    const seconds = (performance.now() - begunAt) / 1000
    this.#boots = { count: this.#boots.count + 1, seconds: this.#boots.seconds + seconds }
    logger.debug({ machineId: id, kind, seconds }, 'a machine of the reserve is ready')
  }

  /**
   * Opened when the machine is frozen, so nothing can connect before there is a session. Changing a route is faster
   * than opening one.
   */
  async #openRoute({ machine, kind }: ReadyMachine): Promise<void> {
    const { egress, egressLink } = this.#options
    const { id } = machine
    const isApp = kind === 'app'
    const settings = isApp ? appEgressSettings(id) : egress.settingsOfWaiting(id, reserveSpec(id, kind).stealth)
    await egressLink.openRoute(machine, settings)
  }

  async #giveUp(id: MachineId, error: Error): Promise<void> {
    this.#noteFailure(error)
    await this.#stop(id).catch((cause: Error) => this.#noteFailure(cause))
  }

  /** Removes it unless it was claimed. Returns whether it was removed. */
  async #remove(id: MachineId): Promise<boolean> {
    if (!(await this.#options.store.remove(id))) return false
    this.#ready.delete(id)
    this.#chosen.delete(id)
    await this.#stop(id)
    return true
  }

  async #stop(id: MachineId): Promise<void> {
    const { driver, egressLink } = this.#options
    await settleAll([driver.stop(id), egressLink.closeRoute(id)])
  }

  #noteFailure(error: Error): void {
    if (this.#abort.signal.aborted) return
    this.#pausedUntil = performance.now() + pauseAfterFailureMilliseconds
    this.#logFailure(error)
  }

  #logFailure(error: Error): void {
    const { logger } = this.#options
    const reason = error.message
    // A full host has no room for a reserve. That is no error.
    if (error instanceof BerthError && error.code === 'capacity_exhausted')
      logger.debug({ reason }, 'no room for the reserve')
    else logger.warn({ reason }, 'could not fill the reserve; retrying')
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
