import { setTimeout as delay } from 'node:timers/promises'
import { BerthError } from '@berth/contract/errors.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { CdpAnswer, CdpEventParams, CdpMethod, CdpParams } from '../browser/cdp-types.ts'
import { netError } from './net-error.ts'
import { readStream, type StreamPart } from './read-stream.ts'

/**
 * Cookies of a response are reported in a separate event, slightly earlier or later; for a cached response not at all.
 */
const cookieMilliseconds = 50

export type HeaderList = readonly (readonly [name: string, value: string])[]

export interface PageRequest {
  readonly url: string
  readonly method: string
  /** Replace the browser's own headers. */
  readonly headers: HeaderList
  readonly body: Uint8Array | undefined
}

export interface PageAnswer {
  readonly status: number
  readonly headers: HeaderList
  /** The decoded body; must be read to its end or left with `break`. */
  read(): AsyncGenerator<Buffer>
  /** Ends the request without reading its body. */
  drop(): Promise<void>
}

interface PausedRequest {
  readonly requestId: string
  readonly networkId?: string
  readonly resourceType: string
  readonly request: { readonly headers: Readonly<Record<string, string>> }
  readonly responseStatusCode?: number
  readonly responseErrorReason?: string
  readonly responseHeaders?: readonly { readonly name: string; readonly value: string }[]
}

/** The state of a request: paused before Chromium sends it, answered, or failed. */
interface Exchange {
  readonly asked: PromiseWithResolvers<PausedRequest>
  readonly answered: PromiseWithResolvers<PausedRequest>
  readonly cookies: PromiseWithResolvers<readonly string[]>
}

/**
 * A page that no window shows, in the browser's default context, and that never displays what it requests. Each request
 * is a navigation, so it carries cookies and headers as if a person had typed the address, is answered whatever its
 * origin, and runs nothing of the site. Before it is sent, its method, headers and body are replaced. The response is
 * intercepted, and the navigation ends.
 */
export class HiddenPage {
  readonly #pipe: CdpPipe
  readonly #targetId: string
  readonly #sessionId: string
  readonly #unsubscribe: readonly (() => void)[]
  #exchange: Exchange | undefined

