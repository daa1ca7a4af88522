import { MapperCdpConnection } from 'chromium-bidi/out/Default/gen/src/cdp/CdpConnection.js'
import type { WebSocket } from 'ws'

type SendCommand = MapperCdpConnection['sendCommand']
type CdpSession = Awaited<ReturnType<MapperCdpConnection['createBrowserSession']>>

/**
 * One client's line to the browser that others use too. What a client asks for holds on this line alone, and Chromium
 * takes it back when the line closes: subscriptions, preload scripts, intercepts, emulation.
 */
export class SharedBrowser extends MapperCdpConnection {
  readonly #leave: () => void
  #reportsDownloads = false

  /** `send` must not throw; `leave` is called instead of closing the browser. */
  constructor(chromium: WebSocket, send: (message: string) => void, leave: () => void) {
    super({
      setOnMessage: (take) => void chromium.on('message', (message) => void take(String(message))),
      sendMessage: send,
      close: () => chromium.terminate(),
    })
    this.#leave = leave
  }

  /** The mapper may hear of downloads from now on; where they go is then what Chromium does by itself. */
  async reportDownloads(session: CdpSession): Promise<void> {
    if (this.#reportsDownloads) return
    this.#reportsDownloads = true
    await session.sendCommand('Browser.setDownloadBehavior', { behavior: 'default', eventsEnabled: true })
  }

  override sendCommand: SendCommand = (method, params, sessionId) => {
    // BiDi has two ways to this command, its own and raw CDP; both end here.
    if (method === 'Browser.close') {
      setImmediate(this.#leave) // After the answer.
      return Promise.resolve({})
    }
    // The mapper begins with this. It would take away, for all clients, what another has set.
    if (method === 'Browser.setDownloadBehavior' && !this.#reportsDownloads && isDefault(params))
      return Promise.resolve({})
    return super.sendCommand(method, params, sessionId)
  }
}

function isDefault(params: object | undefined): boolean {
  return (params as { behavior?: unknown } | undefined)?.behavior === 'default'
}
