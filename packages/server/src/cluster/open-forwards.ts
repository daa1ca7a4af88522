import type { Peers } from './peers/peers.ts'

const pollMilliseconds = 5_000

/**
 * The requests and connections that are being forwarded to other servers. A host that loses power or its network sends
 * nothing, and its connections would stay open for minutes. So when a server has sent no heartbeat for a minute,
 * connections to it are closed.
 */
export class OpenForwards {
  readonly #peers: Peers
  readonly #open = new Set<{ readonly owner: string; readonly cut: () => void }>()
  #timer: NodeJS.Timeout | undefined

  constructor(peers: Peers) {
    this.#peers = peers
  }

  /** Until the disposal, `cut` is called when the other server is gone or this server stops. */
  add(owner: string, cut: () => void): Disposable {
    const entry = { owner, cut }
    this.#open.add(entry)
    this.#timer ??= setInterval(() => void this.#look(), pollMilliseconds).unref()
    return { [Symbol.dispose]: () => void this.#open.delete(entry) }
  }

  close(): void {
    clearInterval(this.#timer)
    for (const { cut } of this.#open) cut()
  }

  async #look(): Promise<void> {
    try {
      for (const entry of [...this.#open]) {
        if (!(await this.#peers.addressOf(entry.owner)) && this.#open.has(entry)) entry.cut()
      }
    } catch {
      // Without a database, no server is known to be gone.
    }
  }
}
