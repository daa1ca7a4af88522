import type { CdpPipe } from '../cdp-pipe.ts'
import { TargetSession } from './target-session.ts'

/** Callers often repeat requests soon; pages should not stay attached longer than that. */
const idleLimitMilliseconds = 300_000

/** Attaches to each target once, on first use: isolated worlds created in a page last as long as its document. */
export class TargetSessions {
  readonly #sessions = new Map<string, Promise<TargetSession>>()
  #pipe: CdpPipe | undefined
  #idle: NodeJS.Timeout | undefined

  /** Rejects when there is no such target. */
  get(pipe: CdpPipe, targetId: string): Promise<TargetSession> {
    if (pipe !== this.#pipe) this.#sessions.clear() // These belong to a browser that has ended.
    this.#pipe = pipe
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#detachAll(), idleLimitMilliseconds)
    this.#idle.unref()
    const known = this.#sessions.get(targetId)
    if (known) return known
    const attached = TargetSession.attach(pipe, targetId)
    this.#sessions.set(targetId, attached)
    const forget = () => {
      if (this.#sessions.get(targetId) === attached) this.#sessions.delete(targetId)
    }
    attached.then(({ lost }) => lost).then(forget, forget)
    return attached
  }

  #detachAll(): void {
    for (const attached of this.#sessions.values()) attached.then((session) => session.detach()).catch(() => {})
    this.#sessions.clear()
  }
}
