import assert from 'node:assert/strict'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Berth } from './berth.ts'
import { launchDesktopBrowser } from './browsers/desktop-browser.ts'

/** The folder for screenshots: BERTH_SCREENSHOTS=docs/images */
const pictures = process.env.BERTH_SCREENSHOTS

export const desktop = { width: 1280, height: 800 }
export const phone = { width: 390, height: 844 }

/** The content of a session's page. A click anywhere focuses its field. */
export const samplePage = `<title>Orders</title>
  <body style="margin:0;height:100vh;font:32px system-ui,sans-serif;background:#eaf1fb;color:#14345f">
  <label style="position:fixed;inset:0;padding:80px;cursor:text">
    <b style="font-size:72px">Orders</b>
    <p>What shall be delivered?</p>
    <textarea style="font:inherit;width:80%;height:40vh;padding:24px;border:3px solid #1557c0;border-radius:12px"></textarea>
  </label>`

/** A user of the dashboard of a berth, in Debian's Chromium. */
export class DashboardUser {
  readonly browser: Browser
  /** Violations of the pages' policy, and uncaught errors. */
  readonly refusals: string[] = []
  readonly #berth: Berth

  private constructor(berth: Berth, browser: Browser) {
    this.#berth = berth
    this.browser = browser
  }

  static async start(berth: Berth): Promise<DashboardUser> {
    return new DashboardUser(berth, await launchDesktopBrowser())
  }

  async page(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.browser.newContext({ viewport: desktop, ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) this.refusals.push(message.text())
    })
    page.on('pageerror', (error) => this.refusals.push(error.message))
    return page
  }

  async signedIn(): Promise<Page> {
    const page = await this.page()
    await page.goto(`${this.#berth.url}/dashboard`)
    await page.getByLabel('API key').fill(this.#berth.apiKey)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
    return page
  }
}

/** Opens a page of the menu. */
export async function openPage(page: Page, title: string): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name: title, exact: true }).click()
  await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor()
}

/** Checks that axe finds nothing serious, in both themes, and nothing is wider than the window, also on a phone. */
export async function isAccessible(page: Page, name: string): Promise<void> {
  const viewport = page.viewportSize() ?? desktop
  for (const theme of ['light', 'dark']) {
    await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
    // Themes differ only in colours.
    await passesAxe(page, `${name} in ${theme}`, theme === 'light' ? axeRules : ['color-contrast'])
    await take(page, `${name}-${theme}`)
  }
  await fits(page, name)
  if (viewport.width > phone.width) {
    await page.setViewportSize(phone)
    await fits(page, name)
    await take(page, `${name}-phone`)
    await page.setViewportSize(viewport)
  }
}

const axeRules: readonly string[] = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']

/** Checks that axe finds nothing serious by these rules, or groups of rules. */
export async function passesAxe(page: Page, name: string, rules = axeRules): Promise<void> {
  // Loaded once per document.
  await page.evaluate(`window.axe ? undefined : (() => { ${axe.source} })()`)
  const { violations } = await page.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[]
  }>(
    `axe.run({ exclude: ['.xterm'] }, { iframes: false, resultTypes: ['violations'], runOnly: ${JSON.stringify(rules)} })`,
  )
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
  assert.deepEqual(told, [], name)
}

export async function take(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) })
}

export async function fits(page: Page, name: string): Promise<void> {
  const width = page.viewportSize()?.width
  const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  assert.ok(overflow <= 0, `${name} is ${overflow} px wider than a window of ${width}`)
}
