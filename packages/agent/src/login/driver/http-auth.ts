import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import type { CdpEventParams } from '../../browser/cdp-types.ts'
import { TargetSession } from '../../browser/targets/target-session.ts'

const commandMilliseconds = 5_000
const maxRealm = 200
/** Others, such as NTLM, use the account of the machine or do not occur on websites. */
const schemes = ['basic', 'digest']

/** A site's request for credentials with status 401. No page shows it: the browser asks, and the request waits. */
export interface HttpChallenge {
  readonly id: string
  readonly url: string
  readonly origin: string
  readonly realm: string
  /** Follows an answer for the same origin, which was therefore wrong. */
  readonly isRepeated: boolean
}

/**
 * Holds the challenges for the page's own document until they are answered. It uses a separate CDP session, because the
 * page's session enables and disables the same domain.
 */
export class HttpAuth {
  readonly #session: TargetSession
  readonly #targetId: string
  readonly #unwatch: readonly (() => void)[]
  readonly #answered = new Set<string>()
  #held: { readonly challenge: HttpChallenge; readonly requestId: string } | undefined
  #count = 0
  readonly #waiting: (() => void)[] = []

  private constructor(session: TargetSession, targetId: string) {
    this.#session = session
    this.#targetId = targetId
    this.#unwatch = [
      session.on('Fetch.requestPaused', ({ requestId }) => {
        session.send('Fetch.continueRequest', { requestId }).catch(() => {}) // The page has cancelled it.
      }),
      session.on('Fetch.authRequired', (params) => this.#hold(params)),
    ]
  }

  static async watch(pipe: CdpPipe, targetId: string): Promise<HttpAuth> {
    const auth = new HttpAuth(await TargetSession.attach(pipe, targetId), targetId)
    const patterns = [{ urlPattern: '*', resourceType: 'Document' as const, requestStage: 'Request' as const }]
    await auth.#session.send('Fetch.enable', { patterns, handleAuthRequests: true }, commandMilliseconds)
    return auth
  }

  get challenge(): HttpChallenge | undefined {
    return this.#held?.challenge
  }

  /** Settles with the next challenge. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #hold({ requestId, frameId, request, authChallenge }: CdpEventParams<'Fetch.authRequired'>): void {
    const { source, origin, realm, scheme } = authChallenge
    // Egress has the credentials of proxies.
    const isOfPage = frameId === this.#targetId && schemes.includes(scheme.toLowerCase())
    if (source === 'Proxy' || !isOfPage) {
      this.#reply(requestId, { response: source === 'Proxy' ? 'Default' : 'CancelAuth' })
      return
    }
    this.#count += 1
    const challenge = {
      id: `${requestId}.${this.#count}`,
      url: request.url,
      origin,
      realm: realm.slice(0, maxRealm),
      isRepeated: this.#answered.has(origin),
    }
    this.#held = { challenge, requestId }
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  answer(challenge: HttpChallenge, { username, password }: { username: string; password: string }): void {
    if (this.#held?.challenge !== challenge) return
    const { requestId } = this.#held
    this.#held = undefined
    this.#answered.add(challenge.origin)
    this.#reply(requestId, { response: 'ProvideCredentials', username, password })
  }

  /** Cancels, so that the site shows its page for unauthenticated users. */
  cancel(): void {
    if (!this.#held) return
    const { requestId } = this.#held
    this.#held = undefined
    this.#reply(requestId, { response: 'CancelAuth' })
  }

  #reply(
    requestId: string,
    authChallengeResponse: {
      response: 'Default' | 'CancelAuth' | 'ProvideCredentials'
      username?: string
      password?: string
    },
  ): void {
    this.#session.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(() => {}) // As above.
  }

  close(): void {
    for (const unwatch of this.#unwatch) unwatch()
    for (const resolve of this.#waiting.splice(0)) resolve()
    this.#session.detach()
  }
}
