// xclip holds text for other programs and transfers long texts in pieces.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { locale } from '../../browser/child-program.ts'
import type { XConnection } from './x-connection.ts'

/** Limits the wait for a clipboard owner that has hung. */
const limitMilliseconds = 3_000
const maxTextBytes = 64 * 1024 * 1024
const ownerChanges = 1

/** The display's clipboard, shared by Chromium, pages and all other programs in the session. */
export class XClipboard {
  readonly #connection: XConnection
  readonly #environment: Readonly<Record<string, string>>
  #isWatched = false
  #onNewOwner = () => {}

  constructor(connection: XConnection, displayName: string) {
    this.#connection = connection
    this.#environment = { DISPLAY: displayName, PATH: '/usr/local/bin:/usr/bin:/bin', LANG: locale }
  }

  /** Its text; empty if it contains none. */
  async read(): Promise<string> {
    const program = this.#xclip(['-out'])
    const timer = setTimeout(() => program.kill('SIGKILL'), limitMilliseconds)
    const chunks: Buffer[] = []
    let bytes = 0
    program.stdout?.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > maxTextBytes) program.kill('SIGKILL')
    })
    const [code] = await once(program, 'close')
    clearTimeout(timer)
    // xclip fails if there is no text, without any other explanation.
    return code === 0 ? Buffer.concat(chunks).toString('utf8') : ''
  }

  /** Resolves when the next reader gets this text. The program runs until another program takes the clipboard. */
  async write(text: string): Promise<void> {
    await this.#watch()
    const isOwner = new Promise<void>((resolve) => {
      this.#onNewOwner = resolve
    })
    const program = this.#xclip(['-in', '-quiet', '-target', 'UTF8_STRING'])
    const failed = once(program, 'close').then(() => Promise.reject(new Error('xclip could not take the clipboard')))
    failed.catch(() => {}) // The program ends later, when another program takes the clipboard.
    program.stdin?.on('error', () => {}).end(text)
    await Promise.race([isOwner, failed])
  }

  async #watch(): Promise<void> {
    if (this.#isWatched) return
    this.#isWatched = true
    const { fixes, root } = this.#connection
    const clipboard = await this.#connection.ask<number>('InternAtom', false, 'CLIPBOARD')
    this.#connection.onEvent('SelectionNotify', () => this.#onNewOwner())
    fixes.SelectSelectionInput?.(root, clipboard, ownerChanges)
    await this.#connection.sync()
  }

  #xclip(args: readonly string[]): ChildProcess {
    const program = spawn('xclip', ['-selection', 'clipboard', ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...this.#environment },
    })
    program.unref()
    return program
  }
}
