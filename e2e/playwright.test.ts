import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { isDeep } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth, createRouted } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { createCheckedFetch } from './testing/checked-fetch.ts'
import { endlessScript, startPages } from './testing/pages.ts'

const pages = await startPages()
pages.serve(
  '/state',
  '<!doctype html><title>State</title><script>window.counter = 7; console.log("from the page")</script>',
)
pages.serve('/stuck', `<!doctype html><title>Stuck</title><script>setTimeout(() => { ${endlessScript} }, 0)</script>`)
pages.serve(
  '/never',
  (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).write('<title>Never'),
)
const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const client = await berth.client()
const session = await client.browsers.create({ headless: true })

interface Outcome {
  readonly success: boolean
  readonly result?: unknown
  readonly error?: string
  readonly stdout?: string
  readonly stderr?: string
  readonly tab?: { readonly target_id: string; readonly created: boolean }
}

/** Runs the code in the session above. The official types do not include executors yet. */
async function run(code: string, options: object = {}, through: Kernel = client): Promise<Outcome> {
  return (await through.browsers.playwright.execute(session.session_id, { code, ...options })) as Outcome
}

async function operation(path: string, init: RequestInit = {}): Promise<Response> {
  return berth.request(`/browsers/${session.session_id}${path}`, init)
}

test('code has the same result, output and errors under both roots', async () => {
  const routed: string[] = []
  const checkedFetch = await createCheckedFetch(berth.url)
  const direct = createRouted('playwright', {
    apiKey: berth.apiKey,
    baseURL: berth.url,
    maxRetries: 0,
    fetch: (input, init) => {
      routed.push(String(input instanceof Request ? input.url : input))
      return String(input).includes('jwt=') ? fetch(input, init) : checkedFetch(input, init)
    },
  })
  await direct.browsers.retrieve(session.session_id)

  for (const through of [client, direct]) {
    const typed = await run(
      `interface Found { title: string }
       const url: string = '${pages.url}/state'
       await page.goto(url)
       console.log('seen', { from: 'code' })
       console.error('and this')
       return { title: await page.title(), counter: await page.evaluate<number>(() => (window as any).counter) } satisfies Found & object`,
      {},
      through,
    )
    assert.deepEqual(typed.result, { title: 'State', counter: 7 })
    assert.equal(typed.success, true)
    assert.equal(typed.stdout, "seen { from: 'code' }\n")
    assert.equal(typed.stderr, 'and this\n')
    assert.equal(typed.tab?.created, false)

    const thrown = await run('const one = 1\nthrow new TypeError("no good")', {}, through)
    assert.deepEqual([thrown.success, thrown.error], [false, 'no good'])
    assert.match(thrown.stderr ?? '', /^TypeError: no good\n {4}at .*:2:7\)?$/)
    assert.match((await run('return (', {}, through)).stderr ?? '', /^SyntaxError: /)
    assert.match((await run('const a = {}; a.a = a; return a', {}, through)).error ?? '', /cannot be written as JSON/)
    assert.match((await run('return () => 1', {}, through)).error ?? '', /it is a function/)
    assert.match((await run('import fs from "node:fs"', {}, through)).error ?? '', /import/)
    assert.deepEqual(
      await run('const { sep } = await import("node:path"); return sep', {}, through).then(({ result }) => result),
      '/',
    )
    assert.equal('result' in (await run('await page.title()', {}, through)), false)
  }
  assert.ok(routed.some((url) => url.startsWith(`${session.base_url}/playwright/execute?jwt=`)))
})

test('a call leaves its tab to the next, and nothing else', async () => {
  await run(
    `globalThis.kept = 1; page.on('dialog', () => {}); await page.goto('${pages.url}/state'); await page.setViewportSize({ width: 300, height: 300 })`,
  )

  const { result } = await run('return [typeof kept, page.url(), (await page.evaluate("innerWidth")) === 300]')

  assert.deepEqual(result, ['undefined', `${pages.url}/state`, false])
})

/** Code that would continue after its call, and write into the output of the next one or end its process. */
const leftovers: Readonly<Record<string, string>> = {
  'a timer': `setTimeout(() => console.log('LATE'), 50)`,
  'a timer that throws': `setTimeout(() => { throw new Error('LATE') }, 100)`,
  'a detached program': `require('node:child_process')
    .spawn('sh', ['-c', 'sleep 1; touch /tmp/LATE; sleep 4321'], { detached: true, stdio: 'ignore', env: {} }).unref()`,
  'a thread': `new (require('node:worker_threads').Worker)('setInterval(() => {}, 50)', { eval: true }).unref()`,
}

