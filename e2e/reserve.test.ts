import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'
import { listProcesses } from './testing/processes.ts'

const pages = await startPages()
const berth = await Berth.start({
  environment: { BERTH_EGRESS_ALLOW: pages.allowed, BERTH_RESERVE: 'headless=1,headful=1' },
})
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

/** What a page, a client and a program of a session can see of it. */
const inPage = `JSON.stringify({
  agent: navigator.userAgent, webdriver: navigator.webdriver, languages: navigator.languages,
  platform: navigator.platform, hardware: [navigator.hardwareConcurrency, navigator.deviceMemory],
  screen: [screen.width, screen.height, screen.availWidth, screen.availHeight, screen.colorDepth],
  inner: [innerWidth, innerHeight], outer: [outerWidth, outerHeight, screenX, screenY, devicePixelRatio],
  history: history.length, referrer: document.referrer, url: location.href, visible: document.visibilityState,
  focus: document.hasFocus(), cookies: navigator.cookieEnabled && document.cookie.length, online: navigator.onLine,
  zone: Intl.DateTimeFormat().resolvedOptions().timeZone, plugins: [...navigator.plugins].map(({ name }) => name),
  media: ['(prefers-color-scheme: dark)', '(pointer: fine)', '(display-mode: fullscreen)'].map((query) => matchMedia(query).matches),
  navigation: performance.getEntriesByType('navigation')[0]?.type,
  drift: Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000,
})`

/** Numbers of users and names of temporary folders are of each machine. */
const inMachine = [
  'id -un; hostname; pwd; ls -A ~ ~/Downloads; ls -A /tmp | sed "s/Chromium[.].*/Chromium/"; df --output=size /dev/shm',
  'ulimit -a; env | grep -v BERTH_PROCESS_ID | sort; cat /etc/chromium/policies/managed/*',
  "tr '\\0' '\\n' < /proc/$(pgrep -o -x chromium)/cmdline | grep -v window-size",
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
  const { targetInfos } = (await cdp.send('Target.getTargets')) as {
    targetInfos: { type: string; targetId: string; url: string }[]
  }
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId
  const { sessionId } = (await cdp.send('Target.attachToTarget', { targetId, flatten: true })) as { sessionId: string }
  await cdp.evaluate(
    sessionId,
    "new Promise((done) => document.readyState === 'complete' ? done(1) : addEventListener('load', done))",
  )
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
    record: withoutAddresses(record),
  }
}

function withoutAddresses(record: object): object {
  return { ...record, browser_live_view_url: undefined }
}

const requests: Readonly<Record<string, Parameters<typeof client.browsers.create>[0]>> = {
  'a headless session': { headless: true, start_url: pages.url },
  'a headless session of another size': {
    headless: true,
    start_url: pages.url,
    viewport: { width: 1203, height: 807 },
  },
  'a headful session': { start_url: pages.url },
  'a headful session of another size': { start_url: pages.url, viewport: { width: 1203, height: 807 } },
}

for (const [what, request] of Object.entries(requests)) {
  test(`${what} from the reserve cannot be told from one that started cold`, { timeout: 120_000 }, async () => {
    const kind = request?.headless ? 'headless' : 'headful'
    await until(async () => (await metric('berth_reserve_machines', kind)) === 1)
    const claims = await metric('berth_reserve_claims_total', kind)

    const claimed = await observe(request)
    const cold = await observe(request)

    assert.equal(await metric('berth_reserve_claims_total', kind), claims + 1, 'one of the two was claimed')
    assert.deepEqual(claimed, cold)
  })
}

test('a server that stops leaves nothing of its reserve', { timeout: 60_000 }, async () => {
  await until(async () => (await metric('berth_reserve_machines', 'headless')) === 1)
  const { dataFolder } = berth

  await berth.signal('SIGTERM')

  const left = (await listProcesses()).filter(({ command }) => command.includes(`${dataFolder}/machines`))
  assert.deepEqual(left, [])
})

async function metric(name: string, kind: string): Promise<number> {
  const text = await (await berth.request('/metrics')).text()
  return Number(new RegExp(`^${name}\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!(await isTrue())) {
    assert.ok(performance.now() < deadline, 'it does not come true')
    await delay(100)
  }
}
