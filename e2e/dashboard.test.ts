import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { isDeep } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { DashboardUser, desktop, isAccessible, openPage, phone, samplePage } from './testing/dashboard.ts'

const berth = await Berth.start()
const client = await berth.client()
const user = await DashboardUser.start(berth)
after(async () => {
  await user.browser.close()
  await berth[Symbol.asyncDispose]()
})

/** The time in the recording, in seconds, when the page wrote this line. */
async function momentOf(id: string, text: string): Promise<number> {
  const [replay] = await client.browsers.replays.list(id)
  const events = (await client.get(`/browsers/${id}/telemetry/events`, { query: { limit: 100 } })) as {
    readonly event: { readonly ts: number; readonly data?: { readonly text?: string } }
  }[]
  const event = events.find(({ event: { data } }) => data?.text === text)?.event
  assert.ok(event && replay?.started_at)
  return event.ts / 1_000_000 - new Date(replay.started_at).getTime() / 1000
}

interface VideoState {
  readonly currentTime?: number
  readonly duration?: number
  readonly seeking?: boolean
  readonly readyState?: number
  readonly networkState?: number
  readonly error?: string
}

/** A recording of a page without changes may end before its last event. */
async function isPlayedAt(page: Page, seconds: number): Promise<void> {
  assert.ok(seconds > 0.1, `the event was at ${seconds} s`)
  const read = `(() => {
    const { currentTime, duration, seeking, readyState, networkState, error } = document.querySelector('video') ?? {}
    return { currentTime, duration, seeking, readyState, networkState, error: error?.message }
  })()`
  let video: VideoState = {}
  const isThere = async () => {
    video = await page.evaluate<VideoState>(read)
    const { currentTime = 0, duration = 0, seeking, readyState = 0 } = video
    return Math.abs(currentTime - Math.min(seconds, duration)) < 0.05 && !seeking && readyState >= 2
  }
  await until('the moment of the event', isThere, { limitSeconds: 60 }).catch((cause: Error) => {
    throw new Error(`the video is not at ${seconds} s: ${JSON.stringify(video)}`, { cause })
  })
}

const cookiesOf = (context: BrowserContext) => context.cookies().then((all) => all.map(({ name }) => name))

test('a key signs in, its cookie is for the dashboard alone, and signing out ends it', async () => {
  const page = await user.page()
  const context = page.context()
  await page.goto(`${berth.url}/dashboard`)
  await isAccessible(page, 'sign-in')
  await page.goto(`${berth.url}/dashboard#code=used-before`)
  await page.getByRole('alert').getByText('was used before').waitFor()
  await page.getByLabel('API key').fill('sk_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('is not a valid API key').waitFor()

  await page.getByLabel('API key').fill(berth.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
  const [cookie] = await context.cookies(`${berth.url}/dashboard`)
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, 'Strict', '/dashboard'])
  assert.doesNotMatch(JSON.stringify(await context.storageState()), new RegExp(berth.apiKey))
  const ask = (path: string, headers: Record<string, string>) =>
    fetch(berth.url + path, { headers: { cookie: `${cookie?.name}=${cookie?.value}`, ...headers } })
  const own = { 'x-berth-dashboard': '1' }
  const statuses = await Promise.all([
    ask('/dashboard/api/browsers', own),
    ask('/dashboard/api/browsers', {}),
    ask('/dashboard/api/browsers', { ...own, 'sec-fetch-site': 'cross-site' }),
    ask('/browsers', own),
  ])
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [200, 401, 401, 401],
  )

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('API key').waitFor()
  assert.deepEqual(await cookiesOf(context), [])
  // Other servers of the installation may accept the cookie for one more second.
  const isRefused = async () => (await ask('/dashboard/api/browsers', own)).status === 401
  await until('the end of the cookie', isRefused, { limitSeconds: 2, everyMilliseconds: 300 })
  await context.close()
})

test('a session is created by the form and shown live, and its recording follows its events', async () => {
  const page = await user.signedIn()
  await page.getByText('No session runs.').waitFor()
  await page.getByRole('button', { name: 'New session' }).click()
  const form = page.getByRole('dialog', { name: 'New session' })
  await form.getByLabel('Name').first().fill('not a name')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText('must have 1 to 255 characters out of letters').waitFor()
  await form.getByLabel('Name').first().fill('by-the-form')
  await form.getByLabel('Headless').check()
  await form.getByLabel('Tags').fill('env=e2e')
  assert.match((await form.locator('pre').textContent()) ?? '', /name: 'by-the-form'/)
  await isAccessible(page, 'new-session')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name: 'by-the-form' }).waitFor()
  const session = await client.browsers.retrieve('by-the-form')
  assert.deepEqual([session.headless, session.tags], [true, { env: 'e2e' }])
  await page.frameLocator('iframe').locator('body[data-state=connected]').waitFor({ state: 'attached' })
  const remote = await chromium.connectOverCDP(session.cdp_ws_url)
  const watched = remote.contexts()[0]?.pages()[0] as Page
  await watched.setContent(samplePage)
  await page.locator('iframe').click()
  await watched.waitForFunction("document.activeElement?.tagName === 'TEXTAREA'")
  await page.keyboard.type('Typed by a person.')
  await watched.waitForFunction("document.querySelector('textarea').value === 'Typed by a person.'")

  await page.getByRole('tab', { name: 'Console' }).click()
  await page.getByRole('button', { name: 'Capture console' }).click()
  await page.getByRole('button', { name: 'Capture console' }).waitFor({ state: 'detached' })

  await page.getByRole('tab', { name: 'Replays' }).click()
  await page.getByRole('button', { name: 'Start recording' }).click()
  await page.getByText('Recording…').waitFor()
  // Not at the very beginning of the recording, where the player starts anyway.
  const later = 'new Promise((resolve) => setTimeout(resolve, 500))'
  await watched.evaluate(`${later}.then(() => console.log('seen by the dashboard'))`)

  await page.getByRole('tab', { name: 'Console' }).click()
  await page.getByRole('button', { name: /seen by the dashboard/ }).waitFor()
  await page.getByRole('tab', { name: 'Replays' }).click()
  await page.getByRole('button', { name: 'Stop recording' }).click()
  await page.getByRole('list', { name: 'Events of the recording' }).getByText('seen by the dashboard').click()
  const seen = await momentOf(session.session_id, 'seen by the dashboard')
  await isPlayedAt(page, seen)

  await page.getByRole('tab', { name: 'Timeline' }).click()
  await page.getByRole('list', { name: 'Timeline' }).getByText('seen by the dashboard').click()
  await page.getByRole('button', { name: 'Show in the replay' }).click()
  await page.getByRole('tab', { name: 'Replays', selected: true }).waitFor()
  await isPlayedAt(page, seen)
  // The browser's own player still shows that it is loading.
  if (process.env.BERTH_SCREENSHOTS) await page.waitForTimeout(3_000)
  await isAccessible(page, 'replay')
  await remote.close()
  await client.browsers.deleteByID(session.session_id)
  await page.getByText('This session ended at').waitFor()
  await page.locator('video[src]').waitFor()
  await page.context().close()
})

