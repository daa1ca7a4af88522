// Names and numbers from the headers of the X11 protocol.
import definitions from 'x11/lib/keysyms.js'

/** The bits that mark a keysym as that of a Unicode character. */
const unicodeMark = 0x0100_0000

/** Rare keys that browsers know but the protocol's own list lacks. */
const mediaKeysyms: Readonly<Record<string, number>> = {
  XF86AudioLowerVolume: 0x1008_ff11,
  XF86AudioMute: 0x1008_ff12,
  XF86AudioRaiseVolume: 0x1008_ff13,
  XF86AudioPlay: 0x1008_ff14,
  XF86AudioStop: 0x1008_ff15,
  XF86AudioPrev: 0x1008_ff16,
  XF86AudioNext: 0x1008_ff17,
  XF86HomePage: 0x1008_ff18,
  XF86Search: 0x1008_ff1b,
  XF86Back: 0x1008_ff26,
  XF86Forward: 0x1008_ff27,
  XF86Stop: 0x1008_ff28,
  XF86Refresh: 0x1008_ff29,
  XF86Favorites: 0x1008_ff30,
  XF86Reload: 0x1008_ff73,
}

/** Names that stand for no key. */
const noKeys = ['NoSymbol', 'VoidSymbol']

const keysymsByName = new Map<string, number>(Object.entries(mediaKeysyms))
const charactersByKeysym = new Map<number, string>()
for (const [name, { code, description }] of Object.entries(definitions)) {
  const shortName = name.replace(/^XK_/, '')
  if (!noKeys.includes(shortName)) keysymsByName.set(shortName, code)
  const [, character] = /^\((.)\)/u.exec(description ?? '') ?? []
  if (character !== undefined && !charactersByKeysym.has(code)) charactersByKeysym.set(code, character)
}

const keysymsByLowerCaseName = new Map<string, number>()
for (const [name, keysym] of keysymsByName) {
  const lowerCase = name.toLowerCase()
  if (!keysymsByLowerCaseName.has(lowerCase)) keysymsByLowerCaseName.set(lowerCase, keysym)
}

/** Finds a keysym by its name in X11. Case matters only where two names differ in nothing else. */
export function keysymNamed(name: string): number | undefined {
  return keysymsByName.get(name) ?? keysymsByLowerCaseName.get(name.toLowerCase())
}

export function keysymOf(character: string): number {
  const codePoint = character.codePointAt(0) ?? 0
  const isLatin1 = (codePoint >= 0x20 && codePoint <= 0x7e) || (codePoint >= 0xa0 && codePoint <= 0xff)
  return isLatin1 ? codePoint : unicodeMark + codePoint
}

/** The character that a key with this keysym enters; undefined for keys that enter none. */
export function characterOf(keysym: number): string | undefined {
  if ((keysym >= 0x20 && keysym <= 0x7e) || (keysym >= 0xa0 && keysym <= 0xff)) return String.fromCodePoint(keysym)
  if (keysym >= unicodeMark && keysym <= unicodeMark + 0x10_ffff) return String.fromCodePoint(keysym - unicodeMark)
  return charactersByKeysym.get(keysym)
}
