import { type ClientName, clients } from '../../clients.ts'
import { browserPage } from '../../pages.ts'
import type { Service, Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

/** The stages of a create and a delete, in order. */
const steps = ['created', 'first CDP answer', 'first page loaded', 'ended'] as const
type Step = (typeof steps)[number]

interface CreateCase {
  readonly shape: Shape
  readonly client: ClientName
  readonly atOnce: number
}

const shapes: readonly Shape[] = ['headless', 'headful']
const clientNames = Object.keys(clients) as readonly ClientName[]
const atOnceCounts = [1, 5]

export function createName({ shape, client, atOnce }: CreateCase, step: Step): string {
  return `create ${shape}, ${client}, ${atOnce} at once: ${step}`
}

/**
 * Measures the time from the request for a session to its first CDP response and first loaded page, and the time of its
 * end.
 */
export async function measureCreate(context: BenchContext): Promise<void> {
  for (const atOnce of atOnceCounts) {
    const cases = shapes.flatMap((shape) => clientNames.map((client) => ({ shape, client, atOnce })))
    await measureInterleaved(context, cases, Math.ceil(context.rounds / atOnce))
  }
}

/** Alternates cases and services, so that other load on the machine affects all of them. */
async function measureInterleaved(
  { services, pages, figures }: BenchContext,
  cases: readonly CreateCase[],
  turns: number,
): Promise<void> {
  const all = cases.flatMap((each) => services.map((service) => ({ each, service, times: [] as Times[] })))
  for (let turn = 0; turn < turns; turn += 1) {
    for (const { each, service, times } of all) times.push(...(await runRound(service, each, browserPage(pages))))
  }
  for (const { each, service, times } of all) {
    for (const step of steps) {
      const samples = times.map((time) => time[step])
      figures.add(service.name, createName(each, step), 'ms', samples)
    }
  }
}

/** Milliseconds since the request for the session, or for `ended` since the request to end it. */
type Times = Readonly<Record<Step, number>>

async function runRound(service: Service, { shape, client, atOnce }: CreateCase, url: string): Promise<Times[]> {
  const sessions = await Promise.all(Array.from({ length: atOnce }, () => startOne(service, shape, client, url)))
  // Ends sessions only when all have started: ending one would slow down the start of another.
  return Promise.all(
    sessions.map(async ({ session, connection, times }) => {
      await connection.close()
      const start = performance.now()
      await session.end()
      return { ...times, ended: performance.now() - start }
    }),
  )
}

async function startOne(service: Service, shape: Shape, client: ClientName, url: string) {
  const start = performance.now()
  const session = await service.create(shape)
  const created = performance.now() - start
  const connection = await clients[client](session.cdpUrl)
  const answered = performance.now() - start
  await connection.load(url)
  const loaded = performance.now() - start
  return { session, connection, times: { created, 'first CDP answer': answered, 'first page loaded': loaded } }
}
