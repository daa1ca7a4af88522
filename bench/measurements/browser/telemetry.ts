import { setTimeout as delay } from 'node:timers/promises'
import { CdpClient } from '../../../e2e/testing/cdp.ts'
import { browserPage } from '../../pages.ts'
import type { BenchSession, Service } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'
import { timeOf } from './in-session.ts'

const everyCategory = [
  'control',
  'connection',
  'system',
  'captcha',
  'console',
  'network',
  'page',
  'interaction',
  'screenshot',
  'platform',
]

/** What is captured in each case, in one session. */
const captures = {
  off: { enabled: false },
  default: { enabled: true },
  all: {
    enabled: true,
    browser: Object.fromEntries(everyCategory.map((category) => [category, { enabled: true }])),
  },
} as const
export type Captured = keyof typeof captures
const capturesInOrder = Object.keys(captures) as Captured[]

export const pageWorkName = (captured: Captured) => `page loads and works, telemetry ${captured}`
export const eventRateName = 'telemetry events of 20 sessions, stored'
/** Chromium itself limits it: a message costs it several times what it costs berth. */
const causedRateName = 'telemetry events of 20 sessions, caused by their pages'

const perTurn = 5
const observedSessions = 20
/** Below the limit of an agent. */
const eventsOfEach = 2_000
const storedLimitMilliseconds = 120_000

/** Typical work of a shop's page: requests, document changes with layouts, some messages, some computation. */
const work = `(async () => {
  for (let request = 0; request < 10; request++) await (await fetch('/script')).text()
  for (let change = 0; change < 200; change++) {
    const row = document.querySelector('table').insertRow()
    row.insertCell().textContent = change
    if (change % 10 === 0) row.getBoundingClientRect()
  }
  for (let message = 0; message < 5; message++) console.log('message', message, { of: 'a page' })
  let sum = 0
  for (let count = 0; count < 3e7; count++) sum += count % 7
  return sum
})()`

/** Measures what telemetry costs a page, and how fast its events are stored. */
export async function measureTelemetry(context: BenchContext): Promise<void> {
  for (const service of context.services) {
    await measurePage(service, context)
    await measureEvents(service, context)
  }
}

/** The same page of one session, alternating between the cases, so that noise affects all of them. */
async function measurePage(service: Service, { pages, figures, rounds }: BenchContext): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const session = await service.create('headless')
  stack.defer(() => session.end())
  if (!session.read) return
  const client = await CdpClient.open(session.cdpUrl)
  stack.defer(() => client.close())
  const page = await client.openPage()
  await client.send('Page.enable', {}, page)
  const loadAndWork = async () => {
    await client.send('Page.navigate', { url: browserPage(pages) }, page)
    // Set when its script has counted the cells.
    while ((await client.evaluate(page, 'document.readyState + document.title')) !== 'complete400') await delay(1)
    await client.send('Runtime.evaluate', { expression: work, awaitPromise: true }, page)
  }
  const times = new Map(capturesInOrder.map((captured) => [captured, [] as number[]]))
  for (let round = 0; round < rounds; round++) {
    for (const [captured, own] of times) {
      await setTelemetry(session, captures[captured])
      await loadAndWork() // Excludes the cost of attaching after a change of settings.
      for (let turn = 0; turn < perTurn; turn++) own.push(await timeOf(loadAndWork))
    }
  }
  for (const [captured, samples] of times) figures.add(service.name, pageWorkName(captured), 'ms', samples)
}

/** Pages of many sessions cause events as fast as they can. */
async function measureEvents(service: Service, { figures, maxSessions }: BenchContext): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const count = Math.min(observedSessions, maxSessions)
  const observed: { readonly session: BenchSession; readonly tell: () => Promise<unknown> }[] = []
  while (observed.length < count) {
    const session = await service.create('headless')
    stack.defer(() => session.end())
    if (!session.read) return
    await setTelemetry(session, { browser: { console: { enabled: true } } })
    const client = await CdpClient.open(session.cdpUrl)
    stack.defer(() => client.close())
    const page = await client.openPage()
    const tellAll = `for (let event = 1; event <= ${eventsOfEach}; event++) console.log(String(event))`
    observed.push({ session, tell: () => client.evaluate(page, tellAll) })
  }
  const begin = performance.now()
  const rateUntilNow = () => (count * eventsOfEach * 1000) / (performance.now() - begin)
  await Promise.all(observed.map(({ tell }) => tell()))
  figures.add(service.name, causedRateName, 'events/s', [rateUntilNow()])
  for (const { session } of observed) await untilStored(session)
  figures.add(service.name, eventRateName, 'events/s', [rateUntilNow()])
  if (count < observedSessions) figures.notes.push(`telemetry events are those of ${count} sessions`)
}

async function setTelemetry({ read }: BenchSession, telemetry: object): Promise<void> {
  if (!read) return
  const headers = { ...read.headers, 'content-type': 'application/json' }
  const response = await fetch(read.url, { method: 'PATCH', headers, body: JSON.stringify({ telemetry }) })
  if (!response.ok) throw new Error(`telemetry was answered with ${response.status}: ${await response.text()}`)
}

async function untilStored({ read }: BenchSession): Promise<void> {
  const newest = `${read?.url}/telemetry/events?order=desc&limit=1&category=console`
  const deadline = performance.now() + storedLimitMilliseconds
  for (;;) {
    const response = await fetch(newest, { headers: { ...read?.headers } })
    const [envelope] = (await response.json()) as readonly {
      readonly event: { readonly data: { readonly text: string } }
    }[]
    if (Number(envelope?.event.data.text) === eventsOfEach) return
    if (performance.now() > deadline) throw new Error('the events of a session were not stored')
    await delay(50)
  }
}