  private constructor(pipe: CdpPipe, targetId: string, sessionId: string) {
    this.#pipe = pipe
    this.#targetId = targetId
    this.#sessionId = sessionId
    const own = <Params>(handler: (params: Params) => void) => {
      return (params: Params, session: string | undefined) => {
        if (session === sessionId) handler(params)
      }
    }
    this.#unsubscribe = [
      pipe.on(
        'Fetch.requestPaused',
        own((params: PausedRequest) => this.#pause(params)),
      ),
      pipe.on(
        'Fetch.authRequired',
        own(({ requestId }: CdpEventParams<'Fetch.authRequired'>) => this.#refuseToLogIn(requestId)),
      ),
      pipe.on(
        'Network.responseReceivedExtraInfo',
        own(({ headers }: CdpEventParams<'Network.responseReceivedExtraInfo'>) => this.#noteCookies(headers)),
      ),
    ]
  }

  static async open(pipe: CdpPipe): Promise<HiddenPage> {
    // It lives as long as the pipe session that opens it, and is not a tab: clients see a target of type `other`.
    const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank', hidden: true, background: true })
    const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true })
    const page = new HiddenPage(pipe, targetId, sessionId)
    await Promise.all([
      page.#send('Network.enable'),
      // A service worker of the site would answer instead of the site.
      page.#send('Network.setBypassServiceWorker', { bypass: true }),
      page.#send('Fetch.enable', {
        patterns: [{ requestStage: 'Request' }, { requestStage: 'Response' }],
        handleAuthRequests: true,
      }),
    ])
    // Clients that attach to every new target detach from this one with a command that its first navigation would
    // delay.
    await page.#send('Runtime.evaluate', { expression: '1' })
    return page
  }

  get isOpen(): boolean {
    return !this.#pipe.isClosed
  }

  isOf(pipe: CdpPipe): boolean {
    return this.#pipe === pipe
  }

  /** One request at a time. Rejects with Chromium's net error; the page is then unusable. */
  async send({ url, method, headers, body }: PageRequest): Promise<PageAnswer> {
    const exchange: Exchange = {
      asked: Promise.withResolvers(),
      answered: Promise.withResolvers(),
      cookies: Promise.withResolvers(),
    }
    this.#exchange = exchange
    const navigation = this.#send('Page.navigate', { url })
    const failed = navigation.then(({ errorText }) => {
      throw netError(String(errorText ?? 'ERR_FAILED'))
    })
    failed.catch(() => {}) // Once it is answered, the end of the navigation is not a failure.

    const asked = await Promise.race([exchange.asked.promise, failed])
    await this.#send('Fetch.continueRequest', {
      requestId: asked.requestId,
      method,
      headers: merge(asked.request.headers, headers),
      ...(body && { postData: Buffer.from(body).toString('base64') }),
    }).catch((cause: Error) => {
      if (!this.isOpen) throw cause
      throw new BerthError(
        'invalid_input',
        { reason: `headers: are refused by the browser: ${cause.message}.` },
        { cause },
      )
    })
    const answered = await Promise.race([exchange.answered.promise, failed])
    if (answered.responseErrorReason !== undefined) {
      // Chromium gives only a coarse reason here; after it continues, the navigation fails with the exact one.
      await this.#send('Fetch.continueRequest', { requestId: answered.requestId })
      return await failed
    }
    return this.#answerOf(answered, exchange, navigation)
  }

  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    await this.#pipe.send('Target.closeTarget', { targetId: this.#targetId }).catch(() => {}) // The browser has ended.
  }

  async #answerOf(paused: PausedRequest, { cookies }: Exchange, navigation: Promise<unknown>): Promise<PageAnswer> {
    const { requestId, responseStatusCode = 0, responseHeaders = [] } = paused
    const set = await Promise.race([cookies.promise, delay(cookieMilliseconds, [])])
    const drop = async () => {
      await this.#send('Fetch.failRequest', { requestId, errorReason: 'Aborted' })
      await navigation
    }
    return {
      status: responseStatusCode,
      headers: [
        ...responseHeaders.map(({ name, value }) => [name, value] as const),
        ...set.map((cookie) => ['set-cookie', cookie] as const),
      ],
      read: () => this.#read(paused, drop),
      drop,
    }
  }

  async *#read({ requestId, responseHeaders = [] }: PausedRequest, drop: () => Promise<void>): AsyncGenerator<Buffer> {
    const { stream: handle } = await this.#send('Fetch.takeResponseBodyAsStream', { requestId })
    const read = (size: number) => this.#send('IO.read', { handle, size }) as unknown as Promise<StreamPart>
    const isLive = responseHeaders.some(
      ({ name, value }) => name.toLowerCase() === 'content-type' && value.startsWith('text/event-stream'),
    )
    try {
      yield* readStream({ read, isLive })
    } finally {
      await this.#send('IO.close', { handle }).catch(() => {})
      await drop().catch(() => {}) // The browser has ended.
    }
  }

  #pause(paused: PausedRequest): void {
    const isAnswer = paused.responseStatusCode !== undefined || paused.responseErrorReason !== undefined
    if (paused.resourceType === 'Document' && this.#exchange) {
      this.#exchange[isAnswer ? 'answered' : 'asked'].resolve(paused)
      return
    }
    // Only our own requests are allowed in this page.
    this.#send('Fetch.failRequest', { requestId: paused.requestId, errorReason: 'Aborted' }).catch(() => {})
  }

  /** Otherwise a person would be asked for name and password. The response is then the 401 that the server has sent. */
  #refuseToLogIn(requestId: string): void {
    const authChallengeResponse = { response: 'CancelAuth' as const }
    this.#send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(() => {})
  }

  #noteCookies(headers: object): void {
    const lines = Object.entries(headers).flatMap(([name, value]) =>
      name.toLowerCase() === 'set-cookie' ? String(value).split('\n') : [],
    )
    this.#exchange?.cookies.resolve(lines)
  }

  #send<Method extends CdpMethod>(method: Method, params?: CdpParams<Method>): Promise<CdpAnswer<Method>> {
    // The caller decides how long a site may take; then the page is closed.
    const sessionId = this.#sessionId
    return this.#pipe.send(method, params, { sessionId, limitMilliseconds: Number.POSITIVE_INFINITY })
  }
}

function merge(own: Readonly<Record<string, string>>, wanted: HeaderList): { name: string; value: string }[] {
  const replaced = new Set(wanted.map(([name]) => name.toLowerCase()))
  const kept = Object.entries(own).filter(([name]) => !replaced.has(name.toLowerCase()))
  return [...kept, ...wanted].map(([name, value]) => ({ name, value }))
}
