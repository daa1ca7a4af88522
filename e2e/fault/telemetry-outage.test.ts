import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Berth } from '../testing/berth.ts'
import { CdpClient } from '../testing/cdp.ts'
import { isDeep } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { killPostgres } from './testing/parts.ts'
import { call, createSession } from './testing/sessions.ts'
import { until } from './testing/until.ts'

const outageSeconds = isDeep ? 30 : 3
const everyMilliseconds = 20

interface Envelope {
  readonly seq: number
  readonly event: { readonly type: string; readonly data?: { readonly text?: string; readonly count?: number } }
}

test(`events of ${outageSeconds} s without a database, and of a killed server, are stored or reported as lost`, async () => {
  await using testbed = await FaultTestbed.open()
  const first = await testbed.start()
  const { session_id: id, cdp_ws_url } = await createSession(first, {
    telemetry: { browser: { console: { enabled: true } } },
    timeout_seconds: 600,
  })
  const client = await CdpClient.open(cdp_ws_url)
  const page = await client.openPage()
  const count = `globalThis.told = 0; setInterval(() => console.log(String(++told)), ${everyMilliseconds})`
  await client.evaluate(page, count)
  await untilStored(first, id, 10)

  const repair = await breakDatabase(testbed)
  await until('an outage', async () => (await call(first, 'GET', `/browsers/${id}`)).status === 503, {
    limitSeconds: 20,
  })
  await delay(outageSeconds * 1000)
  const during = Number(await client.evaluate(page, 'told'))
  await repair()
  await untilStored(first, id, during)
  await first.signal('SIGKILL')
  const second = await testbed.start()
  const again = await CdpClient.open(cdp_ws_url.replace(new URL(first.url).host, new URL(second.url).host))
  const last = Number(await stopCounting(again))
  const events = await untilStored(second, id, last)

  const numbers = events.flatMap(({ event }) => (event.type === 'console_log' ? [Number(event.data?.text)] : []))
  assert.deepEqual(numbers, numbers.toSorted((one, other) => one - other).filter(isNew), 'in order, and each once')
  const lost = events.reduce((sum, { event }) => sum + (event.data?.count ?? 0), 0)
  assert.equal(numbers.length + lost, last, `${lost} of ${last} are told as lost`)
  const gaps = events.filter(({ seq, event }, index) => {
    return seq !== (events[index - 1]?.seq ?? 0) + (event.type === 'monitor_events_lost' ? (event.data?.count ?? 0) : 1)
  })
  assert.deepEqual(gaps, [], 'no gap is silent')
})

const isNew = (number: number, index: number, all: readonly number[]) => number !== all[index - 1]

/** Kills PostgreSQL and prevents berth from starting it until the returned function is called. */
async function breakDatabase(testbed: FaultTestbed): Promise<() => Promise<void>> {
  const path = join(testbed.folder, 'postgres', 'postgresql.conf')
  const content = await readFile(path, 'utf8')
  await writeFile(path, `${content}\nno_such_setting = on\n`)
  await killPostgres(testbed.view)
  return () => writeFile(path, content)
}

async function stopCounting(client: CdpClient): Promise<unknown> {
  const { targetInfos } = await client.send('Target.getTargets')
  for (const { targetId, type } of targetInfos as readonly { readonly targetId: string; readonly type: string }[]) {
    if (type !== 'page') continue
    const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true })
    const stop = 'for (let timer = 0; timer < 100; timer++) clearInterval(timer); globalThis.told'
    const told = await client.evaluate(sessionId as string, stop)
    if (told !== undefined && told !== null) return told
  }
  throw new Error('no page counts')
}

/** All events, once the one with this number is stored. */
async function untilStored(berth: Berth, id: string, number: number): Promise<readonly Envelope[]> {
  const newest = `/browsers/${id}/telemetry/events?order=desc&limit=1&category=console`
  const isStored = async () => {
    const response = await berth.request(newest, { headers: { connection: 'close' } })
    const [envelope] = response.ok ? ((await response.json()) as Envelope[]) : []
    return Number(envelope?.event.data?.text) >= number
  }
  await until(`event ${number}`, isStored, { limitSeconds: 60, everyMilliseconds: 50 })
  return read(berth, id)
}

async function read(berth: Berth, id: string): Promise<readonly Envelope[]> {
  const events: Envelope[] = []
  for (let offset = ''; ; ) {
    const path = `/browsers/${id}/telemetry/events?since=1h&limit=100${offset}`
    const response = await berth.request(path, { headers: { connection: 'close' } })
    if (!response.ok) return []
    events.push(...((await response.json()) as Envelope[]))
    if (response.headers.get('x-has-more') !== 'true') return events
    offset = `&offset=${response.headers.get('x-next-offset')}`
  }
}
