import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chromium, type Request } from 'playwright-core'
import { tasksOf } from '../../testing/page-tasks.ts'
import { TestServer } from '../../testing/server-test.ts'

const maxFirstViewBytes = 250 * 1024
/** Processor time, because elapsed time depends on what else runs. */
const maxWorkMilliseconds = 1_000
const rows = 50

/** Records when the list and its button appeared, by the clock of the page. */
const watchScript = `window.ready = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector('.canvas .row') || !document.querySelector('header.page button.primary')) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
  }).observe(document, { childList: true, subtree: true })
})`

test('the first view is small, and is usable after less than a second of processor time', async (context) => {
  const server = await TestServer.open()
  after(() => server.close())
  const project = await server.project()
  await Promise.all(
    Array.from({ length: rows }, (_, index) => project.session({ name: `session-${index}`, headless: true })),
  )
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const browser = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args })
  after(() => browser.close())
  const signedIn = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const signIn = await signedIn.request.post(`${server.url}/dashboard/session`, {
    headers: { 'x-berth-dashboard': '1' },
    data: { api_key: project.key },
  })
  assert.equal(signIn.status(), 204)

  // The first request after the start of a server also waits for the bundle.
  await fetch(`${server.url}/dashboard`)

  const page = await signedIn.newPage()
  await page.addInitScript(watchScript)
  const assets: Request[] = []
  page.on('requestfinished', (request) => {
    if (request.url().includes('/dashboard/assets/')) assets.push(request)
  })
  let ready = 0
  const tasks = await tasksOf(page, async () => {
    await page.goto(`${server.url}/dashboard`)
    ready = await page.evaluate<number>('window.ready')
  })
  const sizes = await Promise.all(assets.map((request) => request.sizes()))
  const bytes = sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0)
  const work = tasks.reduce((sum, milliseconds) => sum + milliseconds, 0)

  context.diagnostic(
    `ready after ${Math.round(ready)} ms, ${Math.round(work)} ms of work, the longest task ` +
      `${Math.round(Math.max(...tasks))} ms, ${Math.round(bytes / 1024)} KiB of scripts and styles`,
  )
  assert.ok(bytes > 0 && bytes < maxFirstViewBytes, `${bytes} bytes`)
  assert.ok(work > 0 && work < maxWorkMilliseconds, `${work} ms of work`)
})
