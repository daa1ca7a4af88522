/** The description of a key that browsers give pages. */
export interface PageKey {
  /** Its position on the keyboard; empty for characters that no key of this keyboard enters. */
  readonly code: string
  /** The deprecated number of the key, which many pages still read. */
  readonly keyCode: number
  readonly key: string
  /** With Shift, if it enters another character. */
  readonly shiftedKey?: string
  /** 1 left, 2 right, 3 number pad. */
  readonly location?: number
}

const letterKeys = Array.from('abcdefghijklmnopqrstuvwxyz', (letter) => ({
  code: `Key${letter.toUpperCase()}`,
  keyCode: letter.toUpperCase().charCodeAt(0),
  key: letter,
  shiftedKey: letter.toUpperCase(),
}))

const digitKeys = Array.from(')!@#$%^&*(', (shiftedKey, digit) => ({
  code: `Digit${digit}`,
  keyCode: 48 + digit,
  key: String(digit),
  shiftedKey,
}))

const signKeys = [
  ...[sign('Minus', 189, '-_'), sign('Equal', 187, '=+'), sign('BracketLeft', 219, '[{'), sign('Semicolon', 186, ';:')],
  ...[sign('BracketRight', 221, ']}'), sign('Quote', 222, `'"`), sign('Backquote', 192, '`~')],
  ...[sign('Backslash', 220, '\\|'), sign('Comma', 188, ',<'), sign('Period', 190, '.>'), sign('Slash', 191, '/?')],
  { code: 'Space', keyCode: 32, key: ' ' },
]

/** The keyboard of the United States, which headless browsers have. */
export const characterKeys: readonly PageKey[] = [...letterKeys, ...digitKeys, ...signKeys]

/** Keys that enter no character, by their names in X11. */
export const namedKeys: Readonly<Record<string, PageKey>> = {
  Return: { code: 'Enter', keyCode: 13, key: 'Enter' },
  KP_Enter: { code: 'NumpadEnter', keyCode: 13, key: 'Enter', location: 3 },
  Tab: { code: 'Tab', keyCode: 9, key: 'Tab' },
  BackSpace: { code: 'Backspace', keyCode: 8, key: 'Backspace' },
  Escape: { code: 'Escape', keyCode: 27, key: 'Escape' },
  Delete: { code: 'Delete', keyCode: 46, key: 'Delete' },
  Insert: { code: 'Insert', keyCode: 45, key: 'Insert' },
  Home: { code: 'Home', keyCode: 36, key: 'Home' },
  End: { code: 'End', keyCode: 35, key: 'End' },
  Page_Up: { code: 'PageUp', keyCode: 33, key: 'PageUp' },
  Page_Down: { code: 'PageDown', keyCode: 34, key: 'PageDown' },
  Left: { code: 'ArrowLeft', keyCode: 37, key: 'ArrowLeft' },
  Up: { code: 'ArrowUp', keyCode: 38, key: 'ArrowUp' },
  Right: { code: 'ArrowRight', keyCode: 39, key: 'ArrowRight' },
  Down: { code: 'ArrowDown', keyCode: 40, key: 'ArrowDown' },
  Shift_L: { code: 'ShiftLeft', keyCode: 16, key: 'Shift', location: 1 },
  Shift_R: { code: 'ShiftRight', keyCode: 16, key: 'Shift', location: 2 },
  Control_L: { code: 'ControlLeft', keyCode: 17, key: 'Control', location: 1 },
  Control_R: { code: 'ControlRight', keyCode: 17, key: 'Control', location: 2 },
  Alt_L: { code: 'AltLeft', keyCode: 18, key: 'Alt', location: 1 },
  Alt_R: { code: 'AltRight', keyCode: 18, key: 'Alt', location: 2 },
  ISO_Level3_Shift: { code: 'AltRight', keyCode: 225, key: 'AltGraph', location: 2 },
  Super_L: { code: 'MetaLeft', keyCode: 91, key: 'Meta', location: 1 },
  Super_R: { code: 'MetaRight', keyCode: 92, key: 'Meta', location: 2 },
  Meta_L: { code: 'MetaLeft', keyCode: 91, key: 'Meta', location: 1 },
  Meta_R: { code: 'MetaRight', keyCode: 92, key: 'Meta', location: 2 },
  Caps_Lock: { code: 'CapsLock', keyCode: 20, key: 'CapsLock' },
  Num_Lock: { code: 'NumLock', keyCode: 144, key: 'NumLock' },
  Scroll_Lock: { code: 'ScrollLock', keyCode: 145, key: 'ScrollLock' },
  Pause: { code: 'Pause', keyCode: 19, key: 'Pause' },
  Print: { code: 'PrintScreen', keyCode: 44, key: 'PrintScreen' },
  Menu: { code: 'ContextMenu', keyCode: 93, key: 'ContextMenu' },
  XF86Back: { code: 'BrowserBack', keyCode: 166, key: 'BrowserBack' },
  XF86Forward: { code: 'BrowserForward', keyCode: 167, key: 'BrowserForward' },
  ...Object.fromEntries(
    Array.from({ length: 24 }, (_, index) => {
      const name = `F${index + 1}`
      return [name, { code: name, keyCode: 112 + index, key: name }]
    }),
  ),
  ...Object.fromEntries(
    Array.from({ length: 10 }, (_, digit) => [
      `KP_${digit}`,
      { code: `Numpad${digit}`, keyCode: 96 + digit, key: String(digit), location: 3 },
    ]),
  ),
  KP_Add: { code: 'NumpadAdd', keyCode: 107, key: '+', location: 3 },
  KP_Subtract: { code: 'NumpadSubtract', keyCode: 109, key: '-', location: 3 },
  KP_Multiply: { code: 'NumpadMultiply', keyCode: 106, key: '*', location: 3 },
  KP_Divide: { code: 'NumpadDivide', keyCode: 111, key: '/', location: 3 },
  KP_Decimal: { code: 'NumpadDecimal', keyCode: 110, key: '.', location: 3 },
}

function sign(code: string, keyCode: number, [key = '', shiftedKey = '']: string): PageKey {
  return { code, keyCode, key, shiftedKey }
}
