import type { CdpParams } from '../../browser/cdp-types.ts'
import type { Key } from '../keys.ts'
import { characterOf, keysymNamed } from '../keysyms.ts'
import { characterKeys, namedKeys, type PageKey } from './us-keyboard.ts'

/** A key event of CDP. */
export type KeyEvent = CdpParams<'Input.dispatchKeyEvent'>

/** CDP's modifier bits by the key names that pages see. */
const shiftBit = 8
const modifierBits: Readonly<Record<string, number>> = { Alt: 1, Control: 2, Meta: 4, Shift: shiftBit }

const keysByKeysym = new Map(Object.entries(namedKeys).map(([name, key]) => [keysymNamed(name), key]))

const shift = namedKeys.Shift_L as PageKey

/** Computes the events that a page receives when keys are pressed and released. */
export class PageKeyboard {
  readonly #pressed = new Map<number, { readonly key: PageKey; readonly hasShift: boolean }>()

  /** CDP's bits of the pressed modifiers. */
  get modifiers(): number {
    const bits = this.#pressed.values().map(({ key, hasShift }) => {
      return (modifierBits[key.key] ?? 0) | (hasShift ? shiftBit : 0)
    })
    return bits.reduce((all, bit) => all | bit, 0)
  }

  /** Whether a modifier is down that makes a key a command: any except Shift. */
  get isCommanding(): boolean {
    return (this.modifiers & ~shiftBit) !== 0
  }

  press({ keysym }: Key): readonly KeyEvent[] {
    const { key, isShifted } = placeOf(keysym)
    const needsShift = isShifted && !this.#isShiftDown()
    this.#pressed.set(keysym, { key, hasShift: needsShift })
    return needsShift ? [this.#event('rawKeyDown', shift), this.#down(key)] : [this.#down(key)]
  }

  release({ keysym }: Key): readonly KeyEvent[] {
    const pressed = this.#pressed.get(keysym)
    if (!pressed) return []
    const { key, hasShift } = pressed
    // Its Shift is still down in this event, while a released modifier is already up in its own.
    this.#pressed.delete(keysym)
    const own = hasShift ? shiftBit : 0
    const up = this.#event('keyUp', key, own)
    return hasShift ? [up, this.#event('keyUp', shift)] : [up]
  }

  #isShiftDown(): boolean {
    return (this.modifiers & shiftBit) !== 0
  }

  #down(key: PageKey): KeyEvent {
    const text = this.#textOf(key)
    if (text === undefined) return this.#event('rawKeyDown', key)
    return { ...this.#event('keyDown', key), text, unmodifiedText: text }
  }

  #textOf(key: PageKey): string | undefined {
    if (this.isCommanding) return undefined
    if (key.key === 'Enter') return '\r'
    const character = this.#meaningOf(key)
    return [...character].length === 1 ? character : undefined
  }

  #meaningOf({ key, shiftedKey }: PageKey, extraModifiers = 0): string {
    const isShifted = ((this.modifiers | extraModifiers) & shiftBit) !== 0
    return isShifted ? (shiftedKey ?? key) : key
  }

  #event(type: KeyEvent['type'], key: PageKey, extraModifiers = 0): KeyEvent {
    const { code, keyCode, location = 0 } = key
    return {
      type,
      code,
      key: this.#meaningOf(key, extraModifiers),
      windowsVirtualKeyCode: keyCode,
      nativeVirtualKeyCode: keyCode,
      location,
      isKeypad: location === 3,
      modifiers: this.modifiers | extraModifiers,
    }
  }
}

function placeOf(keysym: number): { readonly key: PageKey; readonly isShifted: boolean } {
  const named = keysByKeysym.get(keysym)
  if (named) return { key: named, isShifted: false }
  const character = characterOf(keysym)
  const plain = characterKeys.find(({ key }) => key === character)
  if (plain) return { key: plain, isShifted: false }
  const shifted = characterKeys.find(({ shiftedKey }) => shiftedKey === character)
  if (shifted) return { key: shifted, isShifted: true }
  return { key: { code: '', keyCode: 0, key: character ?? 'Unidentified' }, isShifted: false }
}
