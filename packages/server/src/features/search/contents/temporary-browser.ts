import { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { PageSessions } from './page-sessions.ts'

/** Should the server die with it, the browser ends by itself, as an idle one. */
const idleSeconds = 30

interface TemporaryBrowserOptions {
  readonly projectId: ProjectId
  readonly sessions: PageSessions
}

/** A session of the caller's project for one request: made when it is first needed, and ended with the request. */
export class TemporaryBrowser {
  readonly #options: TemporaryBrowserOptions
  readonly #ended = new AbortController()
  #session: Promise<SessionId> | undefined

  constructor(options: TemporaryBrowserOptions) {
    this.#options = options
  }

  /** Rejects as the creation of every other session does: also when the caller has as many as it may have. */
  async id(): Promise<SessionId> {
    const { projectId, sessions } = this.#options
    this.#session ??= sessions.create(
      projectId,
      BrowserRequest.parse({ headless: true, timeout_seconds: idleSeconds, tags: { purpose: 'search' } }),
      this.#ended.signal,
    )
    this.#session.catch(() => {}) // Whoever has asked for it hears it there.
    return this.#session
  }

  /** Ends it, whether it has started yet or not. */
  async end(): Promise<void> {
    this.#ended.abort()
    const id = await this.#session?.catch(() => undefined)
    if (id) await this.#options.sessions.end(id)
  }
}
