import { setTimeout as delay } from 'node:timers/promises'
import { clients } from '../../clients.ts'
import { browserPage } from '../../pages.ts'
import { differenceByPart, memoryByPart, type PartSums } from '../../processes.ts'
import { type BenchSession, browserPart, type Service, type Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

const furtherSessions = 3
/** The time until a browser has released what only its start needed. */
const settleMilliseconds = 3_000

/** `beyond` is everything but the browser. */
export function memoryName(shape: Shape, part: string): string {
  return `memory per further ${shape} session: ${part}`
}

export const beyondBrowser = 'beyond Chromium'

/** Measures the cost of an additional session. Shared code is loaded and the service is warm by then. */
export async function measureMemory(context: BenchContext): Promise<void> {
  for (const shape of ['headless', 'headful'] as const) {
    for (const service of context.services) await measureService(context, service, shape)
  }
}

async function measureService({ pages, figures }: BenchContext, service: Service, shape: Shape): Promise<void> {
  const url = browserPage(pages)
  const sessions = [await createUsed(service, shape, url)]
  const one = await settledMemory(service)
  while (sessions.length <= furtherSessions) sessions.push(await createUsed(service, shape, url))
  const all = await settledMemory(service)
  await Promise.all(sessions.map((session) => session.end()))

  const perSession = new Map([...differenceByPart(one, all)].map(([part, value]) => [part, value / furtherSessions]))
  for (const [part, value] of perSession) figures.add(service.name, memoryName(shape, part), 'MiB', [value])
  figures.add(service.name, memoryName(shape, beyondBrowser), 'MiB', [sumBeyondBrowser(perSession)])
}

/** Creates a session with a page and without a client, the usual state of sessions. */
export async function createUsed(service: Service, shape: Shape, url: string): Promise<BenchSession> {
  const session = await service.create(shape)
  const client = await clients['raw CDP'](session.cdpUrl)
  await client.load(url)
  await client.close()
  return session
}

async function settledMemory(service: Service): Promise<PartSums> {
  await delay(settleMilliseconds)
  return memoryByPart(await service.processes())
}

export function sumBeyondBrowser(sums: PartSums): number {
  return [...sums].reduce((sum, [part, value]) => (part === browserPart ? sum : sum + value), 0)
}
