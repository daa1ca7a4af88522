import { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { PageSessions } from './page-sessions.ts'

/** If the server is killed, the browser times out as an idle session. */
const idleSeconds = 30

interface TemporaryBrowserOptions {
  readonly projectId: ProjectId
  readonly sessions: PageSessions
}

/** A session of the caller's project for one request: created when it is first needed, and ended with the request. */
export class TemporaryBrowser {
  readonly #options: TemporaryBrowserOptions
  readonly #ended = new AbortController()
  #session: Promise<SessionId> | undefined

  constructor(options: TemporaryBrowserOptions) {
    this.#options = options
  }

  /** Rejects like any other create, for example when the limit of sessions is reached. */
  async id(): Promise<SessionId> {
    const { projectId, sessions } = this.#options
    this.#session ??= sessions.create(
      projectId,
      BrowserRequest.parse({ headless: true, timeout_seconds: idleSeconds, tags: { purpose: 'search' } }),
      this.#ended.signal,
    )
    this.#session.catch(() => {}) // The caller of `id` sees the rejection.
    return this.#session
  }

  /** Ends the session, even while it starts. */
  async end(): Promise<void> {
    this.#ended.abort()
    const id = await this.#session?.catch(() => undefined)
    if (id) await this.#options.sessions.end(id)
  }
}
