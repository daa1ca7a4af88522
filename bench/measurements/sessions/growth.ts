import { CdpClient } from '../../../e2e/testing/cdp.ts'
import { browserPage } from '../../pages.ts'
import { memoryByPart } from '../../processes.ts'
import { type BenchSession, browserPart, type Service } from '../../services/service.ts'
import { timeOf } from '../browser/in-session.ts'
import type { BenchContext } from '../measurement.ts'
import { idleTime } from './idle.ts'
import { createUsed, sumBeyondBrowser } from './memory.ts'

const sizes = [1, 5, 10, 20, 50, 100]
const evaluations = 200
const reads = 100
/** A headless browser plus a reserve, so that the host does not start killing processes. */
const roomForOneMiB = 1024

/** Measures the same figures with more and more headless sessions, all of them in use. */
export async function measureGrowth(context: BenchContext): Promise<void> {
  for (const service of context.services) {
    const sessions: BenchSession[] = []
    try {
      for (const size of sizes.filter((candidate) => candidate <= context.maxSessions)) {
        const hasGrown = await growTo(size, sessions, service, context)
        if (!hasGrown) break
        await measureAt(size, sessions, service, context)
      }
    } finally {
      const ends = await Promise.all(sessions.map((session) => timeOf(() => session.end())))
      context.figures.add(service.name, 'growth, end of all at once', 'ms', ends)
    }
  }
}

/** Returns whether the host had memory for them. */
async function growTo(
  size: number,
  sessions: BenchSession[],
  service: Service,
  { pages, figures }: BenchContext,
): Promise<boolean> {
  const times: number[] = []
  while (sessions.length < size) {
    const availableMiB = process.availableMemory() / 1024 ** 2
    if (availableMiB < roomForOneMiB) {
      figures.notes.push(`${service.name}: no room for more than ${sessions.length} sessions on this host`)
      return false
    }
    times.push(await timeOf(async () => sessions.push(await createUsed(service, 'headless', browserPage(pages)))))
  }
  figures.add(service.name, `growth, ${size} sessions: create to first page loaded`, 'ms', times)
  return true
}

async function measureAt(
  size: number,
  sessions: readonly BenchSession[],
  service: Service,
  { figures, idleSeconds }: BenchContext,
): Promise<void> {
  const add = (name: string, unit: 'ms' | 'MiB' | 'ms of CPU', samples: readonly number[]) =>
    figures.add(service.name, `growth, ${size} sessions: ${name}`, unit, samples)
  const newest = sessions.at(-1) as BenchSession

  const memory = await memoryByPart(await service.processes())
  add('memory of all per session, Chromium', 'MiB', [(memory.get(browserPart) ?? 0) / size])
  add('memory of all per session, beyond Chromium', 'MiB', [sumBeyondBrowser(memory) / size])

  add('Runtime.evaluate', 'ms', await timeEvaluations(newest))
  const { read } = newest
  if (read) add('read of a session', 'ms', await repeat(reads, () => readOnce(read)))

  const idle = await idleTime(service, idleSeconds)
  add('10 s idle, all but Chromium', 'ms of CPU', [sumBeyondBrowser(idle)])
}

async function timeEvaluations(session: BenchSession): Promise<readonly number[]> {
  const client = await CdpClient.open(session.cdpUrl)
  const page = await client.openPage()
  const times = await repeat(evaluations, () => client.send('Runtime.evaluate', { expression: '1' }, page))
  await client.close()
  return times
}

async function readOnce({ url, headers }: NonNullable<BenchSession['read']>): Promise<void> {
  const response = await fetch(url, { headers })
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`)
  await response.arrayBuffer()
}

async function repeat(count: number, work: () => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = []
  while (times.length < count) times.push(await timeOf(work))
  return times
}
