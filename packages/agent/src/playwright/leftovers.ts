import { createHook } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'

/** What can run code later: timers, also those that keep no process alive, and whatever waits for the system. */
const active = /^(Timeout|Immediate|WORKER|MESSAGEPORT|STATWATCHER|FSREQ.*|FILEHANDLECLOSEREQ|.*WRAP)$/

/** What is on its way to its end may take so long to get there. */
const patienceMilliseconds = 200
const pollMilliseconds = 10
const looks = 2

/** Finds what code has left behind that would go on after it. */
export class Leftovers {
  readonly #open = new Set<number>()
  #isCounting = false
  #listeners = 0
  readonly #hook = createHook({
    trackPromises: false, // They cost much, and without anything else in here none of them goes on.
    init: (id, type) => {
      if (this.#isCounting && active.test(type)) this.#open.add(id)
    },
    destroy: (id) => {
      this.#open.delete(id)
    },
  })

  /** Not counted itself. */
  async #pause(milliseconds: number): Promise<void> {
    this.#isCounting = false
    const over = delay(milliseconds)
    this.#isCounting = true
    await over
  }

  /** Before anything of a call. */
  expectNone(): void {
    this.#open.clear()
    this.#listeners = listenersOfProcess()
  }

  /** Just before its code: what the connection to the browser takes before is none of it. */
  beginCounting(): void {
    this.#isCounting = true
    this.#hook.enable()
  }

  /** Whether nothing that has begun with the code goes on; the connection is closed by then. */
  async areNone(): Promise<boolean> {
    const end = performance.now() + patienceMilliseconds
    // Between one wait and the next of the same code there is a moment without any: it is looked for twice.
    for (let quietLooks = 0; quietLooks < looks && performance.now() < end; ) {
      quietLooks = this.#open.size === 0 ? quietLooks + 1 : 0
      await this.#pause(quietLooks > 0 ? 1 : pollMilliseconds)
    }
    this.#isCounting = false
    this.#hook.disable()
    return this.#open.size === 0 && listenersOfProcess() <= this.#listeners
  }
}

function listenersOfProcess(): number {
  return process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
}
