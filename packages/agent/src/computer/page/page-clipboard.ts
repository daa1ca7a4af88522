import type { CdpPipe } from '../../browser/cdp-pipe.ts'

/** Gives the clipboard text, or takes it, in place of what an editor would do. */
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
 * The clipboard of a browser without a display, which is in Chromium alone. It is reached as by the menu of an editor, in
 * a page of our own that nobody sees: no page of the session is asked, or learns of it.
 */
export class PageClipboard {
  readonly #pipe: CdpPipe

  constructor(pipe: CdpPipe) {
    this.#pipe = pipe
  }

  async read(): Promise<string> {
    return this.#inEditor(async (evaluate, command) => {
      await command('paste')
      return String((await evaluate('globalThis.taken ?? ""')) ?? '')
    })
  }

  async write(text: string): Promise<void> {
    await this.#inEditor(async (evaluate, command) => {
      await evaluate(`globalThis.given = ${JSON.stringify(text)}`)
      await command('copy')
    })
  }

  async #inEditor<Result>(
    work: (
      evaluate: (expression: string) => Promise<unknown>,
      command: (name: 'copy' | 'paste') => Promise<unknown>,
    ) => Promise<Result>,
  ): Promise<Result> {
    const { targetId } = await this.#pipe.send('Target.createTarget', { url: 'about:blank', hidden: true })
    try {
      const { sessionId } = await this.#pipe.send('Target.attachToTarget', { targetId, flatten: true })
      const send = (method: string, params: Record<string, unknown>) =>
        this.#pipe.send(method, params, sessionId as string)
      const evaluate = async (expression: string) => {
        const { result } = await send('Runtime.evaluate', { expression, returnByValue: true })
        return (result as { value?: unknown }).value
      }
      await send('Emulation.setFocusEmulationEnabled', { enabled: true })
      await evaluate(listen)
      return await work(evaluate, (name) => send('Input.dispatchKeyEvent', { type: 'keyDown', commands: [name] }))
    } finally {
      await this.#pipe.send('Target.closeTarget', { targetId }).catch(() => {}) // It went with its Chromium.
    }
  }
}
