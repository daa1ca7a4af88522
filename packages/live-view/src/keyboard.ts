import { keysyms } from './keysyms.ts'

interface KeyboardHandlers {
  /** Sends a key to the session; returns whether it was handled. */
  readonly forward: (event: KeyboardEvent) => boolean
  /** Types text that has no key. */
  readonly typeText: (text: string) => void
  readonly press: (keysym: number, code: string, isDown: boolean) => void
  /** Sets the clipboard of the session. */
  readonly paste: (text: string) => void
}

/** Keyboards of phones report a deletion only if there is text to delete. */
const filler = '        '
const pasteLimitMilliseconds = 200
const isMac = /mac|iphone|ipad/i.test(navigator.platform)

/**
 * Reads the keyboard from a field, so that input methods and dead keys work. Keys are sent to the session one at a
 * time; a composition, such as an accent, is sent as text.
 */
export class Keyboard {
  readonly #field: HTMLTextAreaElement
  readonly #handlers: KeyboardHandlers
  /** Set from a key for pasting until the browser's 'paste' event. */
  #awaitsPaste: { readonly event: KeyboardEvent; readonly timer: number } | undefined

  constructor(field: HTMLTextAreaElement, handlers: KeyboardHandlers) {
    this.#field = field
    this.#handlers = handlers
  }

  listen(): void {
    const field = this.#field
    field.addEventListener('keydown', (event) => this.#keyDown(event))
    field.addEventListener('keyup', (event) => this.#pass(event))
    field.addEventListener('input', (event) => this.#input(event as InputEvent))
    field.addEventListener('compositionend', ({ data }) => {
      if (data !== '') this.#handlers.typeText(data)
      // The browser is still writing into the field.
      queueMicrotask(() => this.#clear())
    })
    document.addEventListener('paste', (event) => this.#paste(event))
    this.#clear()
  }

  #keyDown(event: KeyboardEvent): void {
    if (belongsToComposition(event)) return
    if (isPasteKey(event)) {
      // Without `preventDefault`, so that the browser gives the page its clipboard, which requires no permission.
      this.#awaitPaste(event)
    } else if (isMac && event.metaKey && event.key.length === 1) {
      event.preventDefault()
      this.#withControl(event.key.toLowerCase().charCodeAt(0), event.code)
    } else this.#pass(event)
  }

  #pass(event: KeyboardEvent): void {
    if (!belongsToComposition(event) && this.#handlers.forward(event)) event.preventDefault()
  }

  #input({ inputType, isComposing, data }: InputEvent): void {
    if (isComposing || inputType.includes('omposition')) return
    if (inputType.startsWith('delete')) this.#strike(keysyms.backspace, 'Backspace')
    else if (inputType === 'insertLineBreak') this.#strike(keysyms.enter, 'Enter')
    else if (data) this.#handlers.typeText(data)
    this.#clear()
  }

  #awaitPaste(event: KeyboardEvent): void {
    const timer = setTimeout(() => {
      this.#awaitsPaste = undefined
      this.#handlers.forward(event) // The clipboard has no text: the session may have some.
    }, pasteLimitMilliseconds)
    this.#awaitsPaste = { event, timer }
  }

  #paste(event: ClipboardEvent): void {
    event.preventDefault()
    const text = event.clipboardData?.getData('text/plain') ?? ''
    if (text !== '') this.#handlers.paste(text)
    if (!this.#awaitsPaste) return
    const { event: key, timer } = this.#awaitsPaste
    clearTimeout(timer)
    this.#awaitsPaste = undefined
    if (key.metaKey) this.#withControl(keysyms.v, 'KeyV')
    else this.#handlers.forward(key)
  }

  /** Command becomes Control in the session. noVNC has pressed Alt for it. */
  #withControl(keysym: number, code: string): void {
    this.#handlers.press(keysyms.altLeft, 'MetaLeft', false)
    this.#handlers.press(keysyms.controlLeft, 'ControlLeft', true)
    this.#strike(keysym, code)
    this.#handlers.press(keysyms.controlLeft, 'ControlLeft', false)
  }

  #strike(keysym: number, code: string): void {
    this.#handlers.press(keysym, code, true)
    this.#handlers.press(keysym, code, false)
  }

  #clear(): void {
    this.#field.value = filler
    this.#field.setSelectionRange(filler.length, filler.length)
  }
}

/** The effect of such a key is the text that the browser puts into the field. */
function belongsToComposition({ isComposing, keyCode, key }: KeyboardEvent): boolean {
  return isComposing || keyCode === 229 || key === 'Dead' || key === 'Process'
}

function isPasteKey({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent): boolean {
  if (altKey) return false
  return ((ctrlKey || metaKey) && key.toLowerCase() === 'v') || (shiftKey && key === 'Insert')
}
