/** Keeps the clipboards of the viewer and of the session the same, as far as the browser permits it. */
export class Clipboard {
  readonly #send: (text: string) => void
  /** What the session has copied and the viewer's clipboard does not have yet. */
  #waiting: string | undefined
  /** What both have. */
  #shared: string | undefined

  constructor(send: (text: string) => void) {
    this.#send = send
  }

  listen(): void {
    // Browsers permit writing only with the focus, and shortly after a key or a click.
    for (const type of ['keydown', 'pointerdown'] as const) addEventListener(type, () => void this.#write(), true)
    addEventListener('focus', () => {
      void this.#write()
      void this.#read()
    })
  }

  /** Of the viewer, to the session. */
  give(text: string): void {
    this.#waiting = undefined
    this.#shared = text
    this.#send(text)
  }

  /** Of the session, to the viewer. */
  take(text: string): void {
    if (text === this.#shared) return
    this.#waiting = text
    void this.#write()
  }

  async #write(): Promise<void> {
    const text = this.#waiting
    if (text === undefined || !document.hasFocus()) return
    this.#waiting = undefined
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      if (!copyByCommand(text)) {
        this.#waiting ??= text
        return
      }
    }
    this.#shared = text
  }

  /** So that pasting works by the menus of the session's pages too, where the viewer has permitted to read. */
  async #read(): Promise<void> {
    try {
      const { state } = await navigator.permissions.query({ name: 'clipboard-read' as PermissionName })
      if (state !== 'granted') return
      const text = await navigator.clipboard.readText()
      if (text !== '' && text !== this.#shared) this.give(text)
    } catch {
      // The browser knows no such permission, or has lost the focus again.
    }
  }
}

/** Pages without TLS have no other way. */
function copyByCommand(text: string): boolean {
  let hasCopied = false
  const copy = (event: ClipboardEvent) => {
    event.preventDefault()
    event.stopImmediatePropagation()
    event.clipboardData?.setData('text/plain', text)
    hasCopied = true
  }
  addEventListener('copy', copy, { capture: true, once: true })
  document.execCommand('copy')
  removeEventListener('copy', copy, { capture: true })
  return hasCopied
}
