import type { ServerResponse } from 'node:http'

/** Counts the requests without a complete response, including those whose response is a stream. */
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
