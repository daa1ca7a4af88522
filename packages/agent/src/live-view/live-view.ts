import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { Browser } from '../browser/browser.ts'
import { refuse } from '../cdp/cdp-relay.ts'
import type { Computer } from '../computer/computer.ts'
import type { Activity } from '../reporting/activity.ts'
import type { Screencast } from '../screencast/screencast.ts'
import type { TelemetrySink } from '../telemetry/telemetry-sink.ts'
import type { ViewerSocket } from './viewer-socket.ts'

/** Each costs the display some megabytes and a share of the processor. */
const maxViewers = 16
/** Limits typing when another caller holds the keyboard or the browser hangs. */
const typingLimitMilliseconds = 10_000

/** A higher rate costs the session more than it is worth. */
const screencastFramesPerSecond = 25
const screencastQuality = 85
const maxScreencastSize = { width: 3840, height: 3840 }

type Accept = () => Promise<ViewerSocket>

interface LiveViewOptions {
  readonly config: Pick<AgentConfig, 'headless' | 'run_folder'>
  readonly browser: Browser
  readonly activity: Activity
  readonly telemetry: TelemetrySink
  readonly computer: () => Promise<Computer>
}

/** Shows the session to viewers, who count as activity while they are connected. */
export class LiveView {
  readonly #options: LiveViewOptions
  #viewers = 0
  /** The screencast of a headless session, while somebody watches. */
  #cast: Screencast | undefined
  readonly #watching = new Set<Socket>()

  constructor(options: LiveViewOptions) {
    this.#options = options
  }

  get hasViewers(): boolean {
    return this.#viewers > 0
  }

  async connect(
    request: IncomingMessage,
    client: Socket,
    { head, isReadOnly }: { readonly head: Buffer; readonly isReadOnly: boolean },
  ): Promise<void> {
    client.on('error', () => client.destroy())
    if (this.#viewers >= maxViewers) {
      refuse(client, 429, `${maxViewers} viewers watch this session already.`)
      return
    }
    this.#viewers += 1
    const end = this.#options.activity.begin()
    const reportEnd = this.#reportBegin()
    client.on('close', () => {
      this.#viewers -= 1
      end()
      reportEnd()
    })
    try {
      await this.#show(request, client, { head, isReadOnly })
    } catch (error) {
      refuse(client, 503, `the screen cannot be reached: ${(error as Error).message}`)
    }
  }

  /** Telemetry reports live views of headful sessions only. */
  #reportBegin(): () => void {
    const { config, telemetry } = this.#options
    if (config.headless) return () => {}
    const source = { kind: 'local_process' as const }
    const viewer = { session_id: randomUUID() }
    const begun = performance.now()
    telemetry.emit({ type: 'live_view_connect', source, data: viewer })
    return () => {
      const data = { ...viewer, duration_ms: Math.round(performance.now() - begun) }
      telemetry.emit({ type: 'live_view_disconnect', source, data })
    }
  }

  async #show(
    request: IncomingMessage,
    client: Socket,
    { head, isReadOnly }: { readonly head: Buffer; readonly isReadOnly: boolean },
  ): Promise<void> {
    const { ViewerSocket } = await import('./viewer-socket.ts')
    const accept = () => ViewerSocket.accept(request, client, head)
    if (this.#options.config.headless) await this.#showPage(client, accept, isReadOnly)
    else await this.#showDisplay(client, accept, isReadOnly)
  }

  async #showDisplay(client: Socket, accept: Accept, isReadOnly: boolean): Promise<void> {
    const { browser, config } = this.#options
    const { showDisplay } = await import('./display-viewer.ts')
    await browser.displayName() // The display may be restarting.
    const display = await connectTo(join(config.run_folder, 'vnc.sock'))
    client.once('close', () => display.destroy())
    showDisplay(await accept(), { display, isReadOnly, typeText: (text) => this.#type(text) })
  }

  async #showPage(client: Socket, accept: Accept, isReadOnly: boolean): Promise<void> {
    const { PageViewer } = await import('./page-viewer.ts')
    const computer = await this.#options.computer()
    const screencast = await this.#startCast()
    this.#watching.add(client)
    client.once('close', () => {
      this.#watching.delete(client)
      if (this.#watching.size === 0) this.#stopCast()
    })
    new PageViewer(await accept(), { screencast, computer, isReadOnly })
  }

  /** One screencast for all viewers. */
  async #startCast(): Promise<Screencast> {
    const { Screencast } = await import('../screencast/screencast.ts')
    const { maxPictureBytes } = await import('./rfb-server-messages.ts')
    this.#cast ??= new Screencast({
      browser: this.#options.browser,
      framesPerSecond: screencastFramesPerSecond,
      quality: screencastQuality,
      maxSize: maxScreencastSize,
      maxPictureBytes,
    })
    return this.#cast
  }

  #stopCast(): void {
    this.#cast?.stop()
    this.#cast = undefined
  }

  async #type(text: string): Promise<void> {
    const computer = await this.#options.computer()
    await computer.act(AbortSignal.timeout(typingLimitMilliseconds), (actions) =>
      actions.type({ text, delay: 0, smooth: false, typo_chance: 0 }),
    )
  }
}

function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => socket.destroy())
      resolve(socket)
    })
  })
}
