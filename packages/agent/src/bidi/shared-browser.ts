import { MapperCdpConnection } from 'chromium-bidi/out/Default/gen/src/cdp/CdpConnection.js'
import type { WebSocket } from 'ws'

type SendCommand = MapperCdpConnection['sendCommand']
type CdpSession = Awaited<ReturnType<MapperCdpConnection['createBrowserSession']>>

interface AttachedToTarget {
  readonly params: { readonly sessionId: string; readonly targetInfo: { readonly type: string } }
  /** The session in which it was told: a tab's, or the browser's. */
  readonly sessionId?: string
}

/** How Chromium begins that event; looking at no more of each message than this costs nothing. */
const attachedPrefix = '{"method":"Target.attachedToTarget"'

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
      setOnMessage: (take) =>
        void chromium.on('message', (message) => {
          const text = String(message)
          if (!text.startsWith(attachedPrefix) || !this.#letGo(JSON.parse(text))) void take(text)
        }),
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

  /**
   * The mapper would let go of a target that is no page (the agent's hidden ones) too, but forget the tab around it, which
   * waits as well: nothing would load in there for as long as this line is open.
   */
  #letGo({ params, sessionId: parent }: AttachedToTarget): boolean {
    if (params.targetInfo.type !== 'other') return false
    const gone = () => {} // By itself, which is as good.
    super.sendCommand('Target.detachFromTarget', { sessionId: params.sessionId }, parent).catch(gone)
    super.sendCommand('Runtime.runIfWaitingForDebugger', undefined, parent).catch(gone)
    return true
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
