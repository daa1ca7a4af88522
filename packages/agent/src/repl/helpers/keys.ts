interface KeyDefinition {
  readonly key: string
  readonly code: string
  readonly windowsVirtualKeyCode: number
  readonly text?: string
}

const named: Readonly<Record<string, readonly [code: string, keyCode: number, text?: string]>> = {
  Enter: ['Enter', 13, '\r'],
  Tab: ['Tab', 9],
  Escape: ['Escape', 27],
  Backspace: ['Backspace', 8],
  Delete: ['Delete', 46],
  Insert: ['Insert', 45],
  ArrowLeft: ['ArrowLeft', 37],
  ArrowUp: ['ArrowUp', 38],
  ArrowRight: ['ArrowRight', 39],
  ArrowDown: ['ArrowDown', 40],
  Home: ['Home', 36],
  End: ['End', 35],
  PageUp: ['PageUp', 33],
  PageDown: ['PageDown', 34],
  ' ': ['Space', 32, ' '],
  Shift: ['ShiftLeft', 16],
  Control: ['ControlLeft', 17],
  Alt: ['AltLeft', 18],
  Meta: ['MetaLeft', 91],
  CapsLock: ['CapsLock', 20],
}

const aliases: Readonly<Record<string, string>> = { Return: 'Enter', Esc: 'Escape', Space: ' ', Ctrl: 'Control' }

/** CDP's description of a key: one with a name, a function key, or a character. */
export function keyDefinition(name: string): KeyDefinition {
  const key = aliases[name] ?? name
  const [code, keyCode, text] = named[key] ?? []
  if (code !== undefined)
    return { key, code, windowsVirtualKeyCode: keyCode as number, ...(text !== undefined && { text }) }
  const [, number] = /^F([1-9]|1\d|2[0-4])$/.exec(key) ?? []
  if (number) return { key, code: key, windowsVirtualKeyCode: 111 + Number(number) }
  if ([...key].length !== 1) throw new Error(`There is no key ${name}.`)
  const upper = key.toUpperCase()
  const isLetter = /^[A-Z]$/.test(upper)
  const code1 = isLetter ? `Key${upper}` : /^\d$/.test(key) ? `Digit${key}` : ''
  return { key, code: code1, windowsVirtualKeyCode: code1 ? upper.charCodeAt(0) : 0, text: key }
}

const bits: Readonly<Record<string, number>> = { alt: 1, ctrl: 2, control: 2, meta: 4, command: 4, shift: 8 }

/** A bit field, names of keys, or an object with them: `2`, `['Control']`, `{ ctrl: true }`. */
export function modifierBits(modifiers: unknown): number {
  if (modifiers === undefined || modifiers === null) return 0
  if (typeof modifiers === 'number') return modifiers
  const names = Array.isArray(modifiers)
    ? modifiers.map(String)
    : Object.entries(modifiers).flatMap(([name, isHeld]) => (isHeld ? [name] : []))
  return names.reduce((sum, name) => {
    const bit = bits[name.toLowerCase()]
    if (bit === undefined) throw new Error(`There is no modifier ${name}.`)
    return sum | bit
  }, 0)
}
