import { setTimeout as delay } from 'node:timers/promises'
import { retry } from '@berth/runtime/async/retry.ts'
import type Kernel from '@onkernel/sdk'
import type { BrowserCreateResponse } from '@onkernel/sdk/resources/browsers'
import { type Browser, chromium, type Page } from 'playwright-core'

const pauseMilliseconds = 50
const settleMilliseconds = 2_000
/** How long a client that was cut off attempts to connect again. */
const patience = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 1_000, patienceMilliseconds: 60_000 }

interface LoadResult {
  readonly connections: number
  readonly requests: number
  readonly failures: readonly string[]
}

/** Clients that use sessions all the time: a page by CDP, and the API by the official client, which repeats what it may. */
export class SessionLoad {
  readonly #client: Kernel
  readonly #sessions: readonly BrowserCreateResponse[]
  readonly #stop = new AbortController()
  readonly #failures: string[] = []
  #connections = 0
  #requests = 0
  #running: readonly Promise<void>[] = []

  constructor(client: Kernel, sessions: readonly BrowserCreateResponse[]) {
    this.#client = client
    this.#sessions = sessions
  }

  /** Resolves when each session has a page that only its memory knows. */
  async begin(): Promise<void> {
    await Promise.all(
      this.#sessions.map(async ({ cdp_ws_url, session_id }) => {
        await using browser = await connect(cdp_ws_url)
        await firstPage(browser).evaluate((id) => Object.assign(globalThis, { kept: id }), session_id)
      }),
    )
    this.#running = this.#sessions.flatMap((session) => [this.#usePage(session), this.#useApi(session)])
  }

  async end(): Promise<LoadResult> {
    // Those that have just been cut off connect once more.
    await delay(settleMilliseconds)
    this.#stop.abort()
    await Promise.all(this.#running)
    return { connections: this.#connections, requests: this.#requests, failures: this.#failures }
  }

  async #usePage({ cdp_ws_url, session_id }: BrowserCreateResponse): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        await using browser = await retry(() => connect(cdp_ws_url), patience)
        this.#connections += 1
        const page = firstPage(browser)
        while (!signal.aborted && browser.isConnected()) {
          const kept = await page.evaluate('globalThis.kept').catch(() => session_id)
          if (kept !== session_id) this.#failures.push(`the page of ${session_id} has ${kept}`)
          await delay(pauseMilliseconds)
        }
      } catch (error) {
        this.#failures.push(`${session_id} was not reached again: ${(error as Error).message}`)
        return
      }
    }
  }

  async #useApi({ session_id }: BrowserCreateResponse): Promise<void> {
    for (let round = 0; !this.#stop.signal.aborted; round += 1) {
      try {
        const { session_id: found } = await this.#client.browsers.retrieve(session_id)
        if (found !== session_id) this.#failures.push(`${found} instead of ${session_id}`)
        const { tags } = await this.#client.browsers.update(session_id, { tags: { round: `${round}` } })
        if (tags?.round !== `${round}`) this.#failures.push(`the round ${round} was answered with ${tags?.round}`)
        this.#requests += 2
      } catch (error) {
        this.#failures.push(`${session_id}: ${(error as Error).message}`)
      }
      await delay(pauseMilliseconds)
    }
  }
}

async function connect(url: string): Promise<Browser & AsyncDisposable> {
  return chromium.connectOverCDP(url)
}

function firstPage(browser: Browser): Page {
  const page = browser.contexts()[0]?.pages()[0]
  if (!page) throw new Error('there is no page')
  return page
}
