import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chromium, type Page } from 'playwright-core'
import { tasksOf } from '../../testing/page-tasks.ts'
import { TestServer } from '../../testing/server-test.ts'

const isDeep = process.env.BERTH_DEEP === '1'
const sessionCount = 1_000
const atOnce = 20
/** A longer task is perceptible. */
const maxTaskMilliseconds = 50
/** The number of rows that are visible while scrolling pauses to load the next page. */
const maxPictures = 200

test('a list of 1,000 sessions is scrolled without a stutter', {
  skip: isDeep ? false : 'only with ./berth test --deep',
}, async () => {
  const server = await TestServer.open()
  after(() => server.close())
  const project = await server.project()
  for (let first = 1; first <= sessionCount; first += atOnce) {
    const names = Array.from({ length: atOnce }, (_, index) => `session-${first + index}`)
    await Promise.all(names.map((name) => project.session({ name, headless: true, tags: { env: 'e2e' } })))
  }
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const browser = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args })
  after(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${server.url}/dashboard`)
  await page.getByLabel('API key').fill(project.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.canvas .row').first().waitFor()
  let pictures = 0
  page.on('request', (request) => {
    if (request.url().endsWith('/thumbnail')) pictures += 1
  })

  // A mouse wheel that is turned fast, and a dragged scroll bar.
  for (const pixels of [150, 1_200]) {
    await page.reload()
    await page.locator('.canvas .row').first().waitFor()
    pictures = 0
    const tasks = await tasksOf(page, () => scrollToEnd(page, pixels))
    assert.ok(tasks.length > 100, `${tasks.length} tasks were measured`)
    const longest = Math.max(...tasks)
    assert.ok(longest < maxTaskMilliseconds, `one task took ${longest} ms, by steps of ${pixels} pixels`)
    assert.ok(pictures < maxPictures, `${pictures} pictures were asked for`)
    assert.ok((await page.locator('.canvas .row').count()) < 40)
    await page.getByRole('link', { name: 'session-1', exact: true }).waitFor()
  }
})

/** Scrolls by this distance in each frame until there are no more rows. */
async function scrollToEnd(page: Page, pixels: number): Promise<void> {
  await page.evaluate(`new Promise((done) => {
    const frame = document.querySelector('.rows .scroll')
    const end = ${sessionCount} * document.querySelector('.canvas .row').offsetHeight - frame.clientHeight
    const step = () => {
      frame.scrollTop += ${pixels}
      if (frame.scrollTop >= end - 1) done()
      else requestAnimationFrame(step)
    }
    step()
  })`)
}
