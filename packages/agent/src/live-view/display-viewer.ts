import type { Socket } from 'node:net'
import { ReadOnlyFilter } from './read-only-filter.ts'
import { parseViewerMessage } from './viewer-message.ts'
import { closeCodes, type ViewerSocket } from './viewer-socket.ts'

interface DisplayViewerOptions {
  /** The VNC server of the display. */
  readonly display: Socket
  readonly isReadOnly: boolean
  readonly typeText: (text: string) => Promise<void>
}

/**
 * Connects a viewer to the display. RFB passes unparsed in both directions, at the pace of the slower side, except that
 * of what a read-only viewer sends only the harmless part goes on.
 */
export function showDisplay(viewer: ViewerSocket, { display, isReadOnly, typeText }: DisplayViewerOptions): void {
  const filter = isReadOnly ? new ReadOnlyFilter() : undefined
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
    if (isBinary) return write(data)
    const message = parseViewerMessage(data)
    if (!message) refuse('a text message is not understood')
    // The keys that follow wait until the text is there.
    else if (!isReadOnly) return typeText(message.text)
    return undefined
  })

  function write(data: Buffer): Promise<void> | undefined {
    try {
      const bytes = filter ? filter.pass(data) : data
      if (bytes.length === 0 || display.write(bytes)) return undefined
    } catch (error) {
      refuse((error as Error).message)
      return undefined
    }
    return new Promise((resolve) => {
      display.once('drain', resolve).once('close', resolve)
    })
  }

  function refuse(reason: string): void {
    viewer.close(closeCodes.refused, reason)
    display.destroy()
  }
}
