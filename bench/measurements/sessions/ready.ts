import { setTimeout as delay } from 'node:timers/promises'
import { messagingExtension, zipOf } from '../../../e2e/testing/browsers/extension-files.ts'
import { startForwardProxy } from '../../../e2e/testing/servers/forward-proxy.ts'
import { type ClientName, clients } from '../../clients.ts'
import { browserPage } from '../../pages.ts'
import { startBareChromium } from '../../services/bare-chromium.ts'
import { createSession, type ReadyBerth, startReadyBerth } from '../../services/berth.ts'
import type { BenchSession, Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

/** The stages of a create, in order. */
const steps = ['created', 'first CDP answer', 'first page loaded'] as const
type Step = (typeof steps)[number]
type Times = Readonly<Record<Step, number>>

interface ReadyCase {
  readonly shape: Shape
  readonly client: ClientName
  readonly atOnce: number
}

const poolSizes = { headless: 5, headful: 5 } as const
const firstCase: ReadyCase = { shape: 'headless', client: 'raw CDP', atOnce: 1 }
const cases: readonly ReadyCase[] = [
  firstCase,
  { shape: 'headless', client: 'Playwright', atOnce: 1 },
  { shape: 'headful', client: 'raw CDP', atOnce: 1 },
  { shape: 'headful', client: 'Playwright', atOnce: 1 },
  { shape: 'headless', client: 'raw CDP', atOnce: poolSizes.headless },
]
/** Lets the processor become idle after browsers have started. */
const quietMilliseconds = 1_500
/** Node.js runs the compiled code of a create after about as many, so these are not counted. */
const warmUps = 20

export const readyWithSettings = 'ready headless, with viewport, proxy and an extension: created'
export const acquireName = 'acquire from a pool with a free browser'

export function readyName({ shape, client, atOnce }: ReadyCase, step: Step): string {
  return `ready ${shape}, ${client}, ${atOnce} at once: ${step}`
}

/** Provides browsers that are ready, each once. */
interface ReadyBrowsers {
  readonly name: string
  take(shape: Shape): Promise<BenchSession>
  /** Resolves when the configured number is ready. */
  filled(): Promise<void>
}

/** Measures creates for which a browser is ready, beside a pool of bare Chromiums whose first pages have answered. */
export async function measureReady(context: BenchContext): Promise<void> {
  const { pages, figures, rounds } = context
  await using stack = new AsyncDisposableStack()
  const bare = stack.use(await startBareChromium())
  const berth = stack.use(await startReadyBerth(pages.allowed, poolSizes))
  const ready = { name: berth.name, take: (shape: Shape) => berth.create(shape), filled: () => berth.filled() }
  const all: readonly ReadyBrowsers[] = [barePool(bare.name, (shape) => bare.create(shape)), ready]
  const url = browserPage(pages)
  for (let count = 0; count < warmUps; count++) await runBurst(ready, firstCase, url)
  for (const each of cases) {
    const times = all.map((browsers) => ({ browsers, samples: [] as Times[] }))
    while (times.some(({ samples }) => samples.length < rounds)) {
      for (const { browsers, samples } of times) samples.push(...(await runBurst(browsers, each, url)))
    }
    for (const { browsers, samples } of times) {
      for (const step of steps) {
        const milliseconds = samples.map((sample) => sample[step])
        figures.add(browsers.name, readyName(each, step), 'ms', milliseconds)
      }
    }
  }
  await measureSettings(context, berth)
  await measureAcquire(context, berth)
}

function barePool(name: string, create: (shape: Shape) => Promise<BenchSession>): ReadyBrowsers {
  const ready: Record<Shape, BenchSession[]> = { headless: [], headful: [] }
  const start = async (shape: Shape) => {
    const session = await create(shape)
    const connection = await clients['raw CDP'](session.cdpUrl)
    await connection.load('about:blank')
    await connection.close()
    ready[shape].push(session)
  }
  return {
    name,
    take: async (shape) => ready[shape].pop() ?? create(shape),
    filled: async () => {
      for (const shape of ['headless', 'headful'] as const)
        while (ready[shape].length < poolSizes[shape]) await start(shape)
    },
  }
}

/** Takes one ready browser, or several at once, when no other is being started, and ends them. */
async function runBurst(browsers: ReadyBrowsers, each: ReadyCase, url: string): Promise<readonly Times[]> {
  await browsers.filled()
  await delay(quietMilliseconds)
  const started = await Promise.all(Array.from({ length: each.atOnce }, () => start(browsers, each, url)))
  for (const { session } of started) await session.end()
  return started.map(({ times }) => times)
}

interface Started {
  readonly session: BenchSession
  readonly times: Times
}

async function start(browsers: ReadyBrowsers, { shape, client }: ReadyCase, url: string): Promise<Started> {
  const begin = performance.now()
  const session = await browsers.take(shape)
  const created = performance.now() - begin
  const connection = await clients[client](session.cdpUrl)
  const answered = performance.now() - begin
  await connection.load(url)
  const times = { created, 'first CDP answer': answered, 'first page loaded': performance.now() - begin }
  await connection.close()
  return { session, times }
}

async function measureSettings({ figures, rounds }: BenchContext, ready: ReadyBerth): Promise<void> {
  const client = await ready.berth.client()
  await using proxyServer = await startForwardProxy()
  const { id } = await client.proxies.create({
    type: 'custom',
    protocol: 'http',
    config: { host: '127.0.0.1', port: proxyServer.port },
  })
  const zip = await zipOf(messagingExtension('bench', 1))
  await client.extensions.upload({ file: new File([new Uint8Array(zip)], 'bench.zip'), name: 'bench' })
  const settings = { viewport: { width: 1200, height: 800 }, proxy: { id }, extensions: [{ name: 'bench' }] }
  const times: number[] = []
  while (times.length < warmUps + rounds) {
    await ready.filled()
    await delay(quietMilliseconds)
    const begin = performance.now()
    const session = await createSession(ready.berth, 'headless', settings)
    times.push(performance.now() - begin)
    await session.end()
  }
  figures.add(ready.name, readyWithSettings, 'ms', times.slice(warmUps))
}

async function measureAcquire({ figures, rounds }: BenchContext, ready: ReadyBerth): Promise<void> {
  const client = await ready.berth.client()
  const pool = await client.browserPools.create({ size: 2, headless: true, fill_rate_per_minute: 1000 })
  while ((await client.browserPools.retrieve(pool.id)).available_count < 2) await delay(100)
  await ready.filled()
  const times: number[] = []
  while (times.length < warmUps + rounds) {
    await delay(quietMilliseconds)
    const begin = performance.now()
    const headers = { 'content-type': 'application/json' }
    const path = `/browser_pools/${pool.id}/acquire`
    const response = await ready.berth.request(path, { method: 'POST', headers, body: '{}' })
    const { session_id } = (await response.json()) as { session_id: string }
    times.push(performance.now() - begin)
    await client.browserPools.release(pool.id, { session_id })
  }
  figures.add(ready.name, acquireName, 'ms', times.slice(warmUps))
  await client.browserPools.delete(pool.id, { force: true })
}
