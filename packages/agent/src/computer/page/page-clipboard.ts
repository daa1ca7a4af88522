import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import { type HiddenPage, inHiddenPage } from '../../browser/targets/in-hidden-page.ts'

/** Handles copy and paste events in place of an editor. */
const listen = `
document.body.contentEditable = 'true'
document.body.focus()
addEventListener('copy', (event) => {
  event.clipboardData.setData('text/plain', globalThis.given)
  event.preventDefault()
})
addEventListener('paste', (event) => {
  globalThis.taken = event.clipboardData.getData('text/plain')
  event.preventDefault()
})`

/**
 * The clipboard of a browser without a display, which exists in Chromium only. It is accessed as by the menu of an
 * editor, in a page of our own: no page of the session is involved or notified.
 */
export class PageClipboard {
  readonly #pipe: CdpPipe

  constructor(pipe: CdpPipe) {
    this.#pipe = pipe
  }

  async read(): Promise<string> {
    return inHiddenPage(this.#pipe, async (page) => {
      await beEditor(page)
      return paste(page)
    })
  }

  async write(text: string): Promise<void> {
    await inHiddenPage(this.#pipe, async (page) => {
      await beEditor(page)
      await page.evaluate(`globalThis.given = ${JSON.stringify(text)}`)
      await command(page, 'copy')
      // Closing a page immediately discards pending writes; once the text can be read again, it has been written.
      if ((await paste(page)) !== text) throw new Error('the clipboard did not take the text')
    })
  }
}

async function beEditor(page: HiddenPage): Promise<void> {
  await page.send('Emulation.setFocusEmulationEnabled', { enabled: true })
  await page.evaluate(listen)
}

async function paste(page: HiddenPage): Promise<string> {
  await command(page, 'paste')
  return String((await page.evaluate('globalThis.taken')) ?? '')
}

async function command(page: HiddenPage, name: 'copy' | 'paste'): Promise<void> {
  await page.send('Input.dispatchKeyEvent', { type: 'keyDown', commands: [name] })
}
