import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeep, rounds } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { messagingExtension, zipOf } from './testing/browsers/extension-files.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'
import { listProcesses } from './testing/processes.ts'
import { startExitProxy } from './testing/servers/exit-proxy.ts'

const pages = await startPages()
const exit = await startExitProxy({ name: 'the exit' })
const environment = {
  BERTH_EGRESS_ALLOW: `${pages.allowed},127.0.0.1:${exit.port}`,
  BERTH_RESERVE: 'headless=1,headful=1,headless-profile=1',
}
const folder = await mkdtemp(join(tmpdir(), 'berth-reserve-'))
let berth = await Berth.start({ dataFolder: folder, environment })
let client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
  await exit[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const patience = { limitSeconds: 60 }

/** What a page, a client and a program of a session can observe. */
const inPage = `JSON.stringify({
  agent: navigator.userAgent, webdriver: navigator.webdriver, languages: navigator.languages,
  platform: navigator.platform, hardware: [navigator.hardwareConcurrency, navigator.deviceMemory],
  screen: [screen.width, screen.height, screen.availWidth, screen.availHeight, screen.colorDepth],
  inner: [innerWidth, innerHeight], outer: [outerWidth, outerHeight, screenX, screenY, devicePixelRatio],
  history: history.length, referrer: document.referrer, url: location.href, visible: document.visibilityState,
  focus: document.hasFocus(), cookies: navigator.cookieEnabled && document.cookie.length, online: navigator.onLine,
  zone: Intl.DateTimeFormat().resolvedOptions().timeZone, plugins: [...navigator.plugins].map(({ name }) => name),
  media: ['(prefers-color-scheme: dark)', '(pointer: fine)', '(display-mode: fullscreen)'].map((query) => matchMedia(query).matches),
  storage: [localStorage.length, sessionStorage.length], touch: navigator.maxTouchPoints,
  locale: Intl.NumberFormat().resolvedOptions().locale, connection: navigator.connection?.effectiveType,
  navigation: performance.getEntriesByType('navigation')[0]?.type,
  drift: Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000,
})`

/** Each machine has its own user id, temporary folder name, and window size of Chromium's launch. */
const inMachine = [
  'id -un; hostname; pwd; ls -A ~ ~/Downloads; ls -A /tmp | sed "s/Chromium[.].*/Chromium/"; df --output=size /dev/shm',
  'ulimit -a; env | grep -v BERTH_PROCESS_ID | sort; cat /etc/chromium/policies/managed/*',
  "tr '\\0' '\\n' < /proc/$(pgrep -o -x chromium)/cmdline | grep -vE 'window-size|screen-info'",
].join('; ')

interface Observed {
  readonly page: Record<string, unknown>
  readonly machine: string
  readonly targets: readonly string[]
  readonly window: unknown
  readonly cookies: unknown
  readonly history: unknown
  readonly record: unknown
}

async function observe(request: Parameters<typeof client.browsers.create>[0]): Promise<Observed> {
  const session = await client.browsers.create(request)
  const { session_id, created_at, cdp_ws_url, webdriver_ws_url, base_url, usage, ...record } = session
  assert.ok(created_at && webdriver_ws_url && base_url && usage)
  const cdp = await CdpClient.open(cdp_ws_url)
  const sessionId = await cdp.attachToPage((url) => url.startsWith(pages.url))
  const isLoaded = async () => (await cdp.evaluate(sessionId, 'document.readyState')) === 'complete'
  await until('the start page', isLoaded, patience)
  const { targetInfos } = (await cdp.send('Target.getTargets')) as {
    targetInfos: { type: string; targetId: string; url: string }[]
  }
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId
  const page = JSON.parse(String(await cdp.evaluate(sessionId, inPage)))
  const { bounds } = await cdp.send('Browser.getWindowForTarget', { targetId })
  const { cookies } = await cdp.send('Storage.getCookies')
  const { currentIndex, entries } = (await cdp.send('Page.getNavigationHistory', {}, sessionId)) as {
    currentIndex: number
    entries: { url: string; transitionType: string }[]
  }
  const run = await client.browsers.process.exec(session_id, { command: 'bash', args: ['-c', inMachine] })
  await cdp.close()
  await client.browsers.deleteByID(session_id)
  return {
    page,
    machine: Buffer.from(run.stdout_b64 ?? '', 'base64').toString(),
    targets: targetInfos.map(({ type, url }) => `${type} ${url}`).toSorted(),
    window: bounds,
    cookies,
    history: { currentIndex, entries: entries.map(({ url, transitionType }) => [url, transitionType]) },
    record: lasting(record),
  }
}

/** Without addresses, and fields that the use itself has changed. */
function lasting({ profile, ...record }: { readonly profile?: { readonly last_used_at?: string } }): object {
  return { ...record, profile: profile && { ...profile, last_used_at: undefined }, browser_live_view_url: undefined }
}

type Request = Parameters<typeof client.browsers.create>[0]

const requests: Readonly<Record<string, Request>> = {
  'a headless session': { headless: true, start_url: pages.url },
  'a headless session of another size': {
    headless: true,
    start_url: pages.url,
    viewport: { width: 1203, height: 807 },
    name: 'seen',
    tags: { seen: 'yes' },
    telemetry: { enabled: true },
    network: { private_hosts: ['10.0.0.0/8'] },
  } as Request,
  'a headful session of another size': { start_url: pages.url, viewport: { width: 1203, height: 807 } },
  'a stealth session with policies and a profile': {
    headless: true,
    stealth: true,
    start_url: pages.url,
    viewport: { width: 1203, height: 807 },
    chrome_policy: { BookmarkBarEnabled: true, DefaultGeolocationSetting: 2 },
    profile: { name: 'observed' },
  },
}

/** Each takes the start of three machines. */
const deepRequests: Readonly<Record<string, Request>> = {
  'a headful session without a tab strip': { start_url: pages.url, kiosk_mode: true },
  'a stealth session with policies': {
    headless: true,
    stealth: true,
    start_url: pages.url,
    chrome_policy: { BookmarkBarEnabled: true, DefaultGeolocationSetting: 2 },
  },
  'a stealth session with a profile': {
    headless: true,
    stealth: true,
    start_url: pages.url,
    profile: { name: 'observed' },
  },
}

const kindOf = ({ headless, chrome_policy, profile }: NonNullable<Request>) =>
  `${headless ? 'headless' : 'headful'}${chrome_policy || profile ? '-profile' : ''}`

before(async () => {
  await client.profiles.create({ name: 'observed' })
  const profile = { name: 'observed', save_changes: true }
  const { session_id, cdp_ws_url } = await client.browsers.create({ headless: true, profile, start_url: pages.url })
  await inFirstPage(cdp_ws_url, pages.url, `document.cookie = 'observed=yes; max-age=1000'; localStorage.kept = 1`)
  await client.browsers.deleteByID(session_id)
})

for (const [what, request] of Object.entries({ ...requests, ...(isDeep && deepRequests) })) {
  test(`${what} from the reserve looks the same as one that started cold`, { timeout: 120_000 }, async () => {
    const kind = kindOf(request ?? {})
    await untilReady(kind)
    const claims = await metric('berth_reserve_claims_total', kind)

    const claimed = await observe(request)
    const cold = await observe(request)

    assert.equal(await metric('berth_reserve_claims_total', kind), claims + 1, 'one of the two was claimed')
    assert.deepEqual(claimed, cold)
  })
}

test('a claimed session has its profile, its extension, its proxy and its start page', {
  timeout: 120_000,
}, async () => {
  await client.profiles.create({ name: 'kept' })
  const profile = { name: 'kept', save_changes: true }
  const first = await client.browsers.create({ headless: true, profile, start_url: pages.url })
  await inFirstPage(first.cdp_ws_url, pages.url, `document.cookie = 'kept=yes; max-age=1000'; location.href`)
  await client.browsers.deleteByID(first.session_id)
  const zip = await zipOf(messagingExtension('one', 7))
  await client.extensions.upload({ file: new File([new Uint8Array(zip)], 'one.zip'), name: 'one' })
  const { id } = await client.proxies.create({
    type: 'custom',
    config: { host: '127.0.0.1', port: exit.port },
    protocol: 'http',
  })
  await untilReady('headless-profile')
  const claims = await metric('berth_reserve_claims_total', 'headless-profile')

  const session = await client.browsers.create({
    headless: true,
    profile: { name: 'kept' },
    extensions: [{ name: 'one' }],
    proxy: { id },
    start_url: 'http://start.test/',
  } as Parameters<typeof client.browsers.create>[0])

  assert.equal(await metric('berth_reserve_claims_total', 'headless-profile'), claims + 1)
  const seen = `new Promise((done) => {
    const look = () => (document.documentElement.dataset.one ? done([document.body.textContent, document.documentElement.dataset.one].join()) : setTimeout(look, 20))
    look()
  })`
  assert.match(String(await inFirstPage(session.cdp_ws_url, 'http://start.test/', seen)), /the exit[\s\S]*,7$/)
  const cdp = await CdpClient.open(session.cdp_ws_url)
  const { cookies } = (await cdp.send('Storage.getCookies')) as { cookies: { name: string }[] }
  await cdp.close()
  assert.deepEqual(
    cookies.map(({ name }) => name),
    ['kept'],
  )
  await client.browsers.deleteByID(session.session_id)
})

/** Evaluates in the session's page, once it has reached the address. */
async function inFirstPage(cdpUrl: string, address: string, expression: string): Promise<unknown> {
  const cdp = await CdpClient.open(cdpUrl)
  try {
    const sessionId = await cdp.attachToPage((url) => url.startsWith(address))
    return await cdp.evaluate(sessionId, expression)
  } finally {
    await cdp.close()
  }
}

test('claims in a row leave nothing but the reserve', { timeout: isDeep ? 3_600_000 : 120_000 }, async () => {
  const kinds = ['headless', 'headful', 'headless-profile']
  const untilFull = async () => {
    for (const kind of kinds) await untilReady(kind)
    return countMachines()
  }
  const before = await untilFull()
  const claims = await metric('berth_reserve_claims_total', 'headless')
  const count = rounds({ short: 2, deep: 500 })

  for (let round = 0; round < count; round++) {
    await untilReady('headless')
    const { session_id, cdp_ws_url } = await client.browsers.create({ headless: true })
    const cdp = await CdpClient.open(cdp_ws_url)
    assert.ok((await cdp.send('Browser.getVersion')).product)
    await cdp.close()
    await client.browsers.deleteByID(session_id)
  }

  assert.equal(await metric('berth_reserve_claims_total', 'headless'), claims + count)
  await untilFull()
  await until('the end of all other machines', async () => (await countMachines()) === before, patience)
  assert.deepEqual(await Array.fromAsync(client.browsers.list()), [])
})

/** Counts machine folders, which are removed last. */
async function countMachines(): Promise<number> {
  return (await readdir(join(folder, 'machines'))).length
}

/** The requests of creates, in turn: the first is a claim by one statement, the others also configure an agent. */
const killedRequests: readonly Request[] = [
  { headless: true },
  { headless: true, viewport: { width: 1203, height: 807 } },
  { headless: true, chrome_policy: { BookmarkBarEnabled: true } },
]

for (let round = 0; round < rounds({ short: 1, deep: 30 }); round++) {
  test(
    `a server that is killed during a claim leaves either its session or nothing (${round + 1})`,
    {
      timeout: 180_000,
    },
    () => killDuringClaim(killedRequests[round % killedRequests.length], Math.random() * 15),
  )
}

async function killDuringClaim(request: Request, milliseconds: number): Promise<void> {
  await untilReady(kindOf(request ?? {}))
  const before = new Set(await machineProcesses())
  assert.notEqual(before.size, 0)
  const creation = client.browsers.create(request).catch(() => undefined)
  await delay(milliseconds)

  await berth.signal('SIGKILL')

  await creation
  berth = await Berth.start({ dataFolder: folder, environment })
  client = await berth.client()
  const sessions = await Array.fromAsync(client.browsers.list())
  for (const { session_id, cdp_ws_url } of sessions) {
    const cdp = await CdpClient.open(cdp_ws_url)
    await cdp.close()
    await client.browsers.deleteByID(session_id)
  }
  await until(
    'the end of every machine',
    async () => !(await machineProcesses()).some((found) => before.has(found)),
    patience,
  )
}

test('a server that stops leaves nothing of its reserve', { timeout: 60_000 }, async () => {
  await untilReady('headless')

  await berth.signal('SIGTERM')

  assert.deepEqual(await machineProcesses(), [])
})

/** Processes of this berth: their commands name its data folder, or the folder of its sockets. */
async function machineProcesses(): Promise<readonly string[]> {
  const processes = await listProcesses()
  const own = processes.filter(({ command }) => command.includes(`${folder}/machines`))
  return own.map(({ pid, command }) => `${pid} ${command}`)
}

async function metric(name: string, kind: string): Promise<number> {
  const text = await (await berth.request('/metrics')).text()
  return Number(new RegExp(`^${name}\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

async function untilReady(kind: string): Promise<void> {
  await until('a machine of the reserve', async () => (await metric('berth_reserve_machines', kind)) === 1, patience)
}