/** Each takes the starts of two processes. */
const deepLeftovers: Readonly<Record<string, string>> = {
  'an interval that keeps nothing alive': `setInterval(() => console.log('LATE'), 50).unref()`,
  'a promise that is never awaited': `void (async () => {
    for (;;) { await new Promise((go) => setTimeout(go, 20)); console.log('LATE') }
  })()`,
  'a listener of the process': `process.on('unhandledRejection', () => console.log('LATE'))`,
}

for (const [what, code] of Object.entries({ ...leftovers, ...(isDeep && deepLeftovers) })) {
  test(`${what} ends with its call`, async () => {
    assert.equal((await run(`${code}; return process.pid`)).success, true)

    const next = await run(`
      Promise.reject(new Error('of this call'))
      await new Promise((go) => setTimeout(go, 300))
      const { readdirSync, readFileSync } = require('node:fs')
      const lines = readdirSync('/proc').flatMap((pid) => {
        try { return [readFileSync('/proc/' + pid + '/cmdline', 'utf8')] } catch { return [] }
      })
      return lines.filter((line) => line.includes('4321'))`)

    assert.equal(next.success, true, String(next.error))
    assert.deepEqual(next.result, [])
    assert.doesNotMatch(`${next.stdout}${next.error}`, /LATE/)
  })
}

test('code that leaves nothing behind reuses its process', async () => {
  const pids = new Set<unknown>()
  for (let call = 0; call < 6; call++) {
    pids.add((await run(`await page.title(); await page.waitForTimeout(5); return process.pid`)).result)
  }

  // On a busy machine, what a call has closed may take too long to go, and its process is replaced.
  assert.ok(pids.size < 6, `${pids.size} processes`)
})

test('a hanging tab in front leaves most of a short time limit to the code', async () => {
  const { session_id: id } = await client.browsers.create({ headless: true })
  const { playwright } = client.browsers
  await playwright.execute(id, {
    code: `await page.goto('${pages.url}'); await page.evaluate("setTimeout(() => { ${endlessScript} }, 0)")`,
  })

  const outcome = await playwright.execute(id, {
    code: `await page.setContent('<title>Well</title>'); return page.title()`,
    timeout_sec: 10,
  })

  assert.equal(outcome.result, 'Well', String(outcome.error))
  await client.browsers.deleteByID(id)
})

test('the default executor works in the tab in front, and opens one if there is none', async () => {
  const cdp = await CdpClient.open(session.cdp_ws_url)
  const { targetInfos } = await cdp.send('Target.getTargets')
  const before = (targetInfos as { targetId: string; type: string }[]).filter(({ type }) => type === 'page')
  const second = (await cdp.send('Target.createTarget', { url: `${pages.url}/` })).targetId as string

  assert.equal((await run('return 1')).tab?.target_id, second)
  await cdp.send('Target.activateTarget', { targetId: before[0]?.targetId })
  assert.equal((await run('return 1')).tab?.target_id, before[0]?.targetId)
  for (const targetId of [second, ...before.map((target) => target.targetId)]) await cdp.closePage(targetId)
  const fresh = await run('return [page.url(), context.pages().length]')

  assert.deepEqual([fresh.result, fresh.tab?.created], [['about:blank', 1], true])
  await cdp.close()
})

test('code of an executor cannot close the browser, and its connections are restored', async () => {
  const closed = await run(`
    await (await browser.newBrowserCDPSession()).send('Browser.close').catch(() => {})
    await browser.close()
    return 'closed'`)

  assert.equal(closed.result, 'closed')
  assert.equal((await run('return browser.isConnected()')).result, true)
})

test('an endless loop ends at its time limit and blocks no other call', async () => {
  const cdp = await CdpClient.open(session.cdp_ws_url)
  await run('return 1', { executor: 'other' })
  const loop = run('console.log("begun"); while (true);', { timeout_sec: 4 })
  const other = await run('const opened = await context.newPage(); await opened.close(); return page.url()', {
    executor: 'other',
  })
  const page = await cdp.openPage(`${pages.url}/`)

  assert.equal(await cdp.evaluate(page, '1 + 1'), 2)
  assert.equal(other.result, 'about:blank')
  assert.equal(await Promise.race([loop, 'still running']), 'still running')
  const ended = await loop
  assert.equal(ended.success, false)
  assert.equal(ended.error, 'Execution timed out after 4000ms')
  assert.equal(ended.stdout, 'begun\n')
  assert.equal((await run('return "alive"')).result, 'alive')
  await cdp.close()
})

