import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ResultContent } from '@berth/contract/search/search.ts'
import type { ContentOptions } from '@berth/contract/search/search-request.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Extractor } from '../extraction/extractor.ts'
import type { ProviderContent } from '../providers/provider.ts'
import { contentOfFailure, contentOfPage, contentOfProvider, timeoutContent } from './content-record.ts'
import type { ContentTarget } from './content-request.ts'
import { fetchPageText, type Mode, type PageFailure } from './fetch-page-text.ts'
import type { PageContent, PageContents, PageKey } from './page-contents.ts'
import type { PageSessions } from './page-sessions.ts'
import { TemporaryBrowser } from './temporary-browser.ts'

const defaultResultMilliseconds = 20_000
/** The limit of one request: rendering is limited by the processor, which the whole host shares. */
const pagesAtOnce = 4

interface ContentServiceOptions {
  readonly sessions: PageSessions
  readonly pages: PageContents
  readonly extractor: Extractor
  readonly clock: Clock
  readonly logger: Logger
}

export interface ContentsWanted {
  readonly projectId: ProjectId
  readonly targets: readonly ContentTarget[]
  readonly options: ContentOptions
  /** The caller's own session, from `options.browser.browser_id`. */
  readonly sessionId: SessionId | undefined
  readonly language: string | undefined
  /** Requests content from the provider for pages that came without any, if the provider supports it. */
  readonly askProvider: ((urls: readonly string[]) => Promise<ProviderContents>) | undefined
  readonly deadline: AbortSignal
  readonly signal: AbortSignal
}

export type ProviderContents =
  | { readonly found: ReadonlyMap<string, ProviderContent> }
  | { readonly failure: PageFailure }

export interface FetchedContents {
  /** In the order of the targets. */
  readonly contents: readonly ResultContent[]
  readonly fetches: number
}

/**
 * The rules of contents: where a page is fetched from and how it is truncated. A failed page does not affect others.
 */
export class ContentService {
  readonly #options: ContentServiceOptions

  constructor(options: ContentServiceOptions) {
    this.#options = options
  }

  async fetch(wanted: ContentsWanted): Promise<FetchedContents> {
    if (wanted.options.source === 'provider') return { contents: await this.#byProvider(wanted), fetches: 0 }
    const { projectId, options, sessionId } = wanted
    const { sessions } = this.#options
    const temporary = new TemporaryBrowser({ projectId, sessions })
    const run = new BrowserRun(this.#options, wanted, () => (sessionId ? Promise.resolve(sessionId) : temporary.id()))
    try {
      const contents = await run.all()
      const failed = wanted.targets.filter((_target, index) => contents[index]?.status !== 'ok')
      if (options.source === 'browser' || failed.length === 0) return { contents, fetches: run.fetches }
      const others = await this.#byProvider({ ...wanted, targets: failed })
      const merged = contents.map((content, index) => {
        const other = others[failed.indexOf(wanted.targets[index] as ContentTarget)]
        return other?.status === 'ok' ? other : content
      })
      return { contents: merged, fetches: run.fetches }
    } finally {
      await temporary.end().catch((error: unknown) => {
        // It times out as an idle session within a minute.
        this.#options.logger.warn({ err: error }, 'could not end the browser of a search')
      })
    }
  }

  async #byProvider({ targets, options, askProvider, deadline }: ContentsWanted): Promise<readonly ResultContent[]> {
    const missing = targets.filter(({ provided }) => !provided).map(({ url }) => url)
    const asked: ProviderContents | undefined =
      missing.length > 0 && askProvider && !deadline.aborted ? await askProvider(missing) : undefined
    const fetchedAt = this.#options.clock.now()
    return targets.map(({ url, provided }) => {
      const content = provided ?? (asked && 'found' in asked ? asked.found.get(url) : undefined)
      if (content) return contentOfProvider(content, options, provided ? null : fetchedAt)
      if (asked && 'failure' in asked)
        return contentOfFailure(asked.failure, { method: 'provider', cacheStatus: 'unknown' })
      const message = 'The provider has no content of this page.'
      const none: PageFailure = { status: 'unavailable', code: 'no_provider_content', message, retryable: false }
      return contentOfFailure(none, { method: 'provider', cacheStatus: 'unknown' })
    })
  }
}

/** Fetches the pages of one request with one browser. */
class BrowserRun {
  readonly #services: ContentServiceOptions
  readonly #wanted: ContentsWanted
  readonly #browser: () => Promise<SessionId>
  fetches = 0

