import { setTimeout as delay } from 'node:timers/promises'
import { browserPage } from '../pages.ts'
import { differenceByPart, type PartSums, processorTimeDuring } from '../processes.ts'
import type { Service, Shape } from '../services/service.ts'
import type { BenchContext } from './measurement.ts'
import { createUsed, sumBeyondBrowser } from './memory.ts'

const settleMilliseconds = 3_000
/** Several, so that the part that is one session's stands out from what shared processes do by chance. */
const sessionsAtOnce = 4

export const idleBeyondBrowser = 'beyond Chromium'

export function idleName(shape: Shape, part: string): string {
  return `10 s of an idle ${shape} session: ${part}`
}

/**
 * The processor time of a session that nobody uses: of its own processes all of it, of those that sessions share what
 * they need more than without a session.
 */
export async function measureIdle(context: BenchContext): Promise<void> {
  for (const service of context.services) {
    // What a service does once, for its first session, is not what an idle one costs.
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

/** Milliseconds of processor time in 10 seconds. */
export async function idleTime(service: Service, seconds: number): Promise<PartSums> {
  const { used } = await processorTimeDuring(service, () => delay(seconds * 1000))
  return new Map([...used].map(([part, value]) => [part, (value / seconds) * 10]))
}