test('tabs that do not respond delay no call for another tab', async () => {
  const cdp = await CdpClient.open(session.cdp_ws_url)
  await run('return 1', { executor: 'well' })
  await cdp.openPage(`${pages.url}/stuck`)
  const dialog = await cdp.openPage(`${pages.url}/`)
  cdp.send('Runtime.evaluate', { expression: 'alert("wait")' }, dialog).catch(() => {})
  await cdp.openPage(`${pages.url}/never`)

  const started = performance.now()
  const named = await run(`await page.goto('${pages.url}/state'); return page.title()`, { executor: 'well' })
  assert.equal(named.result, 'State')
  assert.ok(performance.now() - started < 20_000)

  const { targetInfos } = await cdp.send('Target.getTargets')
  for (const { targetId, url } of targetInfos as { targetId: string; url: string }[]) {
    if (!url.endsWith('/stuck')) continue
    await cdp.send('Target.activateTarget', { targetId })
    const instead = await run('return page.url()')
    assert.deepEqual([instead.result, instead.tab?.created], ['about:blank', true])
    assert.match(instead.stderr ?? '', /does not answer/)
    await cdp.closePage(targetId)
  }
  await cdp.close()
})

test('code that ends its own process only fails its own call', async () => {
  for (const code of [
    'process.exit(3)',
    'setTimeout(() => { throw new Error("late") }); await new Promise(() => {})',
  ]) {
    const { success, error } = await run(code)
    assert.equal(success, false)
    assert.match(error ?? '', /exit code 3|late/)
    assert.equal((await run('return 1')).result, 1)
  }
  const late = await run('Promise.reject(new Error("unheard")); await page.waitForTimeout(50); return 1')
  assert.equal(late.result, 1)
  assert.match(late.stderr ?? '', /Unhandled rejection: Error: unheard/)
})

test('output and results are limited', async () => {
  const much = await run('for (let i = 0; i < 40; i++) console.log("x".repeat(100_000)); return 1')
  assert.equal(much.result, 1)
  assert.ok((much.stdout ?? '').length < 1_100_000)
  assert.match(much.stdout ?? '', /left out\]\n$/)

  const large = await run('return "x".repeat(20_000_000)')
  assert.match(large.error ?? '', /larger than/)
  assert.equal(((await run('return "x".repeat(10_000_000)')).result as string).length, 10_000_000)
})

test('code has no access to the agent or the host', async () => {
  const { result } = await run(`
    const fs = await import('node:fs')
    const sockets = fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd) } catch { return '' } })
    const listening = fs.readFileSync('/proc/self/net/unix', 'utf8').split('\\n').filter((line) => / 00010000 /.test(line)).map((line) => line.trim().split(/\\s+/)[6])
    return { leaked: sockets.filter((name) => listening.includes(/\\d+/.exec(name)?.[0])), environment: Object.keys(process.env).sort(), user: process.getuid() }`)

  const { leaked, environment, user } = result as { leaked: string[]; environment: string[]; user: number }
  assert.deepEqual(leaked, [])
  assert.notEqual(user, 0)
  assert.deepEqual(environment, [
    ...['BERTH_PROCESS_ID', 'HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'USER', 'XDG_RUNTIME_DIR'],
  ])
})

async function openTargets(): Promise<readonly string[]> {
  const cdp = await CdpClient.open(session.cdp_ws_url)
  const { targetInfos } = await cdp.send('Target.getTargets')
  await cdp.close()
  return (targetInfos as { targetId: string }[]).map(({ targetId }) => targetId)
}

test('named executors have tabs of their own, and are listed, limited and deleted', async () => {
  const listed = async () => {
    const { executors } = (await (await operation('/playwright/executors')).json()) as {
      executors: { name: string; busy: boolean; target_id?: string; url?: string }[]
    }
    return executors
  }
  for (const { name } of (await listed()).slice(1)) {
    assert.equal((await operation(`/playwright/executors/${name}`, { method: 'DELETE' })).status, 204)
  }
  const first = await run(`await page.goto('${pages.url}/state'); return 1`, { executor: 'first' })
  assert.equal(first.tab?.created, true)
  assert.deepEqual(await run('return page.url()', { executor: 'first' }), {
    success: true,
    result: `${pages.url}/state`,
    tab: { target_id: first.tab?.target_id, created: false },
  })
  await run('await page.close()', { executor: 'first' })
  const second = await run('return 1', { executor: 'first' })
  assert.equal(second.tab?.created, true)

  // Different executors run in parallel: each of the two waits for the other. Calls of one executor run in sequence.
  const meet = (own: string, other: string) => `
    const { existsSync, writeFileSync } = require('node:fs')
    writeFileSync('/tmp/${own}', '')
    while (!existsSync('/tmp/${other}')) await page.waitForTimeout(10)
    return 'met'`
  const met = await Promise.all([run(meet('one', 'two'), { executor: 'first' }), run(meet('two', 'one'))])
  assert.deepEqual(
    met.map(({ result }) => result),
    ['met', 'met'],
  )
  const span = 'const start = Date.now(); await page.waitForTimeout(200); return [start, Date.now()]'
  const spans = await Promise.all([run(span, { executor: 'first' }), run(span, { executor: 'first' })])
  const [[, end = 0] = [], [start = 0] = []] = spans
    .map(({ result }) => result as number[])
    .toSorted(([one = 0], [other = 0]) => one - other)
  assert.ok(start >= end, `the second began at ${start}, and the first ended at ${end}`)

  const pending = run('await new Promise(() => {})', { executor: 'first' })
  const isBusy = async (executor: string) => (await listed()).some(({ name, busy }) => name === executor && busy)
  await until('the call', () => isBusy('first'), { limitSeconds: 30 })
  assert.equal((await operation('/playwright/executors/first', { method: 'DELETE' })).status, 204)
  assert.ok(!(await openTargets()).includes(second.tab.target_id), 'its tab has gone')
  assert.deepEqual([(await pending).success, (await pending).error], [false, 'executor was deleted'])
  assert.equal((await operation('/playwright/executors/first', { method: 'DELETE' })).status, 404)
  const restarted = run('await new Promise(() => {})')
  await until('the call', () => isBusy('default'), { limitSeconds: 30 })
  assert.equal((await operation('/playwright/executors/default', { method: 'DELETE' })).status, 204)
  assert.equal((await restarted).error, 'executor was restarted')

  const kept = await run('return 1', { executor: 'kept' })
  assert.equal((await operation('/playwright/executors/kept?close_tab=false', { method: 'DELETE' })).status, 204)
  const open = await openTargets()
  assert.ok(open.includes(kept.tab?.target_id ?? ''))
  assert.ok(!open.includes(first.tab?.target_id ?? ''))

  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  await Promise.all(names.map((executor) => run('return 1', { executor })))
  const refused = await operation('/playwright/execute', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: 'return 1', executor: 'ninth' }),
  })
  assert.equal(refused.status, 409)
  assert.equal(refused.headers.get('x-should-retry'), 'false')
  const { code, executors } = (await refused.json()) as { code: string; executors: { name: string }[] }
  assert.equal(code, 'executor_limit_reached')
  assert.deepEqual(executors.map(({ name }) => name).sort(), ['default', ...names].sort())
})

