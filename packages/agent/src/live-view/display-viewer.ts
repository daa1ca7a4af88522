import type { Socket } from 'node:net'
import { characterOf } from '../computer/keysyms.ts'
import { ReadOnlyFilter } from './read-only-filter.ts'
import { type ClientMessage, RfbClientReader } from './rfb-client-reader.ts'
import { parseViewerMessage } from './viewer-message.ts'
import { closeCodes, type ViewerSocket } from './viewer-socket.ts'

interface DisplayViewerOptions {
  /** The VNC server of the display. */
  readonly display: Socket
  readonly isReadOnly: boolean
  readonly typeText: (text: string) => Promise<void>
}

/** The last character of keys in the display's own layout, the American one. */
const lastOwnCharacter = '~'

/**
 * Connects a viewer to the display, at the pace of the slower side. Data from the display is not parsed. From a
 * read-only viewer only harmless messages are passed on; from other viewers everything except keys that the display
 * does not have.
 */
export function showDisplay(viewer: ViewerSocket, { display, isReadOnly, typeText }: DisplayViewerOptions): void {
  const filter = isReadOnly ? new ReadOnlyFilter() : undefined
  const reader = new RfbClientReader()
  display.setNoDelay(true)
  display.on('close', () => viewer.close(closeCodes.goingAway, 'the display has ended'))
  viewer.onClose(() => display.destroy())

  display.on('data', (chunk: Buffer) => {
    viewer.send(chunk, () => {
      if (!viewer.isBehind) display.resume()
    })
    if (viewer.isBehind) display.pause()
  })
  viewer.onMessage((data, isBinary) => {
    if (isBinary) return pass(data)
    const message = parseViewerMessage(data)
    if (!message) refuse('a text message is not understood')
    // Later keys wait until the text is typed.
    else if (!isReadOnly) return typeText(message.text)
    return undefined
  })

  function pass(data: Buffer): Promise<void> | undefined {
    try {
      if (filter) return write(filter.pass(data))
      const messages = reader.read(data)
      if (messages.some((message) => foreignKey(message))) return passInOrder(messages)
      return write(joined(messages))
    } catch (error) {
      refuse((error as Error).message)
      return undefined
    }
  }

  /**
   * The display would assign such a character to a spare key and press it immediately. Chromium reads the layout too
   * late for that, and loses the character. So it is typed by computer controls.
   */
  async function passInOrder(messages: readonly ClientMessage[]): Promise<void> {
    for (const message of messages) {
      const key = foreignKey(message)
      if (!key) await write(message.bytes)
      // Another caller may hold the keyboard for long. Later messages, such as the release of a key, must still pass.
      else if (key.isDown) await typeText(key.character).catch(() => {})
    }
  }

  function write(bytes: Buffer): Promise<void> | undefined {
    if (bytes.length === 0 || display.write(bytes)) return undefined
    return new Promise((resolve) => {
      display.once('drain', resolve).once('close', resolve)
    })
  }

  function refuse(reason: string): void {
    viewer.close(closeCodes.refused, reason)
    display.destroy()
  }
}

function joined(messages: readonly ClientMessage[]): Buffer {
  return Buffer.concat(messages.map(({ bytes }) => bytes))
}

/** The key of the message, if it enters a character that no key of the display enters. */
function foreignKey({
  kind,
  bytes,
}: ClientMessage): { readonly character: string; readonly isDown: boolean } | undefined {
  if (kind !== 'key' && kind !== 'qemu') return undefined
  const character = characterOf(bytes.readUInt32BE(4))
  if (character === undefined || character <= lastOwnCharacter) return undefined
  return { character, isDown: kind === 'key' ? bytes[1] === 1 : bytes.readUInt16BE(2) === 1 }
}
