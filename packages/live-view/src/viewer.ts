import RFB from '@novnc/novnc'
import { Clipboard } from './clipboard.ts'
import { Keyboard } from './keyboard.ts'
import { LiveSocket } from './live-socket.ts'

interface ViewerOptions {
  readonly screen: HTMLElement
  readonly field: HTMLTextAreaElement
  readonly status: HTMLElement
  readonly isReadOnly: boolean
}

type State = 'connecting' | 'connected' | 'ended'

const firstRetryMilliseconds = 250
const maxRetryMilliseconds = 5_000
/** Nearly lossless; the display resends blurred parts when the picture stops changing. */
const pictureQuality = 8

/** Shows the screen as long as the session exists, and reconnects whenever the connection is lost. */
export class Viewer {
  readonly #options: ViewerOptions
  readonly #keyboard: Keyboard
  readonly #clipboard: Clipboard
  #rfb: RFB | undefined
  #socket: LiveSocket | undefined
  #state: State = 'connecting'
  #retryMilliseconds = firstRetryMilliseconds
  #retry: number | undefined

  constructor(options: ViewerOptions) {
    this.#options = options
    this.#clipboard = new Clipboard((text) => this.#rfb?.clipboardPasteFrom(text))
    this.#keyboard = new Keyboard(options.field, {
      forward: (event) => this.#forward(event),
      typeText: (text) => this.#socket?.sendJson({ type: 'text', text }),
      press: (keysym, code, isDown) => this.#rfb?.sendKey(keysym, code, isDown),
      paste: (text) => this.#clipboard.give(text),
    })
  }

  start(): void {
    const { screen, isReadOnly } = this.#options
    if (!isReadOnly) {
      this.#keyboard.listen()
      this.#clipboard.listen()
      // A tap is a click in the session, and must not open the device's keyboard.
      screen.addEventListener('pointerdown', ({ pointerType }) => pointerType !== 'touch' && this.focus())
      screen.addEventListener('mousedown', (event) => event.preventDefault())
      // In a frame it would take keyboard input from the surrounding page.
      if (window === window.top) this.focus()
    }
    addEventListener('online', () => this.#connectionMayBeLost())
    document.addEventListener('visibilitychange', () => !document.hidden && this.#connectionMayBeLost())
    this.#connect()
  }

  focus(): void {
    this.#options.field.focus({ preventScroll: true })
  }

  #connect(): void {
    this.#show(this.#state === 'connected' ? 'connecting' : this.#state)
    const { screen, isReadOnly } = this.#options
    const socket = new LiveSocket()
    const rfb = new RFB(screen, socket.channel, { shared: true })
    this.#socket = socket
    this.#rfb = rfb
    rfb.scaleViewport = true
    rfb.focusOnClick = false
    rfb.viewOnly = isReadOnly
    rfb.qualityLevel = pictureQuality
    rfb.background = 'transparent'
    rfb.addEventListener('connect', () => this.#hasConnected(rfb))
    rfb.addEventListener('disconnect', () => this.#hasDisconnected(rfb))
    rfb.addEventListener('clipboard', ({ detail }) => {
      if (!isReadOnly) this.#clipboard.take(detail.text)
    })
  }

  #hasConnected(rfb: RFB): void {
    if (rfb !== this.#rfb) return
    this.#retryMilliseconds = firstRetryMilliseconds
    this.#show('connected')
  }

  #hasDisconnected(rfb: RFB): void {
    if (rfb !== this.#rfb) return
    this.#rfb = undefined
    this.#show('connecting')
    void this.#reconnect()
  }

  async #reconnect(): Promise<void> {
    if (await hasEnded()) return this.#show('ended')
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.#connect(), this.#retryMilliseconds)
    this.#retryMilliseconds = Math.min(2 * this.#retryMilliseconds, maxRetryMilliseconds)
  }

  /** After a network outage or sleep, the browser may not know yet that a connection is dead. */
  #connectionMayBeLost(): void {
    if (this.#state === 'ended') return
    this.#retryMilliseconds = firstRetryMilliseconds
    const rfb = this.#rfb
    if (!rfb) {
      clearTimeout(this.#retry)
      void this.#reconnect()
    } else if (this.#state === 'connected') {
      void this.#socket?.answers().then((isAlive) => {
        if (isAlive || rfb !== this.#rfb) return
        this.#hasDisconnected(rfb)
        rfb.disconnect()
      })
    }
  }

  /** noVNC listens to its canvas, which input methods do not support: the field has the focus instead. */
  #forward(event: KeyboardEvent): boolean {
    const canvas = this.#options.screen.querySelector('canvas')
    return canvas?.dispatchEvent(copyOf(event)) === false
  }

  #show(state: State): void {
    this.#state = state
    document.body.dataset.state = state
    this.#options.status.textContent = { connecting: 'Connecting…', connected: '', ended: 'This session has ended.' }[
      state
    ]
  }
}

/** The page itself is served as long as the session exists. */
async function hasEnded(): Promise<boolean> {
  try {
    const { status } = await fetch(location.href, { cache: 'no-store' })
    return status === 401 || status === 404 || status === 410
  } catch {
    return false // The network or berth is unavailable.
  }
}

const modifiers = ['AltGraph', 'CapsLock', 'Fn', 'NumLock', 'ScrollLock', 'Super', 'Hyper', 'Symbol'] as const

function copyOf(event: KeyboardEvent): KeyboardEvent {
  const { key, code, location, repeat, ctrlKey, shiftKey, altKey, metaKey, keyCode } = event
  const others = modifiers.map((name) => [`modifier${name}`, event.getModifierState(name)])
  return new KeyboardEvent(event.type, {
    ...{ key, code, location, repeat, ctrlKey, shiftKey, altKey, metaKey, keyCode },
    ...Object.fromEntries(others),
    cancelable: true,
  })
}
