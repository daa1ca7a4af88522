import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface ReceivedWebhook {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

type Answer = number | ((response: ServerResponse) => void)

/** The endpoint of a user's webhook. */
export class WebhookReceiver implements AsyncDisposable {
  readonly received: ReceivedWebhook[] = []
  /** The next responses. The last one repeats; the default is 204. */
  answers: Answer[] = [204]
  readonly #server: Server

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const body = await text(request)
      this.received.push({ path: request.url ?? '', headers: request.headers, body })
      this.#server.emit('webhook')
      const answer = (this.answers.length > 1 ? this.answers.shift() : this.answers[0]) ?? 204
      if (typeof answer === 'number') response.writeHead(answer).end()
      else answer(response)
    })
  }

  static async open(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver()
    receiver.#server.listen(0, '127.0.0.1')
    await once(receiver.#server, 'listening')
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook?x=1`
  }

  /** The types of the received events, with their ids. */
  get types(): readonly string[] {
    return this.received.map(({ body }) => JSON.parse(body).type)
  }

  /** Resolves when it has received this many. */
  async untilReceived(count: number): Promise<void> {
    while (this.received.length < count) await once(this.#server, 'webhook')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}
