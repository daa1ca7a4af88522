import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { readAgentState } from '../../../agent-link/agent-client.ts'
import type { Driver, Machine } from '../../../drivers/driver.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { SessionStore, UnfinishedSession } from '../records/session-store.ts'
import type { SessionUpdater } from '../update/update-session.ts'
import type { SessionMachines } from './session-machines.ts'

export interface RecoverOptions {
  readonly driver: Driver
  readonly egressLink: EgressLink
  readonly driverId: string
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly terminator: SessionTerminator
  readonly updater: SessionUpdater
  readonly logger: Logger
  /** Defaults to one minute. */
  readonly readyLimitMilliseconds?: number
}

/** How long the start waits for machines to be stopped. The work continues afterwards. */
const patienceMilliseconds = 2_000
/** The session of an agent that takes longer to respond is adopted without waiting. */
const answerMilliseconds = 1_000
/** An agent that does not report that it is ready by then counts as failed. */
const defaultReadyLimitMilliseconds = 60_000

/**
 * Makes rows and machines consistent after a start, whatever the previous server was doing when it ended: adopts
 * running sessions, ends dead ones, removes incomplete ones, and completes interrupted ends. No session delays the
 * start: slow work continues in the background, and failures are left to the reaper.
 */
export async function recoverSessions(options: RecoverOptions): Promise<void> {
  const { driver, driverId, egressLink, store, machines, logger } = options
  // Sessions of other servers are handled only after those are gone.
  const { areMachinesShared } = driver.capabilities
  const [existing, served, sessions] = await Promise.all([
    driver.list(),
    egressLink.listRoutes(),
    store.listUnfinished(driverId),
  ])
  const found = new Set(existing)
  const named = new Set(sessions.map(({ machine_id }) => machine_id))
  // Machines without a session, and routes without a machine.
  const strays = areMachinesShared
    ? []
    : [...new Set([...existing, ...served])].filter((machineId) => !named.has(machineId))

  const recovery = new SessionRecovery(options)
  const takenUp = sessions.map((session) => recovery.recover(session, found.has(session.machine_id)))
  const removals = strays.map((machineId) => machines.remove(machineId))
  const all = [...takenUp, ...removals].map((work) =>
    work.catch((error: unknown) => logger.error({ err: error }, 'could not recover a session; retrying')),
  )
  await Promise.race([Promise.all(all), delay(patienceMilliseconds, undefined, { ref: false })])

  const { adopted } = recovery
  const others = strays.length + sessions.length - adopted
  if (adopted + others > 0) logger.info({ adopted, ended: others }, 'recovered the sessions of the last run')
}

/** Adopts the sessions that this server serves, or ends what is left of them. */
export class SessionRecovery {
  readonly #options: RecoverOptions
  adopted = 0

  constructor(options: RecoverOptions) {
    this.#options = options
  }

  async recover(session: UnfinishedSession, hasMachine: boolean): Promise<void> {
    const { store, machines, terminator } = this.#options
    switch (session.state) {
      case 'active':
      case 'idle':
      case 'returning':
        if (!hasMachine || !(await this.#adoptRunning(session))) await terminator.end(session.id, 'machine_ended')
        return
      case 'starting':
        await machines.stop(session)
        await store.removeStarting(session.id)
        return
      case 'ending':
      case 'deleted':
        // Its profile can still be saved. The reaper does that.
        if (!hasMachine || !session.profile_save_changes || !(await this.#hold(session)))
          await terminator.finish(session.id)
    }
  }

  /** Returns whether there was a machine to adopt. */
  async #adoptRunning(session: UnfinishedSession): Promise<boolean> {
    const { driver, machines } = this.#options
    // The reaper ends sessions that have no machine here.
    using _expected = machines.expect(session.id)
    const machine = await driver.adopt(session.machine_id)
    if (!machine) return false
    const isFrozen = await driver.isFrozen(machine.id)
    if (!isFrozen && !(await isAlive(machine))) return false
    this.#adopt(session, machine, isFrozen)
    await this.#openRoute(session)
    return true
  }

  async #hold(session: UnfinishedSession): Promise<boolean> {
    const { driver, machines } = this.#options
    const machine = await driver.adopt(session.machine_id)
    if (machine) machines.adopt(session.id, machine, { ...session, isFrozen: await driver.isFrozen(machine.id) })
    return machine !== undefined
  }

  /** Egress still serves the machine, but a new egress process would not know a route that an earlier server opened. */
  async #openRoute({ id }: UnfinishedSession): Promise<void> {
    const { store, machines, logger } = this.#options
    try {
      const session = await store.findRunning(id)
      if (session) await machines.openRoute(session)
    } catch (error) {
      // `restore` opens it again.
      logger.warn({ err: error, sessionId: id }, 'could not open the route of a session; retrying')
    }
  }

  #adopt(session: UnfinishedSession, machine: Machine, isFrozen: boolean): void {
    const { driver, machines, updater, terminator, logger } = this.#options
    const { id } = session
    this.adopted += 1
    // The previous server may have been killed between claiming a machine of the reserve and raising its priority.
    driver
      .raisePriority(machine.id)
      .catch((error: unknown) =>
        logger.warn({ err: error, sessionId: id }, 'could not raise the priority of a session'),
      )
    const { ready } = machines.adopt(id, machine, { ...session, isFrozen }).watch
    // Nobody was using it. Its next use wakes it.
    if (isFrozen) return
    // The previous server may have been in the middle of an update. The next user of the session waits for it.
    void updater.restore(id)
    const limit = setTimeout(() => {
      logger.warn({ sessionId: id }, 'a session ends: its agent does not respond')
      terminator
        .end(id)
        .catch((error: unknown) => logger.error({ err: error, sessionId: id }, 'could not end a session'))
    }, this.#options.readyLimitMilliseconds ?? defaultReadyLimitMilliseconds).unref()
    // Whoever ends or detaches from the session handles a rejection.
    ready.catch(() => {}).finally(() => clearTimeout(limit))
  }
}

/** Whether the machine runs and its agent has not reported a failure. A slow agent counts as alive. */
async function isAlive(machine: Machine): Promise<boolean> {
  const gone = machine.ended.then(() => false)
  const answered = readAgentState(machine).then(
    ({ state }) => state !== 'failed',
    (error: Error) => error.name === 'TimeoutError',
  )
  return Promise.race([gone, answered, delay(answerMilliseconds, true, { ref: false })])
}
