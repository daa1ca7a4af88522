/** X11 keysyms that the page sends itself. noVNC handles all others. */
export const keysyms = {
  v: 0x76,
  backspace: 0xff08,
  enter: 0xff0d,
  controlLeft: 0xffe3,
  altLeft: 0xffe9,
} as const
