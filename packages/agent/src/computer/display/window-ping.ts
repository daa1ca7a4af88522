import type { XEvent } from 'x11'
import type { XConnection } from './x-connection.ts'

/** Limit for windows that do not support pings or are busy. */
const limitMilliseconds = 500

const substructureNotify = 1 << 19

/** Asks the focused window whether it has processed all of its input: it handles the ping in the same order. */
export class WindowPing {
  readonly #connection: XConnection
  readonly #answers = new Map<number, () => void>()
  #lastNumber = 0
  #atoms: Promise<readonly [protocols: number, ping: number]> | undefined

  constructor(connection: XConnection) {
    this.#connection = connection
    connection.onEvent('ClientMessage', (event) => {
      this.#take(event).catch(() => {}) // The display has ended.
    })
  }

  /** Resolves when the window has answered or the limit has passed. */
  async answered(): Promise<void> {
    const [protocols, ping] = await this.#start()
    const { focus } = await this.#connection.ask<{ focus: number }>('GetInputFocus')
    const isWindow = focus > 1 // 0 means no window, and 1 the window under the pointer.
    if (!isWindow) return
    const number = ++this.#lastNumber
    const answer = Promise.withResolvers<void>()
    this.#answers.set(number, answer.resolve)
    const timer = setTimeout(answer.resolve, limitMilliseconds)
    this.#connection.send('SendClientMessage', focus, focus, protocols, 32, [ping, number, focus, 0, 0], 0)
    await answer.promise
    clearTimeout(timer)
    this.#answers.delete(number)
  }

  #start(): Promise<readonly [number, number]> {
    this.#atoms ??= (async () => {
      const [protocols, ping] = await Promise.all(
        ['WM_PROTOCOLS', '_NET_WM_PING'].map((name) => this.#connection.ask<number>('InternAtom', false, name)),
      )
      // Answers are sent to the root window.
      this.#connection.send('ChangeWindowAttributes', this.#connection.root, { eventMask: substructureNotify })
      return [protocols as number, ping as number] as const
    })()
    return this.#atoms
  }

  async #take({ data }: XEvent): Promise<void> {
    const [, ping] = await this.#start()
    const [protocol, number] = data as number[]
    if (protocol === ping) this.#answers.get(number ?? 0)?.()
  }
}
