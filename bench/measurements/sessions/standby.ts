import { setTimeout as delay } from 'node:timers/promises'
import { clients } from '../../clients.ts'
import { isFrozen, processorTimeDuring } from '../../processes.ts'
import { createSession, type ReadyBerth, startReadyBerth } from '../../services/berth.ts'
import { type BenchSession, browserPart } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

export const wakeName = 'wake from standby: first CDP answer'
export const frozenName = 'sessions, four of five frozen'
export const frozenProcessorName = `${frozenName}: 10 s of those that are frozen`
export const createBesideName = `${frozenName}: created, ready headless`

const reserveSizes = { headless: 5, headful: 0 }
const sessionsToWake = 5
const observedMilliseconds = 10_000

/** Measures the cost of unused sessions, and how soon they can be used again. */
export async function measureStandby(context: BenchContext): Promise<void> {
  await using berth = await startReadyBerth(context.pages.allowed, reserveSizes)
  await measureWake(context, berth)
  await measureManyFrozen(context, berth)
}

async function measureWake({ figures, rounds }: BenchContext, berth: ReadyBerth): Promise<void> {
  const sessions = await createSessions(berth, sessionsToWake)
  const times: number[] = []
  while (times.length < rounds) {
    await untilFrozen(berth, sessions.length)
    for (const { cdpUrl } of sessions) {
      const begin = performance.now()
      const connection = await clients['raw CDP'](cdpUrl)
      times.push(performance.now() - begin)
      await connection.close()
    }
  }
  figures.add(berth.name, wakeName, 'ms', times)
  for (const session of sessions) await session.end()
}

/** With as many sessions as for growth: a fifth has a client and so stays awake. */
async function measureManyFrozen({ figures, rounds, maxSessions }: BenchContext, berth: ReadyBerth): Promise<void> {
  const sessions = await createSessions(berth, maxSessions)
  const used = await Promise.all(
    sessions.slice(0, Math.floor(maxSessions / 5)).map(({ cdpUrl }) => clients['raw CDP'](cdpUrl)),
  )
  await untilFrozen(berth, sessions.length - used.length)
  await berth.filled()
  const frozen = { ...berth, processes: () => frozenBrowsers(berth) }
  const during = await processorTimeDuring(frozen, () => delay(observedMilliseconds))
  figures.add(berth.name, frozenProcessorName, 'ms of CPU', [during.used.get(browserPart) ?? 0])
  const times: number[] = []
  while (times.length < rounds) {
    await berth.filled()
    await delay(1_000)
    const created: BenchSession[] = []
    while (created.length < reserveSizes.headless) {
      const begin = performance.now()
      created.push(await createSession(berth.berth, 'headless'))
      times.push(performance.now() - begin)
    }
    for (const session of created) await session.end()
  }
  figures.add(berth.name, createBesideName, 'ms', times)
  figures.notes.push(
    `${maxSessions} sessions were beside these creates, ${sessions.length - used.length} of them frozen`,
  )
  for (const connection of used) await connection.close()
  for (const session of sessions) await session.end()
}

/** The browsers that are completely frozen. */
async function frozenBrowsers(berth: ReadyBerth) {
  const browsers = (await berth.processes()).filter(({ part }) => part === browserPart)
  const frozen = await Promise.all(browsers.map(({ pid }) => isFrozen(pid)))
  return browsers.filter((_browser, index) => frozen[index])
}

async function createSessions(berth: ReadyBerth, count: number): Promise<readonly BenchSession[]> {
  const sessions: BenchSession[] = []
  while (sessions.length < count) sessions.push(await createSession(berth.berth, 'headless'))
  return sessions
}

async function untilFrozen(berth: ReadyBerth, count: number): Promise<void> {
  while ((await berth.countFrozen()) < count) await delay(100)
}
