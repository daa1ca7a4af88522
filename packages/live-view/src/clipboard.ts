/** Synchronizes the clipboards of the viewer and of the session, as far as the browser permits. */
export class Clipboard {
  readonly #send: (text: string) => void
  /** Text that the session has copied and the viewer's clipboard does not have yet. */
  #waiting: string | undefined
  /** Text that both have. */
  #shared: string | undefined

  constructor(send: (text: string) => void) {
    this.#send = send
  }

  listen(): void {
    // Browsers permit writing only with focus, and shortly after a key or a click.
    for (const type of ['keydown', 'pointerdown'] as const) addEventListener(type, () => void this.#write(), true)
    addEventListener('focus', () => {
      void this.#write()
      void this.#read()
    })
  }

  /** Sends the viewer's text to the session. */
  give(text: string): void {
    this.#waiting = undefined
    this.#shared = text
    this.#send(text)
  }

  /** Sends the session's text to the viewer. */
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

  /** Lets menus of the session's pages paste, if the viewer has permitted reading. */
  async #read(): Promise<void> {
    try {
      const { state } = await navigator.permissions.query({ name: 'clipboard-read' as PermissionName })
      if (state !== 'granted') return
      const text = await navigator.clipboard.readText()
      if (text !== '' && text !== this.#shared) this.give(text)
    } catch {
      // The browser does not know this permission, or has lost the focus again.
    }
  }
}

/** The only way on pages without TLS. */
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
