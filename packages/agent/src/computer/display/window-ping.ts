import type { XEvent } from 'x11'
import type { XConnection } from './x-connection.ts'

/** Windows that know of no pings, or are busy, are not waited for any longer. */
const limitMilliseconds = 500

const substructureNotify = 1 << 19

/** Asks the window that has the focus whether it has taken all of its input: its answer comes in the same order. */
export class WindowPing {
  readonly #connection: XConnection
  readonly #answers = new Map<number, () => void>()
  #lastNumber = 0
  #atoms: Promise<readonly [protocols: number, ping: number]> | undefined

  constructor(connection: XConnection) {
    this.#connection = connection
    connection.onEvent('ClientMessage', (event) => {
      this.#take(event).catch(() => {}) // The display has gone.
    })
  }

  /** Resolves when it has, or when the limit is over. */
  async answered(): Promise<void> {
    const [protocols, ping] = await this.#start()
    const { focus } = await this.#connection.ask<{ focus: number }>('GetInputFocus')
    const isWindow = focus > 1 // 0 and 1 stand for no window and for the one under the pointer.
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
      // Answers go to the root window.
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
