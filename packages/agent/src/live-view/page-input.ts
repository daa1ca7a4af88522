import type { MouseButton } from '@berth/contract/agent/operations/computer-operations.ts'
import type { Computer } from '../computer/computer.ts'
import type { Point, Screen, WheelDirection } from '../computer/screen.ts'

/** A busy page takes its input late. */
const inputLimitMilliseconds = 30_000
const maxWaiting = 256

/** Bits of an RFB pointer. Turning the wheel counts as pressing a button. */
const buttons: readonly MouseButton[] = ['left', 'middle', 'right']
const wheel: readonly WheelDirection[] = ['up', 'down', 'left', 'right']

type Step = (screen: Screen) => Promise<void>

/** The mouse and keyboard input of one viewer, in order. */
export class PageInput {
  readonly #computer: Computer
  #steps: Step[] = []
  /** The last step, if it only moves the mouse: a newer position replaces it. */
  #lastMove: Step | undefined
  #isWorking = false
  #mask = 0
  readonly #keys = new Set<number>()

  constructor(computer: Computer) {
    this.#computer = computer
  }

  /** Whether the viewer has sent more than the page can take. */
  get isFull(): boolean {
    return this.#steps.length >= maxWaiting
  }

  point({ x, y }: Point, mask: number): void {
    const before = this.#mask
    this.#mask = mask
    const move: Step = (screen) => screen.moveTo({ x, y })
    if (mask === before) {
      if (this.#lastMove && this.#steps.at(-1) === this.#lastMove) this.#steps.pop()
      this.#lastMove = move
      this.add(move)
      return
    }
    this.add(async (screen) => {
      await screen.moveTo({ x, y })
      for (const [bit, button] of buttons.entries()) {
        const isDown = ((mask >> bit) & 1) === 1
        if (isDown !== (((before >> bit) & 1) === 1)) await (isDown ? screen.press(button) : screen.release(button))
      }
      for (const [index, direction] of wheel.entries()) {
        const bit = buttons.length + index
        if (((mask & ~before) >> bit) & 1) await screen.turnWheel(direction)
      }
    })
  }

  key(keysym: number, isDown: boolean): void {
    if (isDown) this.#keys.add(keysym)
    else this.#keys.delete(keysym)
    this.add((screen) => (isDown ? screen.pressKey({ keysym }) : screen.releaseKey({ keysym })))
  }

  add(step: Step): void {
    this.#steps.push(step)
    if (!this.#isWorking) void this.#work()
  }

  /** Releases keys and buttons of a viewer that disconnects. */
  release(): void {
    this.#steps = []
    const [mask, keys] = [this.#mask, [...this.#keys]]
    this.add(async (screen) => {
      for (const [bit, button] of buttons.entries()) if ((mask >> bit) & 1) await screen.release(button)
      for (const keysym of keys) await screen.releaseKey({ keysym })
    })
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    for (let step = this.#steps.shift(); step; step = this.#steps.shift()) {
      // A page that has closed takes no input; the next step applies to another one.
      await this.#computer.use(AbortSignal.timeout(inputLimitMilliseconds), step).catch(() => {})
    }
    this.#isWorking = false
  }
}
