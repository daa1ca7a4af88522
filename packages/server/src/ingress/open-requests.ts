import type { ServerResponse } from 'node:http'

/** How many requests have no complete answer yet, those with a stream for an answer among them. */
export class OpenRequests {
  readonly #open = new Set<ServerResponse>()

  get count(): number {
    return this.#open.size
  }

  add(response: ServerResponse): void {
    this.#open.add(response)
    response.once('close', () => this.#open.delete(response))
  }
}