test('a session has a terminal and files, and the list of sessions shows changes', async () => {
  const session = await client.browsers.create({ headless: true, name: 'by-the-api', timeout_seconds: 300 })
  const remote = await chromium.connectOverCDP(session.cdp_ws_url)
  await remote.contexts()[0]?.pages()[0]?.setContent(samplePage)
  await remote.close()
  const page = await user.signedIn()
  await page.getByRole('link', { name: 'by-the-api' }).click()
  await page.getByRole('heading', { name: 'by-the-api' }).waitFor()
  await page.getByRole('tab', { name: 'Terminal' }).click()
  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.type('tty && echo made > made-in-terminal.txt && echo do""ne\n')
  await page.locator('.xterm-rows, .xterm-accessibility-tree').getByText('done').first().waitFor()
  await isAccessible(page, 'session')

  await page.getByRole('tab', { name: 'Files' }).click()
  await page.locator('input[type=file]').setInputFiles({
    name: 'dropped.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('from the viewer'),
  })
  await page.getByRole('button', { name: '📄 dropped.txt' }).click()
  const editor = page.getByRole('dialog').getByRole('textbox')
  assert.equal(await editor.inputValue(), 'from the viewer')
  await editor.fill('edited')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const file = await client.browsers.fs.readFile(session.session_id, { path: '/home/kernel/dropped.txt' })
  assert.equal(await file.text(), 'edited')
  await page.getByRole('button', { name: '📄 made-in-terminal.txt' }).waitFor()

  await page.setViewportSize(phone)
  await isAccessible(page, 'session-phone')
  await page.setViewportSize(desktop)

  // The list shows changes made elsewhere.
  await page.getByRole('link', { name: 'All sessions' }).click()
  await page.getByRole('link', { name: 'by-the-api' }).waitFor()
  await page.locator('img.thumbnail').waitFor()
  await isAccessible(page, 'sessions')
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog').getByLabel('Name').first().fill('renamed')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('link', { name: 'renamed' }).waitFor()
  await page.getByRole('searchbox').fill('nothing-like-it')
  await page.getByText('No session matches.').waitFor()
  assert.match(page.url(), /query=nothing-like-it/)
  await page.getByRole('searchbox').fill('')
  await page.getByRole('checkbox', { name: 'Select renamed' }).check()
  await page.getByRole('button', { name: 'Delete selected' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No session runs.').waitFor()
  await page.context().close()
})

test("the overview shows how sessions started, and the doctor's findings", async () => {
  const page = await user.signedIn()
  await openPage(page, 'Overview')
  await page.getByRole('img', { name: /Sessions, by hour/ }).waitFor()
  await page.getByRole('img', { name: /Time of a create, by hour: p50 at most \d/ }).waitFor()
  await page
    .getByRole('region', { name: 'Doctor' })
    .getByText(/checks .*passed/)
    .first()
    .waitFor()
  await isAccessible(page, 'overview')
  await page.context().close()
})

test('the reference keeps the key in memory and contacts no other host, and links to the guides', async () => {
  const page = await user.page()
  const foreign: string[] = []
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(berth.url) && !/^(data|blob):/.test(url)) foreign.push(url)
  })
  await page.goto(`${berth.url}/docs`)
  await page.getByText('Create a browser session').first().waitFor()
  await page.getByText('Isolated, real Chromium sessions').first().waitFor()
  await isAccessible(page, 'reference')
  await page.getByPlaceholder('Token').first().fill(berth.apiKey)
  await page.goto(`${berth.url}/docs/guides/sessions`)
  await isAccessible(page, 'guide')
  await page.setViewportSize(phone)
  await isAccessible(page, 'guide-phone')
  // The reference is large: axe takes three seconds there. The first visit has shown that it fits a phone.
  if (isDeep || process.env.BERTH_SCREENSHOTS) {
    await page.goto(`${berth.url}/docs`)
    await page.getByText('Isolated, real Chromium sessions').first().waitFor()
    await isAccessible(page, 'reference-phone')
  }
  const stored = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
  assert.doesNotMatch(stored, new RegExp(berth.apiKey))
  assert.deepEqual(foreign, [])
  await page.context().close()
})

test('no page breaks its own policy', () => {
  assert.deepEqual(user.refusals, [])
})
