import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { readAgentState } from '../../agent-link/agent-client.ts'
import type { Driver, Machine } from '../../drivers/driver.ts'
import type { SessionEnder } from './end-session.ts'
import type { SessionMachines } from './session-machines.ts'
import type { SessionStore, UnfinishedSession } from './session-store.ts'
import type { SessionUpdater } from './update-session.ts'

interface RecoverOptions {
  readonly driver: Driver
  readonly driverId: string
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly ender: SessionEnder
  readonly updater: SessionUpdater
  readonly logger: Logger
  /** Absent: a minute. */
  readonly readyLimitMilliseconds?: number
}

/** For so long a start waits for what has to be ended. It goes on afterwards. */
const patienceMilliseconds = 2_000
/** An agent that takes longer to answer is taken up without. */
const answerMilliseconds = 1_000
/** An agent that has not said that it is ready by then will not. */
const defaultReadyLimitMilliseconds = 60_000

/**
 * Makes rows and machines agree after a start, whatever the last server was doing when it ended: live sessions are
 * taken up, dead ones ended, half-made ones removed, interrupted ends finished. No session holds the start up: what
 * takes longer goes on beside it, and what fails is left to the reaper.
 */
export async function recoverSessions(options: RecoverOptions): Promise<void> {
  const { driver, driverId, store, logger } = options
  const [existing, sessions] = await Promise.all([driver.list(), store.listUnfinished(driverId)])
  const machineOf = new Map(existing.map((machine) => [machine.sessionId, machine]))
  const known = new Set(sessions.map((session) => session.id))
  const strays = existing.filter((machine) => !known.has(machine.sessionId))

  const recovery = new SessionRecovery(options)
  const takenUp = sessions.map((session) => recovery.recover(session, machineOf.get(session.id)))
  const removals = strays.map((machine) => driver.stop(machine.sessionId))
  const all = [...takenUp, ...removals].map((work) =>
    work.catch((error: unknown) => logger.error({ err: error }, 'could not recover a session; trying again')),
  )
  await Promise.race([Promise.all(all), delay(patienceMilliseconds, undefined, { ref: false })])

  const { adopted } = recovery
  const others = existing.length + sessions.filter(({ id }) => !machineOf.has(id)).length - adopted
  if (adopted + others > 0) logger.info({ adopted, ended: others }, 'recovered the sessions of the last run')
}

class SessionRecovery {
  readonly #options: RecoverOptions
  adopted = 0

  constructor(options: RecoverOptions) {
    this.#options = options
  }

  async recover(session: UnfinishedSession, machine: Machine | undefined): Promise<void> {
    const { driver, store, machines, ender } = this.#options
    switch (session.state) {
      case 'active':
        if (!machine || !(await this.#takeUp(machine))) await ender.end(session.id)
        return
      case 'starting':
        await driver.stop(session.id)
        await store.removeStarting(session.id)
        return
      case 'ending':
      case 'deleted':
        // Its profile can still be saved. The reaper does that.
        if (machine && session.profile_save_changes) machines.adopt(machine)
        else await ender.finish(session.id)
    }
  }

  /** Says whether there was anything to take up. */
  async #takeUp(machine: Machine): Promise<boolean> {
    // The reaper ends sessions that have no machine here.
    using _expected = this.#options.machines.expect(machine.sessionId)
    if (!(await isAlive(machine))) return false
    this.#adopt(machine)
    return true
  }

  #adopt(machine: Machine): void {
    const { machines, updater, ender, logger } = this.#options
    const id = machine.sessionId
    this.adopted += 1
    const { ready } = machines.adopt(machine).watch
    // The last server may have been in the middle of an update. Whoever is next to use the session waits for it.
    void updater.restore(id)
    const limit = setTimeout(() => {
      logger.warn({ sessionId: id }, 'a session ends: its agent does not answer')
      ender.end(id).catch((error: unknown) => logger.error({ err: error, sessionId: id }, 'could not end a session'))
    }, this.#options.readyLimitMilliseconds ?? defaultReadyLimitMilliseconds).unref()
    // When it is rejected, whoever ends or leaves the session does it.
    ready.catch(() => {}).finally(() => clearTimeout(limit))
  }
}

/** Whether the machine runs, and nothing says that its agent has failed. One that takes its time is alive. */
async function isAlive(machine: Machine): Promise<boolean> {
  const gone = machine.ended.then(() => false)
  const answered = readAgentState(machine).then(
    ({ state }) => state !== 'failed',
    (error: Error) => error.name === 'TimeoutError',
  )
  return Promise.race([gone, answered, delay(answerMilliseconds, true, { ref: false })])
}
