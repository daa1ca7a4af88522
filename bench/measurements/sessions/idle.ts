import { setTimeout as delay } from 'node:timers/promises'
import { browserPage } from '../../pages.ts'
import { differenceByPart, type PartSums, processorTimeDuring } from '../../processes.ts'
import type { Service, Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'
import { createUsed, sumBeyondBrowser } from './memory.ts'

const settleMilliseconds = 3_000
/** Several, to separate the cost of a session from the noise of shared processes. */
const sessionsAtOnce = 4

export const idleBeyondBrowser = 'beyond Chromium'

export function idleName(shape: Shape, part: string): string {
  return `10 s of an idle ${shape} session: ${part}`
}

/**
 * Measures the processor time of unused sessions: everything of their own processes, and of shared processes what they
 * use beyond their time without sessions.
 */
export async function measureIdle(context: BenchContext): Promise<void> {
  for (const service of context.services) {
    // Excludes what a service does only for its first session.
    await (await createUsed(service, 'headless', browserPage(context.pages))).end()
    await delay(settleMilliseconds)
    const without = await idleTime(service, context.idleSeconds)
    for (const [part, value] of without) {
      context.figures.add(service.name, `10 s without a session: ${part}`, 'ms of CPU', [value])
    }
    for (const shape of ['headless', 'headful'] as const) await measureShape(context, service, shape, without)
  }
}

async function measureShape(
  { pages, figures, idleSeconds }: BenchContext,
  service: Service,
  shape: Shape,
  without: PartSums,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  for (let count = 0; count < sessionsAtOnce; count += 1) {
    const session = await createUsed(service, shape, browserPage(pages))
    stack.defer(() => session.end())
  }
  await delay(settleMilliseconds)
  const more = differenceByPart(without, await idleTime(service, idleSeconds))

  const perSession = new Map([...more].map(([part, value]) => [part, value / sessionsAtOnce]))
  for (const [part, value] of perSession) figures.add(service.name, idleName(shape, part), 'ms of CPU', [value])
  figures.add(service.name, idleName(shape, idleBeyondBrowser), 'ms of CPU', [sumBeyondBrowser(perSession)])
}

/** Milliseconds of processor time per 10 seconds. */
export async function idleTime(service: Service, seconds: number): Promise<PartSums> {
  const { used } = await processorTimeDuring(service, () => delay(seconds * 1000))
  return new Map([...used].map(([part, value]) => [part, (value / seconds) * 10]))
}
