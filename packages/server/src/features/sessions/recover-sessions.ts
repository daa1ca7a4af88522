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
}

/**
 * Makes rows and machines agree after a start, whatever the last server was doing when it ended: live sessions are
 * taken up, dead ones ended, half-made ones removed, interrupted ends finished.
 */
export async function recoverSessions({
  driver,
  driverId,
  store,
  machines,
  ender,
  updater,
  logger,
}: RecoverOptions): Promise<void> {
  const [existing, sessions] = await Promise.all([driver.list(), store.listUnfinished(driverId)])
  const machineOf = new Map(existing.map((machine) => [machine.sessionId, machine]))
  const known = new Set(sessions.map((session) => session.id))

  const outcomes = await Promise.all(sessions.map((session) => recover(session, machineOf.get(session.id))))
  const strays = existing.filter((machine) => !known.has(machine.sessionId))
  await Promise.all(strays.map((machine) => driver.stop(machine.sessionId)))

  const adopted = outcomes.filter((outcome) => outcome === 'adopted').length
  const ended = outcomes.length - adopted + strays.length
  if (adopted + ended > 0) logger.info({ adopted, ended }, 'recovered the sessions of the last run')

  async function recover(session: UnfinishedSession, machine: Machine | undefined): Promise<'adopted' | 'ended'> {
    switch (session.state) {
      case 'active':
        if (machine && (await answers(machine))) {
          machines.adopt(machine)
          // The last server may have been in the middle of an update. Whoever is next to use the session waits for it.
          void updater.restore(session.id)
          return 'adopted'
        }
        await ender.end(session.id)
        return 'ended'
      case 'starting':
        await driver.stop(session.id)
        await store.removeStarting(session.id)
        return 'ended'
      case 'ending':
      case 'deleted':
        if (machine && session.profile_save_changes) {
          // Its profile can still be saved. The reaper does that: an agent that takes its time must not hold up the start.
          machines.adopt(machine)
          return 'ended'
        }
        await ender.finish(session.id)
        return 'ended'
    }
  }
}

async function answers(machine: Machine): Promise<boolean> {
  const gone = machine.ended.then(() => false)
  const answered = readAgentState(machine.agentSocket).then(
    (state) => state.state === 'ready',
    () => false,
  )
  return Promise.race([gone, answered])
}
