import { type ClientName, clients } from '../clients.ts'
import { browserPage } from '../pages.ts'
import type { Service, Shape } from '../services/service.ts'
import type { BenchContext } from './measurement.ts'

/** How far a create has come, in the order of the steps. */
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

/** From asking for a session to its first CDP answer and its first loaded page, and how long its end takes. */
export async function measureCreate(context: BenchContext): Promise<void> {
  for (const atOnce of atOnceCounts) {
    const cases = shapes.flatMap((shape) => clientNames.map((client) => ({ shape, client, atOnce })))
    await measureInTurns(context, cases, Math.ceil(context.rounds / atOnce))
  }
}

/** Cases and services in turns: what else the machine does at a time is then the same for all that is compared. */
async function measureInTurns(
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

/** Milliseconds since the session was asked for; for `ended`, since its end was. */
type Times = Readonly<Record<Step, number>>

async function runRound(service: Service, { shape, client, atOnce }: CreateCase, url: string): Promise<Times[]> {
  const sessions = await Promise.all(Array.from({ length: atOnce }, () => startOne(service, shape, client, url)))
  // Only when all have started: an end would take the processor from another's start.
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
