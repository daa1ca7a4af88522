import { BerthError } from '@berth/contract/errors.ts'
import { keysymNamed, keysymOf } from './keysyms.ts'

export interface Key {
  /** Its X11 keysym, which names the meaning of a key, not its position. */
  readonly keysym: number
}

/** Names that people and other programs use, and X11's own. */
const aliases: Readonly<Record<string, string>> = {
  ctrl: 'Control_L',
  control: 'Control_L',
  controlleft: 'Control_L',
  controlright: 'Control_R',
  shift: 'Shift_L',
  shiftleft: 'Shift_L',
  shiftright: 'Shift_R',
  alt: 'Alt_L',
  altleft: 'Alt_L',
  altright: 'Alt_R',
  option: 'Alt_L',
  altgr: 'ISO_Level3_Shift',
  altgraph: 'ISO_Level3_Shift',
  // Browsers call the system key Meta; X11's Meta is a key that keyboards no longer have.
  meta: 'Super_L',
  super: 'Super_L',
  cmd: 'Super_L',
  command: 'Super_L',
  win: 'Super_L',
  windows: 'Super_L',
  enter: 'Return',
  esc: 'Escape',
  del: 'Delete',
  ins: 'Insert',
  pageup: 'Page_Up',
  pgup: 'Page_Up',
  pagedown: 'Page_Down',
  pgdn: 'Page_Down',
  pgdown: 'Page_Down',
  arrowup: 'Up',
  arrowdown: 'Down',
  arrowleft: 'Left',
  arrowright: 'Right',
  spacebar: 'space',
  capslock: 'Caps_Lock',
  numlock: 'Num_Lock',
  scrolllock: 'Scroll_Lock',
  printscreen: 'Print',
  contextmenu: 'Menu',
}

/** Control characters of a text that stand for keys. */
const keysOfControls: Readonly<Record<string, string>> = {
  '\n': 'Return',
  '\r': 'Return',
  '\t': 'Tab',
  '\b': 'BackSpace',
  '\x1b': 'Escape',
  '\x7f': 'Delete',
}

/**
 * The keys of a name in the order to press them: `a`, `F5`, or several joined by plus signs, `Ctrl+Shift+Tab`. Throws
 * `invalid_input` that names the field and the unknown key.
 */
export function keysNamed(name: string, field: string): readonly Key[] {
  const keysyms = partsOf(name).map((part) => {
    const keysym = keysymOfPart(part)
    if (keysym !== undefined) return keysym
    const where = part === name ? '' : ` in ${quote(name)}`
    throw new BerthError('invalid_input', { reason: `${field}: there is no key ${quote(part)}${where}.` })
  })
  return [...new Set(keysyms)].map((keysym) => ({ keysym }))
}

/** The key that enters a character; undefined for a control character without a key. */
export function keyOf(character: string): Key | undefined {
  const name = keysOfControls[character]
  if (name !== undefined) return { keysym: keysymNamed(name) as number }
  return /\p{Cc}/u.test(character) ? undefined : { keysym: keysymOf(character) }
}

/** Splits at each plus sign but one that is itself a key: `Ctrl++`. */
function partsOf(name: string): readonly string[] {
  if (name === '+') return [name]
  if (name.endsWith('++')) return [...name.slice(0, -2).split('+'), '+']
  return name.split('+')
}

function keysymOfPart(part: string): number | undefined {
  if ([...part].length === 1) return keyOf(part)?.keysym
  const name = part.trim()
  const [, codePoint] = /^U([0-9a-f]{4,6})$/i.exec(name) ?? []
  if (codePoint !== undefined) return keysymOfCodePoint(Number.parseInt(codePoint, 16))
  return keysymNamed(Object.hasOwn(aliases, name.toLowerCase()) ? (aliases[name.toLowerCase()] ?? name) : name)
}

function keysymOfCodePoint(codePoint: number): number | undefined {
  const isCharacter = codePoint <= 0x10_ffff && !(codePoint >= 0xd800 && codePoint <= 0xdfff)
  return isCharacter ? keyOf(String.fromCodePoint(codePoint))?.keysym : undefined
}

function quote(name: string): string {
  return JSON.stringify(name.length <= 80 ? name : `${name.slice(0, 80)}…`)
}