test('a browser crash ends the call, and the next call works in the new browser', async () => {
  const crashed = run(
    `await page.goto('chrome://crash').catch(() => {}); await (await browser.newBrowserCDPSession()).send('Browser.crash'); await page.title()`,
  )

  assert.equal((await crashed).success, false)
  assert.equal((await run('return page.url()')).result, 'about:blank')
})

test('invalid calls are refused with the name of the field', async () => {
  for (const [body, field] of [
    [{}, 'code'],
    [{ code: 1 }, 'code'],
    [{ code: '', timeout_sec: 0 }, 'timeout_sec'],
    [{ code: '', timeout_sec: 301 }, 'timeout_sec'],
    [{ code: '', executor: 'a b' }, 'executor'],
    [{ code: '', other: 1 }, 'other'],
  ] as const) {
    const refused = await operation('/playwright/execute', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const { message } = (await refused.json()) as { message: string }
    assert.equal(refused.status, 400)
    assert.match(message, new RegExp(field))
  }
})

test('a headful session runs the same code, and nothing is attached to its pages between calls', async () => {
  const headful = await client.browsers.create()
  const cdp = await CdpClient.open(headful.cdp_ws_url)
  pages.serve(
    '/button',
    `<!doctype html><title>Button</title><button onclick="document.title = 'clicked ' + event.isTrusted">Click</button>`,
  )

  const { result } = await client.browsers.playwright.execute(headful.session_id, {
    code: `
      await page.goto('${pages.url}/button')
      await page.getByRole('button').click()
      await page.waitForFunction(() => document.title !== 'Button')
      return page.title()`,
  })

  assert.equal(result, 'clicked true')
  // While attached, a dialog would wait for the client and new tabs would be delayed.
  const isAttached = async () => {
    const { targetInfos } = await cdp.send('Target.getTargets')
    return (targetInfos as { attached: boolean; type: string }[]).some(
      ({ attached, type }) => attached && type === 'page',
    )
  }
  await until('no attached page', async () => !(await isAttached()), { limitSeconds: 30 })
  await cdp.close()
  await client.browsers.deleteByID(headful.session_id)
})

test('in stealth mode, Patchright runs the code and does not listen to the console, which pages could detect', async () => {
  const stealthy = await client.browsers.create({ headless: true, stealth: true })
  const code = `
    const heard = []
    page.on('console', (message) => heard.push(message.text()))
    await page.goto('${pages.url}/state')
    return heard`

  assert.deepEqual((await run(code)).result, ['from the page'])
  assert.deepEqual((await client.browsers.playwright.execute(stealthy.session_id, { code })).result, [])
  await client.browsers.deleteByID(stealthy.session_id)
})
