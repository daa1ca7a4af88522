import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from './fault/testing/until.ts'
import { Berth, oneServerOnly } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'
import { browserProcess, processesOf } from './testing/processes.ts'

const pages = await startPages()
pages.serve(
  '/busy',
  `<!doctype html><title>busy</title><script>
    let count = 0
    setInterval(() => { count += 1 }, 10)
    const events = new EventSource('/events')
    let told = 0
    events.onmessage = () => { told += 1 }
  </script>`,
)
pages.serve('/events', (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const timer = setInterval(() => response.write('data: x\n\n'), 200)
  response.once('close', () => clearInterval(timer))
})
const environment = { BERTH_EGRESS_ALLOW: pages.allowed }
const berth = await Berth.start({ environment })
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

for (const headless of [true, false]) {
  const kind = headless ? 'headless' : 'headful'

  test(`an unused ${kind} session uses no processor time, and its page continues where it was`, {
    timeout: 120_000,
  }, async (context) => {
    const client = await berth.client()
    const { session_id, cdp_ws_url } = await client.browsers.create({
      headless,
      timeout_seconds: 600,
      start_url: `${pages.url}/busy`,
    })
    // Deleted here, because the other tests count frozen sessions.
    context.after(() => client.browsers.deleteByID(session_id))
    const before = await inPage(
      cdp_ws_url,
      'new Promise((done) => { const look = () => told > 1 ? done(count) : setTimeout(look, 50); look() })',
    )

    await until('frozen sessions', async () => (await countFrozen()) === 1, { limitSeconds: 60 })
    const ticks = await ticksIn(session_id, 1_500)
    const uptime = async () => (await client.browsers.retrieve(session_id)).usage?.uptime_ms
    // The time since when it is frozen is written afterwards.
    await until('an uptime that stands still', () => staysSame(uptime), { limitSeconds: 20 })
    const [count, , readyState] = (await inPage(cdp_ws_url, '[count, told, events.readyState]')) as number[]

    assert.equal(ticks, 0, 'it uses no processor time')
    assert.ok((count ?? 0) >= Number(before), 'the page has kept its state')
    assert.equal(readyState, 1, 'and its connection')
    assert.ok(
      Number(
        await inPage(
          cdp_ws_url,
          'new Promise((done) => { const at = told; const look = () => told > at ? done(told) : setTimeout(look, 50); look() })',
        ),
      ) > 0,
    )
    assert.doesNotMatch(berth.log, /a program of a session crashed/)
  })
}

test('a frozen session survives a killed server, and is woken and deleted by the next one', {
  timeout: 120_000,
  ...oneServerOnly('each counts only the frozen machines of its own host, and the one that is killed must have both'),
}, async () => {
  const client = await berth.client()
  const { session_id } = await client.browsers.create({
    headless: true,
    timeout_seconds: 600,
    start_url: `${pages.url}/busy`,
  })
  const other = await client.browsers.create({ headless: true, timeout_seconds: 600 })
  await until('frozen sessions', async () => (await countFrozen()) === 2, { limitSeconds: 60 })

  await berth.signal('SIGKILL')
  const { dataFolder } = berth
  await using next = await Berth.start({ dataFolder, environment })
  const restarted = await next.client()
  assert.equal(await ticksIn(session_id, 1_000), 0, 'it is taken up frozen')
  const woken = await restarted.browsers.process.exec(session_id, { command: 'echo', args: ['awake'] })
  await restarted.browsers.deleteByID(other.session_id)

  assert.equal(Buffer.from(woken.stdout_b64 ?? '', 'base64').toString(), 'awake\n')
  await assert.rejects(browserProcess(other.session_id), /no browser runs/)
  await restarted.browsers.deleteByID(session_id)
})

async function inPage(cdpUrl: string, expression: string): Promise<unknown> {
  const cdp = await CdpClient.open(cdpUrl)
  try {
    // A create does not wait for its start page.
    return await cdp.evaluate(await cdp.attachToPage((url) => url.endsWith('/busy')), expression)
  } finally {
    await cdp.close()
  }
}

async function staysSame(value: () => Promise<unknown>): Promise<boolean> {
  const before = await value()
  await delay(100)
  return (await value()) === before
}

async function countFrozen(): Promise<number> {
  const text = await (await berth.request('/metrics')).text()
  return Number(/^berth_sessions_frozen (\d+)$/m.exec(text)?.[1])
}

/** Processor time that the machine of a session uses during this time. */
async function ticksIn(sessionId: string, milliseconds: number): Promise<number> {
  const before = await ticksOfMachine(sessionId)
  await delay(milliseconds)
  return (await ticksOfMachine(sessionId)) - before
}

async function ticksOfMachine(sessionId: string): Promise<number> {
  const processes = await processesOf(sessionId)
  assert.ok(processes.length > 5)
  const ticks = await Promise.all(processes.map(({ pid }) => ticksOf(pid)))
  return ticks.reduce((sum, some) => sum + some, 0)
}

async function ticksOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
