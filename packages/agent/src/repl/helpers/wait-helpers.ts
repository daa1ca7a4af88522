import { setTimeout as delay } from 'node:timers/promises'
import type { Deadline } from '../../script-process/deadline.ts'
import type { AttachedTab } from './attached-tab.ts'
import type { BrowserLine, CdpEvent } from './browser-line.ts'
import { js } from './evaluate.ts'
import { isInState } from './in-page.js'

interface WaitForElementOptions {
  readonly state?: 'attached' | 'detached' | 'visible' | 'hidden'
  readonly timeoutSec?: number
}

const unansweredMilliseconds = 1_000
const elementStates = ['attached', 'detached', 'visible', 'hidden']

/** Each wait ends a little before the call's time limit, and returns whether it was successful. */
export function waitHelpers(line: BrowserLine, tab: AttachedTab, deadline: Deadline) {
  async function waitMs(milliseconds = 1000) {
    const possible = deadline.within(milliseconds / 1000)
    await delay(possible)
    if (possible < milliseconds) throw new Error(`waitMs: the call may not take another ${milliseconds} ms.`)
  }

  async function waitForLoad(timeoutSec = 15) {
    const isLoaded = async () => ((await js(tab, 'document.readyState')) === 'complete' ? true : undefined)
    // A command sent while one document replaces another may remain unanswered.
    const ask = () => Promise.race([isLoaded(), delay(unansweredMilliseconds, undefined, { ref: false })])
    return (await deadline.poll(timeoutSec, ask)) ?? false
  }

  async function waitForElement(selector: string, { state = 'visible', timeoutSec = 10 }: WaitForElementOptions = {}) {
    if (!elementStates.includes(state)) throw new Error(`state: must be one of ${elementStates.join(', ')}.`)
    const ask = async () => ((await js(tab, isInState, { arg: { selector, state } })) === true ? true : undefined)
    return (await deadline.poll(timeoutSec, ask)) ?? false
  }

  async function waitForNetworkIdle(idleSec = 0.5, timeoutSec = 30) {
    await tab.send('Network.enable')
    tab.lastRequestAt = performance.now()
    const isIdle = () => tab.openRequests.size === 0 && performance.now() - tab.lastRequestAt >= idleSec * 1000
    return (await deadline.poll(timeoutSec, async () => (isIdle() ? true : undefined))) ?? false
  }

  /** The next event with that name for which the optional function returns true. */
  async function waitForEvent(method: string, fits: (event: CdpEvent) => unknown = () => true) {
    const seen = Promise.withResolvers<CdpEvent>()
    const unlisten = line.listen((event) => {
      if (event.method === method && fits(event)) seen.resolve(event)
    })
    // Most events belong to the tab, which reports them after attaching. Not awaited, because the event may be what
    // keeps the tab from answering.
    tab.attach().catch(() => {})
    try {
      const event = await deadline.race(deadline.within(), seen.promise)
      if (!event) throw new Error(`${method} did not occur in time.`)
      return event
    } finally {
      unlisten()
    }
  }

  return { waitMs, waitForLoad, waitForElement, waitForNetworkIdle, waitForEvent }
}
