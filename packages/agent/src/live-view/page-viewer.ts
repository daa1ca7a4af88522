import { setTimeout as delay } from 'node:timers/promises'
import { Actions } from '../computer/actions.ts'
import type { Computer } from '../computer/computer.ts'
import type { Frame, Screencast } from '../screencast/screencast.ts'
import { PageInput } from './page-input.ts'
import { type ClientMessage, encodingsIn, noSecurity, RfbClientReader, rfbVersion } from './rfb-client-reader.ts'
import {
  clipboardActions,
  clipboardCaps,
  encodings,
  newPicture,
  newSize,
  provideClipboard,
  readCutText,
  requestClipboard,
  serverInit,
} from './rfb-server-messages.ts'
import { parseViewerMessage } from './viewer-message.ts'
import { closeCodes, type ViewerSocket } from './viewer-socket.ts'

interface PageViewerOptions {
  readonly screencast: Screencast
  readonly computer: Computer
  readonly isReadOnly: boolean
}

/** How long a key waits for the text to paste. */
const pasteLimitMilliseconds = 1_000
/** How long a page may take to copy. */
const copyMilliseconds = 200
const typingLimitMilliseconds = 10_000
const controlKeys = [0xffe3, 0xffe4]
const copyKeys = [0x63, 0x78] // c and x

/** An RFB server for one viewer of a headless browser: each update is the whole picture of the front page. */
export class PageViewer {
  readonly #viewer: ViewerSocket
  readonly #options: PageViewerOptions
  readonly #reader = new RfbClientReader()
  readonly #input: PageInput
  readonly #gone = new AbortController()
  #size: Frame | undefined
  #sent: Frame | undefined
  /** Set while the viewer waits for an update; `isForced` if it also wants an unchanged picture. */
  #request: { readonly isForced: boolean } | undefined
  #isSending = false
  #hasClipboard = false
  #isControlDown = false
  #paste: PromiseWithResolvers<string> | undefined

  constructor(viewer: ViewerSocket, options: PageViewerOptions) {
    this.#viewer = viewer
    this.#options = options
    this.#input = new PageInput(options.computer)
    viewer.onMessage((data, isBinary) => {
      if (isBinary) this.#read(data)
      else this.#takeText(data)
      return undefined
    })
    viewer.onClose(() => {
      this.#gone.abort()
      if (!options.isReadOnly) this.#input.release()
    })
    viewer.send(rfbVersion)
    void this.#follow()
  }

  async #follow(): Promise<void> {
    const { screencast } = this.#options
    while (!this.#gone.signal.aborted) {
      await screencast.changes.next(this.#gone.signal)
      this.#update()
    }
  }

  #read(data: Buffer): void {
    try {
      for (const message of this.#reader.read(data)) this.#take(message)
    } catch (error) {
      this.#viewer.close(closeCodes.refused, (error as Error).message.slice(0, 100))
    }
  }

  #takeText(data: Buffer): void {
    const message = parseViewerMessage(data)
    if (!message) this.#viewer.close(closeCodes.refused, 'a text message is not understood')
    else if (!this.#options.isReadOnly) {
      const { text } = message
      // After the keys that came before it.
      this.#input.add((screen) =>
        new Actions(screen, AbortSignal.timeout(typingLimitMilliseconds)).type({
          text,
          delay: 0,
          smooth: false,
          typo_chance: 0,
        }),
      )
    }
  }

  #take({ kind, bytes }: ClientMessage): void {
    if (kind === 'version') this.#viewer.send(Buffer.from([1, noSecurity]))
    else if (kind === 'security') this.#viewer.send(Buffer.alloc(4))
    else if (kind === 'init') void this.#introduce()
    else if (kind === 'setEncodings') this.#agree(encodingsIn(bytes))
    else if (kind === 'updateRequest') {
      this.#request = { isForced: bytes[1] === 0 }
      this.#update()
    } else if (!this.#options.isReadOnly) this.#takeInput(kind, bytes)
  }

  /** The size is known with the first picture. */
  async #introduce(): Promise<void> {
    const { screencast } = this.#options
    while (!screencast.frame && !this.#gone.signal.aborted) await screencast.changes.next(this.#gone.signal)
    this.#size = screencast.frame
    if (this.#size) this.#viewer.send(serverInit(this.#size, 'berth'))
  }

  #agree(offered: readonly number[]): void {
    if (!offered.includes(encodings.tight)) throw new Error('the viewer must know the Tight encoding')
    if (!offered.includes(encodings.extendedClipboard) || this.#hasClipboard || this.#options.isReadOnly) return
    this.#hasClipboard = true
    this.#viewer.send(clipboardCaps())
  }

  #update(): void {
    const { frame } = this.#options.screencast
    if (!frame || !this.#size || !this.#request || this.#isSending) return
    if (frame === this.#sent && !this.#request.isForced) return
    this.#request = undefined
    const isResized = frame.width !== this.#size.width || frame.height !== this.#size.height
    this.#size = frame
    // The viewer asks again once it has changed its size.
    if (!isResized) this.#sent = frame
    this.#isSending = true
    this.#viewer.send(isResized ? newSize(frame) : newPicture(frame), () => {
      this.#isSending = false
      this.#update()
    })
  }

  #takeInput(kind: ClientMessage['kind'], bytes: Buffer): void {
    if (this.#input.isFull) throw new Error('the page takes no input')
    const scale = this.#size?.scale ?? 1
    if (kind === 'pointer') {
      const point = { x: bytes.readUInt16BE(2) * scale, y: bytes.readUInt16BE(4) * scale }
      this.#input.point(point, bytes[1] ?? 0)
    } else if (kind === 'key') this.#takeKey(bytes.readUInt32BE(4), bytes[1] === 1)
    else if (kind === 'qemu') this.#takeKey(bytes.readUInt32BE(4), bytes.readUInt16BE(2) === 1)
    else if (kind === 'cutText') this.#takeClipboard(bytes)
  }

  #takeKey(keysym: number, isDown: boolean): void {
    this.#input.key(keysym, isDown)
    if (controlKeys.includes(keysym)) this.#isControlDown = isDown
    if (!isDown && this.#isControlDown && copyKeys.includes(keysym)) {
      // Once the page has taken the keys, which a busy one does late.
      this.#input.add(async () => void this.#giveClipboard())
    }
  }

  /** A viewer first announces that it has text, and sends it on request. */
  #takeClipboard(bytes: Buffer): void {
    const { action, text } = readCutText(bytes)
    if ((action & clipboardActions.notify) !== 0) {
      const paste = Promise.withResolvers<string>()
      this.#paste = paste
      this.#viewer.send(requestClipboard())
      // The key for pasting follows immediately.
      this.#input.add(async (screen) => {
        const late = delay(pasteLimitMilliseconds, undefined, { ref: false })
        const pasted = await Promise.race([paste.promise, late])
        if (pasted !== undefined) await screen.writeClipboard(pasted)
      })
    } else if (text !== undefined && this.#paste) {
      this.#paste.resolve(text)
      this.#paste = undefined
    } else if (text !== undefined) this.#input.add((screen) => screen.writeClipboard(text))
  }

  async #giveClipboard(): Promise<void> {
    if (!this.#hasClipboard) return
    await delay(copyMilliseconds)
    const text = await this.#options.computer.readClipboard(this.#gone.signal).catch(() => '')
    if (text !== '' && !this.#gone.signal.aborted) this.#viewer.send(provideClipboard(text))
  }
}
