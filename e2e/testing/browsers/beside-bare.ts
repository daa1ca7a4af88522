import assert from 'node:assert/strict'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Berth } from '../berth.ts'
import { type BareChromium, startBareChromium } from './bare-chromium.ts'

interface BesideBareOptions {
  readonly bareFlags?: readonly string[]
  readonly chromePolicy?: Readonly<Record<string, unknown>>
}

/** A session and a bare Chromium that reach the same servers of this host by the same name. */
export class BesideBare implements AsyncDisposable {
  readonly berth: Berth
  readonly sessionId: string
  readonly session: Browser
  readonly bare: Browser
  readonly cdpUrls: Readonly<Record<'session' | 'bare', string>>
  readonly #bareChromium: BareChromium

  private constructor(
    berth: Berth,
    sessionId: string,
    session: Browser,
    bare: Browser,
    sessionUrl: string,
    bareChromium: BareChromium,
  ) {
    this.berth = berth
    this.sessionId = sessionId
    this.session = session
    this.bare = bare
    this.cdpUrls = { session: sessionUrl, bare: bareChromium.cdpUrl }
    this.#bareChromium = bareChromium
  }

  /** The berth ends with it. */
  static async start(berth: Berth, { bareFlags = [], chromePolicy }: BesideBareOptions = {}): Promise<BesideBare> {
    const bare = await startBareChromium(bareFlags)
    const client = await berth.client()
    const created = await client.browsers.create({
      headless: true,
      timeout_seconds: 600,
      ...(chromePolicy && { chrome_policy: { ...chromePolicy } }),
    })
    const [session, bareBrowser] = await Promise.all(
      [created.cdp_ws_url, bare.cdpUrl].map((url) => chromium.connectOverCDP(url)),
    )
    return new BesideBare(
      berth,
      created.session_id,
      session as Browser,
      bareBrowser as Browser,
      created.cdp_ws_url,
      bare,
    )
  }

  /**
   * Runs the same function in both, each in a context of its own, and asserts that the results are equal. Bare Chromium
   * is the reference.
   */
  async compare<Outcome>(observe: (page: Page, browser: Browser) => Promise<Outcome>): Promise<Outcome> {
    const [bare, session] = await Promise.all(
      [this.bare, this.session].map(async (browser) => {
        const context = await browser.newContext()
        try {
          return await observe(await context.newPage(), browser)
        } finally {
          await context.close()
        }
      }),
    )
    assert.deepEqual(session, bare)
    return session as Outcome
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.session.close(), this.bare.close()])
    await Promise.all([this.berth[Symbol.asyncDispose](), this.#bareChromium[Symbol.asyncDispose]()])
  }
}

/** The name of Chromium's error, or the status of the response. */
export function outcomeOf(page: Page, url: string): Promise<string> {
  return page.goto(url).then(
    (answer) => String(answer?.status()),
    (error: Error) => /net::(\w+)/.exec(error.message)?.[1] ?? error.message,
  )
}
