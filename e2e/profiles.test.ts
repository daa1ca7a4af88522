import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, test } from 'node:test'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { isDeep, rounds } from './fault/testing/deep.ts'
import { FaultTestbed } from './fault/testing/fault-testbed.ts'
import { until } from './fault/testing/until.ts'
import { messagingExtension, zipOf } from './testing/browsers/extension-files.ts'
import { CdpClient } from './testing/cdp.ts'
import { endlessScript, startPages } from './testing/pages.ts'
import { browserProcess } from './testing/processes.ts'

const pages = await startPages()
const environment = { BERTH_EGRESS_ALLOW: pages.allowed }
const chrome_policy = pages.trusted
const testbed = await FaultTestbed.open()
// A kill leaves the sessions as they are.
const flags = ['--stop-sessions']
let berth = await testbed.start({ environment, flags })
after(async () => {
  await testbed[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
for (const name of ['one', 'two', 'three']) pages.serve(`/${name}`, `<!doctype html><title>${name}</title>`)
pages.serve('/login', '<!doctype html><title>in</title>')
// Separate from the page: a restored tab loads the page again, which would set them again.
pages.serve('/cookies', (request, response) => {
  const run = new URL(request.url ?? '', pages.url).searchParams.get('run')
  response.writeHead(204, { 'set-cookie': [`kept=${run}; Max-Age=86400`, `session=${run}`] }).end()
})

interface Attached extends AsyncDisposable {
  readonly browser: Browser
  readonly context: BrowserContext
  readonly page: Page
}

/** Connects Playwright to the session and its first page. */
async function attach({ cdp_ws_url }: { cdp_ws_url: string }): Promise<Attached> {
  const browser = await chromium.connectOverCDP(cdp_ws_url)
  const context = browser.contexts()[0] as BrowserContext
  return { browser, context, page: context.pages()[0] as Page, [Symbol.asyncDispose]: () => browser.close() }
}

/** Writes every kind of state that a page can store, each with the number of the run. */
async function write(page: Page, run: string): Promise<void> {
  await page.goto(`${pages.url}/login?run=${run}`)
  await page.evaluate(`(async () => {
    await fetch('/cookies?run=${run}')
    localStorage.setItem('run', '${run}')
    await (await caches.open('kept')).put('/run', new Response('${run}'))
    const change = (${openDatabase}).then((database) => database.transaction('runs', 'readwrite'))
    ;(await change).objectStore('runs').put('${run}', 'run')
    await new Promise(async (resolve) => { (await change).oncomplete = resolve })
  })()`)
}

const openDatabase = `new Promise((resolve) => {
  const opening = indexedDB.open('kept', 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore('runs')
  opening.onsuccess = () => resolve(opening.result)
})`

/** Reads the state of a session in a new page. */
async function read(context: BrowserContext): Promise<Record<string, unknown>> {
  const page = await context.newPage()
  await page.goto(`${pages.url}/one`)
  const stored = await page.evaluate(`(async () => {
    const cached = await caches.match('/run')
    const reading = (await (${openDatabase})).transaction('runs').objectStore('runs').get('run')
    await new Promise((resolve) => { reading.onsuccess = resolve })
    return { local: localStorage.getItem('run'), cached: await cached?.text(), indexed: reading.result }
  })()`)
  await page.close()
  const cookies = await context.cookies(pages.url)
  return { ...(stored as object), ...Object.fromEntries(cookies.map(({ name, value }) => [name, value])) }
}

const all = (run: string) => ({ local: run, cached: run, indexed: run, kept: run, session: run })

async function targetsOf(session: { cdp_ws_url: string }): Promise<readonly string[]> {
  const client = await CdpClient.open(session.cdp_ws_url)
  const { targetInfos } = await client.send('Target.getTargets')
  await client.close()
  return (targetInfos as { type: string; url: string }[])
    .filter(({ type }) => type === 'page')
    .map(({ url }) => url)
    .toSorted()
}

/** Restored tabs load one after another. */
async function untilTargets(session: { cdp_ws_url: string }, urls: readonly string[]): Promise<void> {
  let seen: readonly string[] = []
  const areThere = async () => {
    seen = await targetsOf(session)
    return String(seen) === String(urls)
  }
  await until('the tabs', areThere, { limitSeconds: 60 }).catch(() => assert.deepEqual(seen, urls))
}

/** Whether the session has ended completely. Only then it is no longer found. */
async function isDone(sessionId: string): Promise<boolean> {
  const response = await berth.request(`/browsers/${sessionId}?include_deleted=true`)
  return ((await response.json()) as { usage_status?: string }).usage_status === 'ready'
}

test('the official client creates, lists, renames and deletes profiles', async () => {
  const client = await berth.client()
  const racing = await Promise.allSettled(Array.from({ length: 20 }, () => client.profiles.create({ name: 'walk-0' })))
  const made = racing.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  for (let index = 1; index < 25; index++) made.unshift(await client.profiles.create({ name: `walk-${index}` }))

  const [winner] = made.slice(-1)
  assert.deepEqual(await client.profiles.retrieve('walk-0'), winner)
  assert.deepEqual(await Array.fromAsync(client.profiles.list({ limit: 10 })), made)
  assert.deepEqual(await Array.fromAsync(client.profiles.list({ query: 'WALK-24' })), made.slice(0, 1))
  const renamed = await client.profiles.update('walk-0', { name: 'renamed' })
  assert.deepEqual([renamed.id, renamed.name], [winner?.id, 'renamed'])
  await assert.rejects(client.profiles.update('walk-1', { name: 'renamed' }), { status: 409 })
  await client.profiles.delete('renamed')
  assert.equal((await client.profiles.create({ name: 'renamed' })).name, 'renamed', 'the name can be used at once')
  for (const { id } of await Array.fromAsync(client.profiles.list())) await client.profiles.delete(id)
  assert.deepEqual(await Array.fromAsync(client.profiles.list()), [])
})

/** A session with a profile behaves the same with a display. */
const savesOf = (headless: boolean) => rounds({ short: headless ? 2 : 1, deep: 10 })

for (const headless of [true, false]) {
  const kind = headless ? 'headless' : 'headful'

  test(`a ${kind} session starts with the cookies, storage and tabs of the session that saved the profile`, async () => {
    const client = await berth.client()
    const profile = await client.profiles.create({ name: `kept-${kind}` })
    assert.equal((await client.profiles.download(profile.id)).status, 202)
    const sizeOf = (round: number) => ({ width: 1024 + 10 * round, height: 768 })

    for (let round = 0; round < savesOf(headless); round++) {
      const session = await client.browsers.create({
        chrome_policy,
        headless,
        viewport: sizeOf(round),
        profile: { name: `kept-${kind}`, save_changes: true },
      })
      if (round > 0) await startsWith(session, { run: `${kind}-${round - 1}`, ...sizeOf(round) })
      const before = await client.profiles.retrieve(profile.id)
      {
        await using attached = await attach(session)
        for (const page of attached.context.pages().slice(1)) await page.close()
        for (const name of ['two', 'three']) await (await attached.context.newPage()).goto(`${pages.url}/${name}`)
        await write(attached.page, `${kind}-${round}`)
      }
      const startedAt = performance.now()
      await client.browsers.deleteByID(session.session_id)
      assert.ok(performance.now() - startedAt < 20_000)
      const saved = await client.profiles.retrieve(profile.id)
      assert.ok(Date.parse(saved.updated_at ?? '') > Date.parse(before.updated_at ?? ''))
    }

    const [saves, viewport] = [savesOf(headless), sizeOf(savesOf(headless))]
    const reader = await client.browsers.create({ chrome_policy, headless, viewport, profile: { id: profile.id } })
    await startsWith(reader, { run: `${kind}-${saves - 1}`, ...viewport })
    await client.browsers.deleteByID(reader.session_id)
  })
}

/** The session has all that the run has left, and a window of its own size. */
async function startsWith(
  session: { cdp_ws_url: string },
  { run, width }: { readonly run: string; readonly width: number },
): Promise<void> {
  const urls = [`${pages.url}/login?run=${run}`, `${pages.url}/three`, `${pages.url}/two`]
  assert.equal((await targetsOf(session)).length, urls.length, 'exactly the tabs, from the start')
  await untilTargets(session, urls)
  await using attached = await attach(session)
  assert.deepEqual(await read(attached.context), all(run))
  const page = await attached.context.newPage()
  assert.equal(await page.evaluate('outerWidth'), width, 'the window is that of the new session')
  await page.close()
}

test('a session with a start URL opens that instead of the tabs of the profile', async () => {
  const client = await berth.client()
  const session = await client.browsers.create({
    chrome_policy,
    headless: true,
    profile: { name: 'kept-headless' },
    start_url: `${pages.url}/one`,
  })

  await untilTargets(session, [`${pages.url}/one`])

  await client.browsers.deleteByID(session.session_id)
})

test('a profile downloads as a tar archive without locks, caches and data of the machine', async () => {
  const client = await berth.client()

  const [packed, plain] = [
    await client.profiles.download('kept-headless'),
    await client.profiles.download('kept-headless', { format: 'tar' } as never),
  ].map(async (response) => Buffer.from(await response.arrayBuffer()))
  const names = execFileSync('tar', ['-t'], { input: await plain })
    .toString()
    .trim()
    .split('\n')

  assert.equal((await packed)?.readUInt32LE(), 0xfd2fb528, 'Zstandard')
  assert.ok(names.includes('Default/Cookies') && names.some((name) => name.startsWith('Default/IndexedDB/')))
  assert.ok(names.some((name) => name.startsWith('Default/Service Worker/CacheStorage/')))
  assert.deepEqual(
    names.filter((name) => !name.startsWith('Default/')),
    [],
  )
  assert.deepEqual(
    names.filter((name) =>
      /(^|\/)(LOCK|LOG|Singleton\w*|Local State)$|(Code |GPU|Dawn\w*)Cache\/|\/Cache\//.test(name),
    ),
    [],
  )
})

test('a session that ends by its timeout is saved, and a page in an endless loop does not delay the next one', async () => {
  const client = await berth.client()
  await client.profiles.create({ name: 'idle' })
  pages.serve('/busy', `<!doctype html><title>busy</title><script>${endlessScript}</script>`)
  const first = await client.browsers.create({
    chrome_policy,
    headless: true,
    timeout_seconds: 10,
    profile: { name: 'idle', save_changes: true },
  })
  {
    await using attached = await attach(first)
    await write(attached.page, 'idle')
    const busy = await attached.context.newPage()
    await busy.goto(`${pages.url}/busy`, { waitUntil: 'commit' })
  }

  await until('its end', () => isDone(first.session_id), { limitSeconds: 40 })
  const second = await client.browsers.create({ chrome_policy, headless: true, profile: { name: 'idle' } })

  await untilTargets(second, [`${pages.url}/busy`, `${pages.url}/login?run=idle`])
  const cdp = await CdpClient.open(second.cdp_ws_url)
  const { cookies } = await cdp.send('Storage.getCookies')
  assert.deepEqual((cookies as { name: string }[]).map(({ name }) => name).toSorted(), ['kept', 'session'])
  await cdp.close()
  await client.browsers.deleteByID(second.session_id)
})

test('an update loads a profile into a running session, under the same addresses, and only once', async () => {
  const client = await berth.client()
  for (const headless of isDeep ? [true, false] : [false]) {
    const kind = headless ? 'headless' : 'headful'
    const session = await client.browsers.create({ chrome_policy, headless })
    const before = await CdpClient.open(session.cdp_ws_url)
    const dropped = new Promise((resolve) => before.socket.once('close', resolve))

    const updated = await client.browsers.update(session.session_id, {
      profile: { name: `kept-${kind}`, save_changes: true },
    })
    await dropped
    const tabs = await targetsOf(session)
    {
      await using attached = await attach(session)
      assert.deepEqual(await read(attached.context), all(`${kind}-${savesOf(headless) - 1}`))
      await write(attached.page, `updated-${kind}`)
    }
    const profile = { name: `kept-${kind}` }
    await assert.rejects(client.browsers.update(session.session_id, { profile }), { status: 409 })
    await client.browsers.deleteByID(session.session_id)

    assert.equal(updated.cdp_ws_url.split('?')[0], session.cdp_ws_url.split('?')[0])
    assert.equal(updated.profile?.name, `kept-${kind}`)
    assert.equal(tabs.length, 3)
    const next = await client.browsers.create({ chrome_policy, headless, profile })
    await using attached = await attach(next)
    assert.deepEqual(await read(attached.context), all(`updated-${kind}`))
  }
})

test('a crashed browser keeps its profile without a lock, and the last session to end wins', async () => {
  const client = await berth.client()
  await client.profiles.create({ name: 'crash' })
  const crashed = await client.browsers.create({
    chrome_policy,
    headless: true,
    profile: { name: 'crash', save_changes: true },
  })
  {
    await using attached = await attach(crashed)
    await write(attached.page, 'before')
  }
  await client.browsers.deleteByID(crashed.session_id)
  const again = await client.browsers.create({
    chrome_policy,
    headless: false,
    profile: { name: 'crash', save_changes: true },
  })

  process.kill(await browserProcess(again.session_id), 'SIGKILL')
  {
    await using attached = await attach(again)
    assert.deepEqual(await read(attached.context), all('before'), 'the next Chromium has the profile too')
    assert.deepEqual(await targetsOf(again), ['about:blank'])
  }
  await client.browsers.deleteByID(again.session_id)
  const [saver, other] = await Promise.all([
    client.browsers.create({ chrome_policy, headless: false, profile: { name: 'crash', save_changes: true } }),
    client.browsers.create({ chrome_policy, headless: true, profile: { name: 'crash', save_changes: true } }),
  ])
  for (const [session, run] of [
    [saver, 'of-the-last'],
    [other, 'of-the-first'],
  ] as const) {
    assert.deepEqual(await targetsOf(session), ['about:blank'], 'no dialog, no page of a crash')
    await using attached = await attach(session)
    await write(attached.page, run)
  }
  await client.browsers.deleteByID(other.session_id)
  await client.browsers.deleteByID(saver.session_id)

  const last = await client.browsers.create({ chrome_policy, headless: true, profile: { name: 'crash' } })
  await using attached = await attach(last)
  assert.deepEqual(await read(attached.context), all('of-the-last'))
})

test('an extension runs in a session that starts with a profile, also if the profile already had it', async () => {
  const client = await berth.client()
  const zip = await zipOf(messagingExtension('talker', 1))
  await client.extensions.upload({ file: new File([new Uint8Array(zip)], 'talker.zip'), name: 'talker' })
  await client.profiles.create({ name: 'extended' })
  for (let round = 0; round < 2; round++) {
    const session = await client.browsers.create({
      chrome_policy,
      headless: true,
      extensions: [{ name: 'talker' }],
      profile: { name: 'extended', save_changes: true },
    })
    {
      await using attached = await attach(session)
      if (round > 0) assert.equal((await read(attached.context)).local, 'extended')
      await write(attached.page, 'extended')
      await attached.page.goto(`${pages.url}/one`)
      await attached.page.waitForFunction('document.documentElement.dataset.talker')
    }
    await client.browsers.deleteByID(session.session_id)
  }
})

test('kill -9 of the server during a save leaves either the old or the new state complete', async () => {
  let expected = ['start']
  const client = await berth.client()
  await client.profiles.create({ name: 'killed' })
  const lastRound = rounds({ short: 2, deep: 30 })
  for (let round = 0; round <= lastRound; round++) {
    const client = await berth.client()
    const session = await client.browsers.create({
      chrome_policy,
      headless: true,
      profile: { name: 'killed', save_changes: true },
    })
    {
      await using attached = await attach(session)
      const found = await read(attached.context)
      if (round > 0) assert.deepEqual(found, all(String(found.local)), 'all of it is of one session')
      if (round > 0) assert.ok(expected.includes(String(found.local)), `${found.local} is one of ${expected}`)
      expected = round === 0 ? [] : [String(found.local)]
      await write(attached.page, `run-${round}`)
      expected.push(`run-${round}`)
    }
    // The first creates a state, and the last reads what the kill before has left.
    if (round === 0 || round === lastRound) {
      await client.browsers.deleteByID(session.session_id)
      continue
    }
    const deletion = berth.request(`/browsers/${session.session_id}`, { method: 'DELETE' }).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, (round * 61) % 220)) // Interrupts the save at a different moment each time.
    await berth.signal('SIGKILL')
    await deletion
    berth = await testbed.start({ environment, flags })
    // The delete may not have reached the server. If it did, the next server finishes it.
    const { status } = await berth.request(`/browsers/${session.session_id}`, { method: 'DELETE' })
    await until('the end of the session', () => isDone(session.session_id), { limitSeconds: 30 }).catch(
      (cause: Error) => assert.fail(`${cause.message}, after a delete with ${status}:\n${berth.log}`),
    )
  }
})

test('a server that ends its sessions when it stops saves their profiles', async () => {
  const profile = { name: 'stopped', save_changes: true }
  const before = await berth.client()
  await before.profiles.create({ name: 'stopped' })
  const session = await before.browsers.create({ chrome_policy, headless: true, profile })
  {
    await using attached = await attach(session)
    await write(attached.page, 'stopped')
  }

  await berth.signal('SIGTERM')
  berth = await testbed.start({ environment, flags })

  const client = await berth.client()
  const next = await client.browsers.create({ chrome_policy, headless: true, profile: { name: 'stopped' } })
  await using attached = await attach(next)
  assert.deepEqual(await read(attached.context), all('stopped'))
})
