// Uses the X protocol over the display's own socket: no process per click, and no native code.
import { createClient, type XClient, type XDisplay, type XEvent } from 'x11'

/** Far longer than any request takes. */
const answerLimitMilliseconds = 10_000

type Extension = Record<string, (...args: unknown[]) => unknown>

/** One client connection to an X server, for as long as that server lives. */
export class XConnection {
  readonly root: number
  readonly keycodes: { readonly first: number; readonly count: number }
  readonly test: Extension
  readonly fixes: Extension
  readonly #client: XClient
  /** Rejects all requests that wait for a response. */
  readonly #waiting = new Set<(error: Error) => void>()
  #isLost = false

  private constructor(display: XDisplay, { test, fixes }: { readonly test: Extension; readonly fixes: Extension }) {
    const { client, screen, min_keycode: first, max_keycode: last } = display
    this.root = screen[0]?.root ?? 0
    this.keycodes = { first, count: last - first + 1 }
    this.test = test
    this.fixes = fixes
    this.#client = client
    client.stream.on('close', () => this.#lose())
    // A request without a response fails if its window has closed; the next important request shows that.
    client.on('error', () => {})
    if (client.stream.destroyed) this.#lose()
  }

  static async open(displayName: string): Promise<XConnection> {
    const display = await new Promise<XDisplay>((resolve, reject) => {
      setTimeout(() => reject(new Error('the display does not answer')), answerLimitMilliseconds).unref()
      const options = { display: displayName, shm: false, auth: { name: '', data: '' } }
      createClient(options, (error, opened) => (error ? reject(error) : resolve(opened)))
    })
    const [test, fixes] = await Promise.all([extensionOf(display, 'xtest'), extensionOf(display, 'fixes')])
    return new XConnection(display, { test, fixes })
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** Sends a request and waits for its response. */
  ask<Reply>(request: string, ...args: unknown[]): Promise<Reply> {
    return this.#answer((callback) => this.#client[request]?.(...args, callback))
  }

  /** Sends a request of an extension and waits for its response. */
  askExtension<Reply>(extension: Extension, request: string, ...args: unknown[]): Promise<Reply> {
    return this.#answer((callback) => extension[request]?.(...args, callback))
  }

  /** Sends a request that has no response. */
  send(request: string, ...args: unknown[]): void {
    if (!this.#isLost) this.#client[request]?.(...args)
  }

  /** Resolves when the server has processed everything sent so far. */
  async sync(): Promise<void> {
    await this.ask('GetInputFocus')
  }

  onEvent(name: string, listener: (event: XEvent) => void): void {
    this.#client.on('event', (event) => {
      if (event.name === name) listener(event)
    })
  }

  close(): void {
    this.#client.stream.destroy()
  }

  #answer<Reply>(send: (callback: (error: Error | null, reply: Reply) => boolean) => void): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#isLost) return reject(lost())
      this.#waiting.add(reject)
      const timer = setTimeout(() => {
        this.#waiting.delete(reject)
        reject(new Error('the display does not answer'))
      }, answerLimitMilliseconds).unref()
      send((error, reply) => {
        clearTimeout(timer)
        this.#waiting.delete(reject)
        if (error) reject(error)
        else resolve(reply)
        return true // Marks the error as handled.
      })
    })
  }

  #lose(): void {
    this.#isLost = true
    for (const reject of this.#waiting) reject(lost())
    this.#waiting.clear()
  }
}

function lost(): Error {
  return new Error('the display has ended')
}

function extensionOf({ client }: XDisplay, name: string): Promise<Extension> {
  return new Promise((resolve, reject) => {
    client.require(name, (error, extension) => (error ? reject(error) : resolve(extension)))
  })
}
