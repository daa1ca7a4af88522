import type { Chromium } from '../../browser/chromium.ts'
import type { Key } from '../keys.ts'
import { characterOf, keysymNamed } from '../keysyms.ts'
import type { Point, Size } from '../screen.ts'
import type { Dialog } from './dialog.ts'
import { buttonsOf, contains } from './dialog-layout.ts'

const returnKeys = [keysymNamed('Return'), keysymNamed('KP_Enter')]
const escapeKey = keysymNamed('Escape')
const backspaceKey = keysymNamed('BackSpace')

/**
 * Dialogs of pages in a headless browser, which does not draw them. They are answered as on a screen: with Return and
 * Escape, by typing, and by clicking one of their buttons.
 */
export class Dialogs {
  readonly #chromium: Chromium
  /** By the CDP session of their page. */
  readonly #open = new Map<string, Dialog>()
  readonly #watchers = new Map<string, Set<() => void>>()

  constructor(chromium: Chromium) {
    this.#chromium = chromium
    chromium.pipe.on('Page.javascriptDialogOpening', ({ type, url, message, defaultPrompt }, session) => {
      const dialog = { type, url, message, text: defaultPrompt ?? '', isSelected: true } as Dialog
      if (session === undefined) return
      this.#open.set(session, dialog)
      for (const notice of this.#watchers.get(session) ?? []) notice()
    })
    chromium.pipe.on('Page.javascriptDialogClosed', (_params, session) => {
      this.#open.delete(session ?? '')
    })
    chromium.pipe.on('Target.detachedFromTarget', ({ sessionId }) => {
      this.#open.delete(sessionId)
    })
  }

  /** The open dialog of the page. */
  of(session: string): Dialog | undefined {
    return this.#open.get(session)
  }

  /**
   * Calls the listener when the page opens a dialog, immediately if one is open, until the returned function is called.
   */
  watch(session: string, notice: () => void): () => void {
    const watchers = this.#watchers.get(session) ?? new Set()
    this.#watchers.set(session, watchers.add(notice))
    if (this.of(session)) notice()
    return () => {
      watchers.delete(notice)
      if (watchers.size === 0) this.#watchers.delete(session)
    }
  }

  /** Handles a key for the dialog; false if the page has none. A key with a command modifier enters no text. */
  async takeKey(session: string, { keysym }: Key, isCommand: boolean): Promise<boolean> {
    const dialog = this.of(session)
    if (!dialog) return false
    if (returnKeys.includes(keysym)) await this.#answer(session, true)
    else if (keysym === escapeKey) await this.#answer(session, false)
    else if (keysym === backspaceKey) write(dialog, [...dialog.text].slice(0, -1).join(''), '')
    else if (!isCommand) write(dialog, dialog.text, characterOf(keysym) ?? '')
    return true
  }

  takeText(session: string, text: string): boolean {
    const dialog = this.of(session)
    if (dialog) write(dialog, dialog.text, text)
    return dialog !== undefined
  }

  /** Handles a click on the dialog; false if the page has none. */
  async takeClick(session: string, point: Point, screen: Size): Promise<boolean> {
    const dialog = this.of(session)
    if (!dialog) return false
    const button = buttonsOf(dialog.type, screen).find(({ area }) => contains(area, point))
    if (button) await this.#answer(session, button.accepts)
    return true
  }

  async #answer(session: string, accept: boolean): Promise<void> {
    const dialog = this.of(session)
    this.#open.delete(session)
    const promptText = dialog?.type === 'prompt' && accept && { promptText: dialog.text }
    // Another client may have answered meanwhile.
    await this.#chromium.pipe.send('Page.handleJavaScriptDialog', { accept, ...promptText }, session).catch(() => {})
  }
}

function write(dialog: Dialog, kept: string, added: string): void {
  if (added === '' && kept === dialog.text) return // A key that enters no text.
  dialog.text = dialog.isSelected ? added : kept + added
  dialog.isSelected = false
}