  constructor(services: ContentServiceOptions, wanted: ContentsWanted, browser: () => Promise<SessionId>) {
    this.#services = services
    this.#wanted = wanted
    this.#browser = browser
  }

  async all(): Promise<readonly ResultContent[]> {
    const { targets } = this.#wanted
    const contents = new Map<ContentTarget, ResultContent>()
    const open = [...targets]
    const work = async () => {
      for (let target = open.shift(); target; target = open.shift()) contents.set(target, await this.#limited(target))
    }
    await Promise.all(Array.from({ length: Math.min(pagesAtOnce, targets.length) }, work))
    return targets.map((target) => contents.get(target) as ResultContent)
  }

  /** Applies the time limits of the result and the request. */
  async #limited(target: ContentTarget): Promise<ResultContent> {
    const { options, deadline, signal } = this.#wanted
    const milliseconds = options.timeout_ms ?? defaultResultMilliseconds
    const limit = AbortSignal.any([deadline, signal, AbortSignal.timeout(milliseconds)])
    const until = performance.now() + milliseconds
    try {
      limit.throwIfAborted()
      return await Promise.race([this.#one(target, limit, until), rejectedBy(limit)])
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (limit.aborted) return timeoutContent(this.#cacheStatus())
      if (error instanceof BerthError)
        return contentOfFailure(failureOfBrowser(error), { cacheStatus: this.#cacheStatus() })
      throw error
    }
  }

  async #one({ url }: ContentTarget, limit: AbortSignal, until: number): Promise<ResultContent> {
    const { projectId, options, sessionId, language } = this.#wanted
    const { pages, clock } = this.#services
    const key: PageKey = { url, mode: options.browser?.mode, language }
    if (this.#cacheStatus() !== 'bypass') {
      const known = await pages.find(projectId, key, options.max_age_hours)
      if (known) return contentOfPage(known, options, 'hit')
    }
    const browser = await this.#browser()
    limit.throwIfAborted()
    this.fetches += 1
    const fetched = await this.#byModes(browser, url, limit, until)
    if ('code' in fetched.page) {
      return contentOfFailure(fetched.page, { method: methodOf(fetched.mode), cacheStatus: this.#cacheStatus() })
    }
    const content: PageContent = {
      ...{ markdown: fetched.page.markdown, text: fetched.page.text, completeness: fetched.page.completeness },
      ...{ httpStatus: fetched.page.httpStatus, finalUrl: fetched.page.finalUrl },
      method: methodOf(fetched.mode),
      fetchedAt: clock.now().toISOString(),
    }
    // A page that was fetched with a session's cookies must not be shared.
    if (sessionId === undefined) await pages.put(projectId, key, content)
    return contentOfPage(content, options, this.#cacheStatus())
  }

  /** Fetches with curl, and renders the page if that returns less than a person sees. Returns the better of both. */
  async #byModes(browser: SessionId, url: string, signal: AbortSignal, until: number) {
    const { options, language } = this.#wanted
    const { sessions, extractor } = this.#services
    const fetch = async (mode: Mode) => {
      const limitMilliseconds = until - performance.now()
      return {
        mode,
        page: await fetchPageText({
          sessions,
          extractor,
          sessionId: browser,
          url,
          mode,
          language,
          limitMilliseconds,
          signal,
        }),
      }
    }
    const { mode } = options.browser ?? {}
    if (mode) return fetch(mode)
    const plain = await fetch('curl')
    if (!isWorthRendering(plain.page)) return plain
    const rendered = await fetch('render')
    return 'code' in rendered.page && !('code' in plain.page) ? plain : rendered
  }

  #cacheStatus(): 'bypass' | 'miss' {
    const { sessionId, options } = this.#wanted
    return sessionId !== undefined || options.max_age_hours === 0 ? 'bypass' : 'miss'
  }
}

function isWorthRendering(page: Awaited<ReturnType<typeof fetchPageText>>): boolean {
  if (!('code' in page)) return page.needsScript
  return page.status === 'extraction_failed' || (page.status === 'blocked' && page.code === 'challenge')
}

function methodOf(mode: Mode): 'browser_curl' | 'browser_render' {
  return mode === 'curl' ? 'browser_curl' : 'browser_render'
}

function failureOfBrowser({ code, message, retry }: BerthError): PageFailure {
  return { status: 'error', code, message, retryable: retry ?? true }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
