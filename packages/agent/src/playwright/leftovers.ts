import { createHook } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'

/** Resources that can run code later: timers, including unreferenced ones, and pending system operations. */
const active = /^(Timeout|Immediate|WORKER|MESSAGEPORT|STATWATCHER|FSREQ.*|FILEHANDLECLOSEREQ|.*WRAP)$/

/** How long ending resources may take. */
const settleMilliseconds = 200
const pollMilliseconds = 10
const looks = 2

/** Detects what code has left running. */
export class Leftovers {
  readonly #open = new Set<number>()
  #isCounting = false
  #listeners = 0
  readonly #hook = createHook({
    trackPromises: false, // Tracking promises is expensive, and without another resource none of them continues.
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

  /** Called before a call begins. */
  expectNone(): void {
    this.#open.clear()
    this.#listeners = listenersOfProcess()
  }

  /** Called just before the code runs, so that resources of the browser connection do not count. */
  beginCounting(): void {
    this.#isCounting = true
    this.#hook.enable()
  }

  /** Whether nothing started by the code is still running; the connection is closed by then. */
  async areNone(): Promise<boolean> {
    const end = performance.now() + settleMilliseconds
    // Between two waits of the same code there may be a moment with none, so it checks twice.
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
