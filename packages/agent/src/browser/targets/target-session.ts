import type { CdpPipe } from '../cdp-pipe.ts'
import type { CdpSecret } from '../cdp-secret.ts'
import type { CdpAnswer, CdpEvent, CdpEventParams, CdpMethod, CdpParams } from '../cdp-types.ts'

/** A target that the agent is attached to over its own pipe, until `detach`. */
export class TargetSession {
  readonly #pipe: CdpPipe
  readonly #sessionId: string
  readonly #unwatch: readonly (() => void)[]
  /** Settles when the target has crashed or closed. */
  readonly lost: Promise<void>

  private constructor(pipe: CdpPipe, sessionId: string) {
    this.#pipe = pipe
    this.#sessionId = sessionId
    const lost = Promise.withResolvers<void>()
    this.lost = lost.promise
    this.#unwatch = [
      this.on('Inspector.targetCrashed', () => lost.resolve()),
      pipe.on('Target.detachedFromTarget', (params) => {
        if (params.sessionId === sessionId) lost.resolve()
      }),
    ]
    // Otherwise Chromium would not report a crash of the page.
    this.send('Inspector.enable').catch(() => {})
  }

  /** Rejects if there is no such target. Its page may still not answer. */
  static async attach(pipe: CdpPipe, targetId: string): Promise<TargetSession> {
    const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true })
    return new TargetSession(pipe, sessionId)
  }

  /** Callers with a limit of their own pass another one: `Infinity` for none. */
  send<Method extends CdpMethod>(
    method: Method,
    params?: CdpParams<Method>,
    limitMilliseconds?: number,
    secret?: CdpSecret,
  ): Promise<CdpAnswer<Method>> {
    const limit = limitMilliseconds !== undefined && { limitMilliseconds }
    return this.#pipe.send(method, params, { sessionId: this.#sessionId, secret, ...limit })
  }

  /** Calls the handler for each such event until the returned function is called. */
  on<Event extends CdpEvent>(event: Event, handler: (params: CdpEventParams<Event>) => void): () => void {
    return this.#pipe.on(event, (params, sessionId) => {
      if (sessionId === this.#sessionId) handler(params)
    })
  }

  detach(): void {
    for (const unwatch of this.#unwatch) unwatch()
    this.#pipe.send('Target.detachFromTarget', { sessionId: this.#sessionId }).catch(() => {}) // The target has closed.
  }
}
