import type { CdpAnswer, CdpMethod, CdpParams } from '../../browser/cdp-types.ts'
import type { Chromium } from '../../browser/chromium.ts'
import { tabsByActivity } from '../../browser/targets/tabs.ts'

/** One page and the agent's session with it. */
export interface ActivePage {
  readonly targetId: string
  /** The agent's CDP session with the page. */
  readonly session: string
  /** Rejects if the page does not answer within the limit. */
  send<Method extends CdpMethod>(
    method: Method,
    params: CdpParams<Method>,
    limitMilliseconds: number,
  ): Promise<CdpAnswer<Method>>
}

/** Finds the page that a person would see. */
export class ActivePages {
  readonly chromium: Chromium
  readonly #sessions = new Map<string, Promise<string>>()

  constructor(chromium: Chromium) {
    this.chromium = chromium
    // Others attach to the same pages: only the end of our own session counts.
    chromium.pipe.on('Target.detachedFromTarget', ({ targetId, sessionId }) => {
      const known = this.#sessions.get(targetId ?? '')
      known
        ?.then((session) => {
          if (session === sessionId && this.#sessions.get(targetId ?? '') === known) {
            this.#sessions.delete(targetId ?? '')
          }
        })
        .catch(() => {})
    })
  }

  /** Starts to listen to all pages; a new page may open a dialog immediately. */
  watch(): void {
    const { pipe } = this.chromium
    pipe.on('Target.targetCreated', ({ targetInfo }) => {
      const { type, targetId } = targetInfo as { type: string; targetId: string }
      if (type !== 'page') return
      this.#attach(targetId).catch(() => {}) // It may have closed already.
    })
    pipe.send('Target.setDiscoverTargets', { discover: true }).catch(() => {}) // Chromium has just ended.
  }

  /**
   * The page that was brought to the front last; undefined if every page is closed. Pages are not asked for focus: that
   * takes too long before each event, and a page with an open dialog cannot answer.
   */
  async find(): Promise<ActivePage | undefined> {
    const [front] = await tabsByActivity(await this.chromium.endpoint)
    return front === undefined ? undefined : this.#attach(front)
  }

  async #attach(targetId: string): Promise<ActivePage> {
    const { pipe } = this.chromium
    const attaching = this.#sessions.get(targetId) ?? this.#open(targetId)
    this.#sessions.set(targetId, attaching)
    const session = await attaching.catch((error) => {
      this.#sessions.delete(targetId)
      throw error
    })
    return {
      targetId,
      session,
      send: (method, params, limitMilliseconds) => pipe.send(method, params, { sessionId: session, limitMilliseconds }),
    }
  }

  async #open(targetId: string): Promise<string> {
    const { sessionId } = await this.chromium.pipe.send('Target.attachToTarget', { targetId, flatten: true })
    // Enables dialog events. A page that waits for the answer to an earlier dialog does not respond.
    this.chromium.pipe.send('Page.enable', {}, sessionId).catch(() => {})
    return sessionId
  }
}
