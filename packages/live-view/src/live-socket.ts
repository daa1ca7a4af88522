const answerLimitMilliseconds = 3_000
const requestUpdate = 3

/** The WebSocket of the session's screen, at the address of this page. */
export class LiveSocket {
  /** For noVNC, which reads and writes RFB. */
  readonly channel: WebSocket

  constructor() {
    const address = new URL(location.href)
    address.protocol = address.protocol.replace('http', 'ws')
    address.hash = ''
    this.channel = new WebSocket(address)
    this.channel.binaryType = 'arraybuffer'
  }

  sendJson(message: object): void {
    if (this.channel.readyState === WebSocket.OPEN) this.channel.send(JSON.stringify(message))
  }

  /** Whether the display responds when one pixel is requested. An idle screen sends nothing by itself. */
  async answers(): Promise<boolean> {
    const { channel } = this
    if (channel.readyState !== WebSocket.OPEN) return false
    return new Promise((resolve) => {
      const listening = new AbortController()
      const settle = (isAlive: boolean) => {
        listening.abort()
        clearTimeout(late)
        resolve(isAlive)
      }
      const late = setTimeout(() => settle(false), answerLimitMilliseconds)
      channel.addEventListener('message', () => settle(true), { signal: listening.signal })
      channel.send(Uint8Array.of(requestUpdate, 0, 0, 0, 0, 0, 0, 1, 0, 1))
    })
  }
}
