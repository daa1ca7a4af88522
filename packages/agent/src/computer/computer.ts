import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { ComputerAction, ScreenshotRegion } from '@berth/contract/agent/operations/computer-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import { Actions } from './actions.ts'
import { DisplayScreen } from './display/display-screen.ts'
import { InputLock } from './input-lock.ts'
import { PageScreen } from './page/page-screen.ts'
import { pause } from './pause.ts'
import type { Point, Screen } from './screen.ts'

interface ComputerOptions {
  readonly browser: Browser
  readonly config: Pick<AgentConfig, 'headless' | 'viewport'>
}

/** Screen, mouse, keyboard and clipboard of the session, for one caller at a time. */
export class Computer {
  readonly #options: ComputerOptions
  readonly #lock = new InputLock()
  #display: DisplayScreen | undefined
  #page: PageScreen | undefined

  constructor(options: ComputerOptions) {
    this.#options = options
  }

  /** Waits for its turn and acts. If the signal aborts, it leaves the queue or stops halfway. */
  async act(signal: AbortSignal, work: (actions: Actions) => Promise<void>): Promise<void> {
    await this.use(signal, (screen) => work(new Actions(screen, signal)))
  }

  /**
   * Performs actions in order without interleaving with other callers; a failed action ends the batch and is named in
   * the error.
   */
  async batch(signal: AbortSignal, actions: readonly ComputerAction[]): Promise<void> {
    await this.use(signal, async (screen) => {
      for (const [index, action] of actions.entries()) {
        await perform(screen, signal, action).catch((error: Error) => {
          throw ofAction(`actions[${index}] (${action.type})`, error)
        })
      }
    })
  }

  async picture(signal: AbortSignal, region: ScreenshotRegion | undefined): Promise<Uint8Array> {
    return this.use(signal, async (screen) => {
      if (region) await checkRegion(screen, region)
      return screen.picture(region)
    })
  }

  async pointer(signal: AbortSignal): Promise<Point> {
    return this.use(signal, (screen) => screen.pointer())
  }

  async setPointerHidden(signal: AbortSignal, isHidden: boolean): Promise<void> {
    await this.use(signal, (screen) => screen.setPointerHidden(isHidden))
  }

  async readClipboard(signal: AbortSignal): Promise<string> {
    return this.use(signal, (screen) => screen.readClipboard())
  }

  async writeClipboard(signal: AbortSignal, text: string): Promise<void> {
    await this.use(signal, (screen) => screen.writeClipboard(text))
  }

  /** For callers that act in steps of their own. */
  async use<Result>(signal: AbortSignal, work: (screen: Screen) => Promise<Result>): Promise<Result> {
    return this.#lock.run(signal, async () => {
      try {
        return await work(await this.#screen())
      } catch (error) {
        if (error instanceof BerthError || signal.aborted) throw error
        throw failed('', error as Error)
      }
    })
  }

  /** The screen of the running browser, which changes after a crash. */
  async #screen(): Promise<Screen> {
    const { browser, config } = this.#options
    if (config.headless) {
      const chromium = await browser.running()
      if (this.#page?.chromium !== chromium) this.#page = new PageScreen(chromium, config.viewport)
      return this.#page
    }
    if (!this.#display || this.#display.isLost) {
      this.#display = await DisplayScreen.open(await browser.displayName())
    }
    return this.#display
  }
}

async function perform(screen: Screen, signal: AbortSignal, action: ComputerAction): Promise<void> {
  const actions = new Actions(screen, signal)
  signal.throwIfAborted()
  // The contract ensures that exactly the field named by the type is present.
  if (action.click_mouse) await actions.click(action.click_mouse)
  else if (action.move_mouse) await actions.move(action.move_mouse)
  else if (action.type_text) await actions.type(action.type_text)
  else if (action.press_key) await actions.press(action.press_key)
  else if (action.scroll) await actions.scroll(action.scroll)
  else if (action.drag_mouse) await actions.drag(action.drag_mouse)
  else if (action.set_cursor) await screen.setPointerHidden(action.set_cursor.hidden)
  else if (action.sleep) await pause(action.sleep.duration_ms, signal)
}

async function checkRegion(screen: Screen, { x, y, width, height }: ScreenshotRegion): Promise<void> {
  if (width <= 0 || height <= 0) {
    throw new BerthError('invalid_input', {
      reason: `region: width and height must be at least 1, not ${width}x${height}.`,
    })
  }
  const size = await screen.size()
  if (x >= 0 && y >= 0 && x + width <= size.width && y + height <= size.height) return
  const reason = `region: must lie within the screen, which is ${size.width}x${size.height}.`
  throw new BerthError('invalid_input', { reason })
}

/** Puts the position of the action in front of the message of its error. */
function ofAction(place: string, error: Error): Error {
  if (error instanceof BerthError && error.status === 400) {
    return new BerthError('invalid_input', { reason: `${place}: ${error.message}` }, { cause: error })
  }
  return error.name === 'AbortError' ? error : failed(`${place}: `, error)
}

function failed(place: string, cause: Error): BerthError {
  return new BerthError('computer_action_failed', { reason: `${place}It failed: ${cause.message}.` }, { cause })
}
