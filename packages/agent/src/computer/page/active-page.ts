import type { Chromium } from '../../browser/chromium.ts'
import { http } from '../../http.ts'

const limitMilliseconds = 5_000

interface ListedTarget {
  readonly id: string
  readonly type: string
  readonly url: string
}

/** One page and the agent's line to it. */
export interface ActivePage {
  readonly targetId: string
  /** The CDP session in which the agent speaks to it. */
  readonly session: string
  send(method: string, params?: Record<string, unknown>): Promise<Record<string, unknown>>
}

/** Finds the page that a person would see. */
export class ActivePages {
  readonly chromium: Chromium
  readonly #sessions = new Map<string, Promise<string>>()

  constructor(chromium: Chromium) {
    this.chromium = chromium
    chromium.pipe.on('Target.detachedFromTarget', ({ targetId }) => {
      this.#sessions.delete(targetId as string)
    })
  }

  /** From now on listens to the dialogs of all pages; a new one may show a dialog at once. */
  watchDialogs(): void {
    const { pipe } = this.chromium
    pipe.on('Target.targetCreated', ({ targetInfo }) => {
      const { type, targetId } = targetInfo as { type: string; targetId: string }
      if (type !== 'page') return
      // A page that waits for the answer to an older dialog does not answer, and one may be gone again.
      const listening = this.#attach(targetId).then(({ send }) => send('Page.enable'))
      listening.catch(() => {})
    })
    pipe.send('Target.setDiscoverTargets', { discover: true }).catch(() => {}) // Chromium has just ended.
  }

  /** The page that was brought to the front last; undefined when every page is closed. */
  async find(): Promise<ActivePage | undefined> {
    const targets = await this.#list()
    const front = targets.find(({ type, url }) => type === 'page' && !url.startsWith('devtools://'))
    return front && this.#attach(front.id)
  }

  /** Chromium lists what was shown last first; the pipe's own list is in no order. */
  async #list(): Promise<readonly ListedTarget[]> {
    const { port } = await this.chromium.endpoint
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(limitMilliseconds)
      const request = http.get({ host: '127.0.0.1', port, path: '/json/list', agent: false, signal }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString('utf8'))))
      })
      request.on('error', reject)
    })
  }

  async #attach(targetId: string): Promise<ActivePage> {
    const { pipe } = this.chromium
    const attaching = this.#sessions.get(targetId) ?? this.#open(targetId)
    this.#sessions.set(targetId, attaching)
    const session = await attaching.catch((error) => {
      this.#sessions.delete(targetId)
      throw error
    })
    return { targetId, session, send: (method, params) => pipe.send(method, params, session) }
  }

  async #open(targetId: string): Promise<string> {
    const { sessionId } = await this.chromium.pipe.send('Target.attachToTarget', { targetId, flatten: true })
    return sessionId as string
  }
}
