// Speaks the X protocol over the display's own socket: no process for each click, and no native code.
import { createClient, type XClient, type XDisplay, type XEvent } from 'x11'

/** Far more than any request takes. */
const answerLimitMilliseconds = 10_000

type Extension = Record<string, (...args: unknown[]) => unknown>

/** One client of an X server, for as long as that server lives. */
export class XConnection {
  readonly root: number
  readonly keycodes: { readonly first: number; readonly count: number }
  readonly test: Extension
  readonly fixes: Extension
  readonly #client: XClient
  /** Rejects what waits for an answer. */
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
    // A request without an answer fails when its window is gone by then; the next thing that matters tells.
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

  /** Sends a request and waits for its answer. */
  ask<Reply>(request: string, ...args: unknown[]): Promise<Reply> {
    return this.#answer((callback) => this.#client[request]?.(...args, callback))
  }

  /** Sends a request of an extension and waits for its answer. */
  askExtension<Reply>(extension: Extension, request: string, ...args: unknown[]): Promise<Reply> {
    return this.#answer((callback) => extension[request]?.(...args, callback))
  }

  /** Sends a request that has no answer. */
  send(request: string, ...args: unknown[]): void {
    if (!this.#isLost) this.#client[request]?.(...args)
  }

  /** Resolves when the server has done everything that was sent so far. */
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
        return true // An error has found somebody who sees it.
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
  return new Error('the display has gone')
}

function extensionOf({ client }: XDisplay, name: string): Promise<Extension> {
  return new Promise((resolve, reject) => {
    client.require(name, (error, extension) => (error ? reject(error) : resolve(extension)))
  })
}
