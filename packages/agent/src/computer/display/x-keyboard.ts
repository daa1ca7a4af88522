import type { Key } from '../keys.ts'
import { characterOf, keysymNamed } from '../keysyms.ts'
import type { WindowPing } from './window-ping.ts'
import type { XConnection } from './x-connection.ts'

/** Bits in the state of the pointer: which of the two groups of a layout is active, and whether Caps Lock is on. */
const groupShift = 13
const groupMask = 3
const lockMask = 2

/**
 * Unused key codes that browsers take for keys of some keyboards, such as Japanese ones: pages would see that key's
 * position.
 */
const namedByBrowsers = [93, 97, 103, 120, 132, 197, 202]

const mappingOfKeyboard = 1

/** A key code of the server, and whether Shift is needed for the wanted meaning. */
interface Place {
  readonly keycode: number
  readonly isShifted: boolean
}

interface Spare {
  readonly keycode: number
  keysym: number
  /** Increases with each use. */
  lastUse: number
}

/**
 * Presses keys by their meaning, whatever the keyboard layout. Characters that the layout lacks are assigned to a spare
 * key. Programs look up the meaning when they process a key, so a spare key is reassigned only after the focused window
 * has processed everything typed before.
 */
export class XKeyboard {
  readonly #connection: XConnection
  readonly #ping: WindowPing
  /** Keysyms of each key code; undefined until it is queried, and after the layout has changed. */
  #layout: readonly (readonly number[])[] | undefined
  #spares: Spare[] = []
  #uses = 0
  /** The last use that the focused window is known to have processed. */
  #usesTaken = 0
  readonly #pressed = new Map<number, Place>()
  /** Shift keys pressed to give another key its meaning. */
  #shiftsHeld = 0

  constructor(connection: XConnection, ping: WindowPing) {
    this.#connection = connection
    this.#ping = ping
    connection.onEvent('MappingNotify', () => {
      this.#layout = undefined
    })
  }

  async press({ keysym }: Key): Promise<void> {
    const place = await this.#placeOf(keysym)
    this.#pressed.set(keysym, place)
    const spare = this.#spares.find(({ keycode }) => keycode === place.keycode)
    if (spare) spare.lastUse = ++this.#uses
    if (place.isShifted) await this.#holdShift()
    await this.#fake('KeyPress', place.keycode)
  }

  async release({ keysym }: Key): Promise<void> {
    const place = this.#pressed.get(keysym)
    if (!place) return
    this.#pressed.delete(keysym)
    await this.#fake('KeyRelease', place.keycode)
    if (place.isShifted) await this.#letShiftGo()
  }

  async #holdShift(): Promise<void> {
    this.#shiftsHeld += 1
    if (this.#shiftsHeld === 1) await this.#fake('KeyPress', (await this.#shift()).keycode)
  }

  async #letShiftGo(): Promise<void> {
    this.#shiftsHeld -= 1
    if (this.#shiftsHeld === 0) await this.#fake('KeyRelease', (await this.#shift()).keycode)
  }

  #shift(): Promise<Place> {
    return this.#placeOf(keysymNamed('Shift_L') as number)
  }

  async #placeOf(keysym: number): Promise<Place> {
    const layout = await this.#readLayout()
    const { keyMask } = await this.#connection.ask<{ keyMask: number }>('QueryPointer', this.#connection.root)
    const column = 2 * Math.min((keyMask >> groupShift) & groupMask, 1)
    const found = this.#find(layout, column, (other) => other === keysym)
    const place = found ?? (await this.#findCharacter(layout, column, keysym))
    // Caps Lock inverts the case of letters, and Shift inverts it again.
    const isTurned = (keyMask & lockMask) !== 0 && /^[a-z]$/i.test(characterOf(keysym) ?? '')
    return isTurned ? { ...place, isShifted: !place.isShifted } : place
  }

  /** The same character may have another keysym: those of older alphabets have two. */
  async #findCharacter(layout: readonly (readonly number[])[], column: number, keysym: number): Promise<Place> {
    const character = characterOf(keysym)
    const isSame = (other: number) => other !== 0 && characterOf(other) === character
    const found = character === undefined ? undefined : this.#find(layout, column, isSame)
    return found ?? { keycode: await this.#putOnSpare(keysym), isShifted: false }
  }

  #find(
    layout: readonly (readonly number[])[],
    column: number,
    isWanted: (keysym: number) => boolean,
  ): Place | undefined {
    for (const level of [0, 1]) {
      const index = layout.findIndex((keysyms) => isWanted(keysyms[column + level] ?? 0))
      if (index !== -1) return { keycode: this.#connection.keycodes.first + index, isShifted: level === 1 }
    }
    return undefined
  }

  async #readLayout(): Promise<readonly (readonly number[])[]> {
    if (this.#layout) return this.#layout
    const { first, count } = this.#connection.keycodes
    const layout = await this.#connection.ask<number[][]>('GetKeyboardMapping', first, count)
    const known = new Map(this.#spares.map((spare) => [spare.keycode, spare]))
    this.#spares = layout.flatMap((keysyms, index) => {
      const keycode = first + index
      const keysym = isSpare(keysyms) && keycode > first && !namedByBrowsers.includes(keycode) ? keysyms[0] : undefined
      if (keysym === undefined) return []
      const spare = known.get(keycode)
      return spare?.keysym === keysym ? [spare] : [{ keycode, keysym, lastUse: 0 }]
    })
    this.#layout = layout
    return layout
  }

  async #putOnSpare(keysym: number): Promise<number> {
    const spare = this.#spares.reduce((oldest, other) => (other.lastUse < oldest.lastUse ? other : oldest))
    if (spare.lastUse > this.#usesTaken) {
      const uses = this.#uses
      await this.#ping.answered()
      this.#usesTaken = uses
    }
    spare.keysym = keysym
    // The same in both groups of the layout, with and without Shift.
    this.#connection.send('ChangeKeyboardMapping', spare.keycode, 4, [keysym, keysym, keysym, keysym])
    await this.#notifyWindow()
    return spare.keycode
  }

  /**
   * Servers notify programs that subscribed to layout changes. Chromium did not: it would know the key's character but
   * give pages an empty `key`.
   */
  async #notifyWindow(): Promise<void> {
    const { first, count } = this.#connection.keycodes
    const { focus } = await this.#connection.ask<{ focus: number }>('GetInputFocus')
    const event = { name: 'MappingNotify', request: mappingOfKeyboard, firstKeyCode: first, count }
    if (focus > 1) this.#connection.send('SendEvent', focus, 0, 0, event)
    await this.#connection.sync()
  }

  async #fake(kind: 'KeyPress' | 'KeyRelease', keycode: number): Promise<void> {
    const { test } = this.#connection
    test.FakeInput?.(test[kind], keycode, 0, 0, 0, 0)
    await this.#connection.sync()
  }
}

/**
 * A key without a meaning, or with the same character in all places: only an earlier connection of ours assigns those.
 */
function isSpare([first = 0, ...others]: readonly number[]): boolean {
  if (first === 0) return others.every((keysym) => keysym === 0)
  return characterOf(first) !== undefined && others.slice(0, 3).every((keysym) => keysym === first)
}
