import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { CdpEventParams } from '../browser/cdp-types.ts'
import type { AllowedHosts } from './allowed-hosts.ts'

/** Shorter values are in too much that has nothing to do with them. */
const minLength = 4

type Paused = CdpEventParams<'Fetch.requestPaused'>

/**
 * Watches the requests of the whole browser while a form is submitted, and stops those that would take a secret to a
 * host outside: a form whose script changes its target at the last moment, a redirect that repeats a POST, a script of
 * somebody else on the page. What a page has encrypted itself is not recognized.
 */
export class SecretGuard implements AsyncDisposable {
  readonly #pipe: CdpPipe
  readonly #allowed: AllowedHosts
  #patterns: readonly RegExp[]
  readonly #unsubscribe: () => void
  readonly denied = new Set<string>()

  private constructor(pipe: CdpPipe, allowed: AllowedHosts, secrets: readonly string[]) {
    this.#pipe = pipe
    this.#allowed = allowed
    this.#patterns = secrets.filter((secret) => secret.length >= minLength).flatMap(patternsOf)
    this.#unsubscribe = pipe.on('Fetch.requestPaused', (paused, sessionId) => {
      if (sessionId === undefined) this.#judge(paused)
    })
  }

  static async watch(pipe: CdpPipe, allowed: AllowedHosts, secrets: readonly string[]): Promise<SecretGuard> {
    const guard = new SecretGuard(pipe, allowed, secrets)
    await pipe.send('Fetch.enable', { patterns: [{ urlPattern: '*', requestStage: 'Request' }] })
    return guard
  }

  #judge({ requestId, request }: Paused): void {
    const outside = this.#allowed.outside(request.url)
    const isStopped = outside !== undefined && /^(https?|wss?):/.test(request.url) && this.#hasSecret(request)
    if (isStopped && outside !== undefined) {
      this.denied.add(outside)
      this.#pipe.send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' }).catch(() => {})
      return
    }
    this.#pipe.send('Fetch.continueRequest', { requestId }).catch(() => {}) // The page has given it up.
  }

  #hasSecret({ url, postData, postDataEntries, hasPostData, headers }: Paused['request']): boolean {
    const bytes = (postDataEntries ?? []).map(({ bytes: encoded }) => Buffer.from(encoded ?? '', 'base64').toString('utf8'))
    const body = [postData ?? '', ...bytes].join('\n')
    // A body that Chromium does not show could have anything in it.
    if (hasPostData && body.trim() === '') return true
    const referrer = headers.Referer ?? headers.referer ?? ''
    return [url, body, referrer].some((text) => this.#patterns.some((pattern) => pattern.test(text)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe()
    this.#patterns = []
    // Requests that are held go on then.
    await this.#pipe.send('Fetch.disable').catch(() => {}) // The browser has ended.
  }
}

/** The secret as forms, addresses, JSON and base64 write it. */
function patternsOf(secret: string): readonly RegExp[] {
  const form = new URLSearchParams({ value: secret }).toString().slice('value='.length)
  const json = JSON.stringify(secret).slice(1, -1)
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  const forms = new Set([secret, form, encodeURIComponent(secret), json, base64])
  const isCode = /^\d+$/.test(secret)
  return [...forms].map((text) => {
    const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    // Digits stand in many longer numbers.
    return isCode ? new RegExp(`(?<!\\d)${escaped}(?!\\d)`) : new RegExp(escaped, 'i')
  })
}
