import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { BuildWait } from '../../../jobs/declared-jobs.ts'
import { type AppMachine, isLackOfRoom, waitsForRoom } from '../machines/app-machine.ts'

/** How long a build waits for room, on all servers together. The rest of its time is for the work. */
const roomLimitMilliseconds = 4 * 60_000
const firstPauseMilliseconds = 500
const longestPauseMilliseconds = 5_000
/** Reports about room are some seconds old, so a build from another server stays here for a while. */
const stayMilliseconds = 10_000

interface StartOptions {
  readonly startMachine: (signal: AbortSignal) => Promise<AppMachine>
  /** Finds another server that reported room. */
  readonly findRoom: () => Promise<string | undefined>
  readonly serverId: string
  readonly clock: Clock
  readonly log: (line: string) => void
  readonly signal: AbortSignal
}

/** This server has no room for the build, but another one has. */
export class RoomElsewhere extends Error {
  readonly wait: BuildWait

  constructor(wait: BuildWait) {
    super('another server has room for the build')
    this.wait = wait
  }
}

/** Starts the machine of a build. On a full host, the build waits for the first server with room. */
export async function startBuildMachine(options: StartOptions, earlier: BuildWait | undefined): Promise<AppMachine> {
  const { startMachine, findRoom, serverId, clock, log, signal } = options
  const begin = clock.now().getTime()
  const since = earlier ? new Date(earlier.since).getTime() : begin
  const mayLeaveAt = earlier && earlier.server !== serverId ? begin + stayMilliseconds : begin
  let isTold = earlier?.isTold ?? false
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await startMachine(signal)
    } catch (error) {
      const now = clock.now().getTime()
      if (!isLackOfRoom(error) || signal.aborted || now - since >= roomLimitMilliseconds) throw error
      if (now >= mayLeaveAt && (await findRoom()) !== undefined) {
        throw new RoomElsewhere({ since: new Date(since).toISOString(), server: serverId, isTold })
      }
      if (!isTold) log(waitsForRoom)
      isTold = true
      const pause = Math.min(firstPauseMilliseconds * 2 ** attempt, longestPauseMilliseconds)
      await delay(pause, undefined, { signal }).catch(() => {}) // The next attempt sees the abort.
    }
  }
}
