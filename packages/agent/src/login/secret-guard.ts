import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { CdpEventParams } from '../browser/cdp-types.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import type { AllowedHosts } from './allowed-hosts.ts'

/** Shorter values occur in too much unrelated data. */
const minLength = 4

type Paused = CdpEventParams<'Fetch.requestPaused'>

/** The browser itself, or one of its targets. */
interface Line {
  readonly pause: () => Promise<unknown>
  readonly resume: () => Promise<unknown>
  readonly fail: (requestId: string) => Promise<unknown>
  readonly pass: (requestId: string) => Promise<unknown>
  readonly onPaused: (handler: (paused: Paused) => void) => () => void
}

/**
 * Watches the requests of the whole browser while a form is submitted, and blocks those that would send a secret to a
 * host that is not allowed: a form whose script changes its target at the last moment, a redirect that repeats a POST,
 * a third-party script on the page. Data that a page has encrypted itself is not recognized.
 */
export class SecretGuard implements AsyncDisposable {
  readonly #allowed: AllowedHosts
  #patterns: readonly RegExp[]
  readonly #lines: readonly Line[]
  readonly #unsubscribe: readonly (() => void)[]
  readonly denied = new Set<string>()

  private constructor(allowed: AllowedHosts, secrets: readonly string[], lines: readonly Line[]) {
    this.#allowed = allowed
    this.#patterns = secrets.filter((secret) => secret.length >= minLength).flatMap(patternsOf)
    this.#lines = lines
    this.#unsubscribe = lines.map((line) => line.onPaused((paused) => this.#judge(line, paused)))
  }

  /**
   * The browser's own session sees navigations and new documents; requests of an existing document are visible only in
   * the session of its target.
   */
  static async watch({ pipe, sessions, allowed, secrets }: WatchOptions): Promise<SecretGuard> {
    const lines = [lineOfBrowser(pipe), ...new Set(sessions)].map((line) => ('pause' in line ? line : lineOf(line)))
    const guard = new SecretGuard(allowed, secrets, lines)
    await Promise.all(lines.map((line) => line.pause()))
    return guard
  }

  #judge(line: Line, { requestId, request }: Paused): void {
    const outside = this.#allowed.outside(request.url)
    if (outside !== undefined && /^(https?|wss?):/.test(request.url) && this.#hasSecret(request)) {
      this.denied.add(outside)
      line.fail(requestId).catch(() => {}) // The page has cancelled it.
      return
    }
    line.pass(requestId).catch(() => {}) // The page has cancelled it.
  }

  #hasSecret({ url, postData, postDataEntries, hasPostData, headers }: Paused['request']): boolean {
    const bytes = (postDataEntries ?? []).map(({ bytes: encoded }) =>
      Buffer.from(encoded ?? '', 'base64').toString('utf8'),
    )
    const body = [postData ?? '', ...bytes].join('\n')
    // A body that Chromium does not reveal could contain anything.
    if (hasPostData && body.trim() === '') return true
    const referrer = headers.Referer ?? headers.referer ?? ''
    return [url, body, referrer].some((text) => this.#patterns.some((pattern) => pattern.test(text)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#patterns = []
    // Releases the held requests.
    await Promise.all(this.#lines.map((line) => line.resume().catch(() => {}))) // The page or the browser has gone.
  }
}

interface WatchOptions {
  readonly pipe: CdpPipe
  /** Sessions of the targets that form the page. */
  readonly sessions: readonly TargetSession[]
  readonly allowed: AllowedHosts
  readonly secrets: readonly string[]
}

const everything = { patterns: [{ urlPattern: '*', requestStage: 'Request' as const }] }
const errorReason = 'BlockedByClient'

function lineOfBrowser(pipe: CdpPipe): Line {
  return {
    pause: () => pipe.send('Fetch.enable', everything),
    resume: () => pipe.send('Fetch.disable'),
    fail: (requestId) => pipe.send('Fetch.failRequest', { requestId, errorReason }),
    pass: (requestId) => pipe.send('Fetch.continueRequest', { requestId }),
    onPaused: (handler) =>
      pipe.on('Fetch.requestPaused', (paused, sessionId) => {
        if (sessionId === undefined) handler(paused)
      }),
  }
}

function lineOf(session: TargetSession): Line {
  return {
    pause: () => session.send('Fetch.enable', everything),
    resume: () => session.send('Fetch.disable'),
    fail: (requestId) => session.send('Fetch.failRequest', { requestId, errorReason }),
    pass: (requestId) => session.send('Fetch.continueRequest', { requestId }),
    onPaused: (handler) => session.on('Fetch.requestPaused', handler),
  }
}

/** The secret in the encodings of forms, URLs, JSON and base64. */
function patternsOf(secret: string): readonly RegExp[] {
  const form = new URLSearchParams({ value: secret }).toString().slice('value='.length)
  const json = JSON.stringify(secret).slice(1, -1)
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  const forms = new Set([secret, form, encodeURIComponent(secret), json, base64])
  const isCode = /^\d+$/.test(secret)
  return [...forms].map((text) => {
    const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    // Numeric codes also occur within longer numbers.
    return isCode ? new RegExp(`(?<!\\d)${escaped}(?!\\d)`) : new RegExp(escaped, 'i')
  })
}
