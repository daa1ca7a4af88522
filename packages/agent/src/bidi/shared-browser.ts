import { MapperCdpConnection } from 'chromium-bidi/out/Default/gen/src/cdp/CdpConnection.js'
import type { WebSocket } from 'ws'

type SendCommand = MapperCdpConnection['sendCommand']
type CdpSession = Awaited<ReturnType<MapperCdpConnection['createBrowserSession']>>

interface AttachedToTarget {
  readonly params: { readonly sessionId: string; readonly targetInfo: { readonly type: string } }
  /** The session that reported the event: a tab's or the browser's. */
  readonly sessionId?: string
}

/** The beginning of this event in Chromium's messages; comparing only this prefix is cheap. */
const attachedPrefix = '{"method":"Target.attachedToTarget"'

/**
 * One client's connection to the browser that others also use. What a client sets applies to this connection only, and
 * Chromium reverts it when the connection closes: subscriptions, preload scripts, intercepts, emulation.
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
          if (!text.startsWith(attachedPrefix) || !this.#detachNonPage(JSON.parse(text))) void take(text)
        }),
      sendMessage: send,
      close: () => chromium.terminate(),
    })
    this.#leave = leave
  }

  /** Enables download events for the mapper; the download location remains Chromium's default. */
  async reportDownloads(session: CdpSession): Promise<void> {
    if (this.#reportsDownloads) return
    this.#reportsDownloads = true
    await session.sendCommand('Browser.setDownloadBehavior', { behavior: 'default', eventsEnabled: true })
  }

  /**
   * The mapper would detach from a target that is not a page (such as the agent's hidden ones), but leave the tab
   * around it waiting for the debugger: nothing would load in it while this connection is open.
   */
  #detachNonPage({ params, sessionId: parent }: AttachedToTarget): boolean {
    if (params.targetInfo.type !== 'other') return false
    const gone = () => {} // The target may have detached already.
    super.sendCommand('Target.detachFromTarget', { sessionId: params.sessionId }, parent).catch(gone)
    super.sendCommand('Runtime.runIfWaitingForDebugger', undefined, parent).catch(gone)
    return true
  }

  override sendCommand: SendCommand = (method, params, sessionId) => {
    // BiDi can send this command itself or as raw CDP; both end here.
    if (method === 'Browser.close') {
      setImmediate(this.#leave) // After the response.
      return Promise.resolve({})
    }
    // The mapper starts with this command, which would reset what another client has set for all clients.
    if (method === 'Browser.setDownloadBehavior' && !this.#reportsDownloads && isDefault(params))
      return Promise.resolve({})
    return super.sendCommand(method, params, sessionId)
  }
}

function isDefault(params: object | undefined): boolean {
  return (params as { behavior?: unknown } | undefined)?.behavior === 'default'
}
