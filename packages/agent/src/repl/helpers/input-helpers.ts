import type { Deadline } from '../../script-process/deadline.ts'
import type { AttachedTab } from './attached-tab.ts'
import { js } from './evaluate.ts'
import { dispatchKeyEvent, focusForText, stateOfElement, tellOfChange } from './in-page.js'
import { keyDefinition, modifierBits } from './keys.ts'

interface Point {
  readonly x: number
  readonly y: number
}

interface ElementState extends Partial<Point> {
  /** Why the element cannot be used. */
  readonly problem?: string
}

interface ClickOptions {
  readonly button?: 'left' | 'middle' | 'right'
  readonly clickCount?: number
  readonly timeoutSec?: number
}

export function inputHelpers(tab: AttachedTab, deadline: Deadline) {
  const mouse = (type: string, point: Point, params: object = {}) =>
    tab.send('Input.dispatchMouseEvent', { type, ...point, ...params })

  /** The position of the element once it has stopped moving. */
  async function place(selector: string, timeoutSec: number): Promise<Point> {
    let last: ElementState = { problem: 'the page does not answer' }
    const found = await deadline.poll(timeoutSec, async () => {
      const before = last
      last = (await js(tab, stateOfElement, { arg: selector })) as ElementState
      const isStable = last.problem === undefined && last.x === before.x && last.y === before.y
      return isStable ? (last as Point) : undefined
    })
    if (!found) throw new Error(`${selector}: ${last.problem ?? 'the element keeps moving'}.`)
    return { x: found.x, y: found.y }
  }

  async function click(
    target: string | Point,
    { button = 'left', clickCount = 1, timeoutSec = 10 }: ClickOptions = {},
  ) {
    const point = typeof target === 'string' ? await place(target, timeoutSec) : { x: target.x, y: target.y }
    await mouse('mouseMoved', point)
    for (let count = 1; count <= clickCount; count++) {
      await mouse('mousePressed', point, { button, clickCount: count })
      await mouse('mouseReleased', point, { button, clickCount: count })
    }
  }

  async function typeText(text: string) {
    await tab.send('Input.insertText', { text: String(text) })
  }

  async function fillInput(
    selector: string,
    text: string,
    { clearFirst = true, timeoutSec = 10 }: { clearFirst?: boolean; timeoutSec?: number } = {},
  ) {
    await place(selector, timeoutSec)
    await js(tab, focusForText, { arg: { selector, clearsFirst: clearFirst } })
    if (clearFirst) await pressKey('Delete')
    if (text !== '') await typeText(text)
    await js(tab, tellOfChange, { arg: selector })
  }

  async function pressKey(key: string, modifiers?: unknown) {
    const { text, ...definition } = keyDefinition(key)
    const held = modifierBits(modifiers)
    // With a modifier like Control, a character is a command and enters no text.
    const typed = text !== undefined && (held & ~8) === 0 ? { text, type: 'keyDown' } : { type: 'rawKeyDown' }
    await tab.send('Input.dispatchKeyEvent', { ...definition, ...typed, modifiers: held })
    await tab.send('Input.dispatchKeyEvent', { ...definition, type: 'keyUp', modifiers: held })
  }

  async function scroll(x: number, y: number, dy = -300, dx = 0) {
    await mouse('mouseWheel', { x, y }, { deltaX: dx, deltaY: dy })
  }

  /** Dispatches an event that only the page's own code sees. */
  async function dispatchKey(selector: string, key = 'Enter', event = 'keypress') {
    const { windowsVirtualKeyCode: keyCode } = keyDefinition(key)
    const dispatched = await js(tab, dispatchKeyEvent, { arg: { selector, key, event, keyCode } })
    if (!dispatched) throw new Error(`${selector}: there is no match.`)
  }

  return { click, typeText, fillInput, pressKey, scroll, dispatchKey }
}
