import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { Browser } from '../browser/browser.ts'
import { refuse } from '../cdp/cdp-relay.ts'
import type { Computer } from '../computer/computer.ts'
import type { Activity } from '../reporting/activity.ts'

/** Each costs the display some megabytes and a share of the processor. */
const maxViewers = 16
/** Typing that takes longer is given up: somebody else holds the keyboard, or the browser hangs. */
const typingLimitMilliseconds = 10_000

interface LiveViewOptions {
  readonly config: Pick<AgentConfig, 'headless' | 'run_folder'>
  readonly browser: Browser
  readonly activity: Activity
  readonly computer: () => Promise<Computer>
}

/** Shows the session to viewers, who are activity for as long as they are there. */
export class LiveView {
  readonly #options: LiveViewOptions
  #viewers = 0

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
    client.on('close', () => {
      this.#viewers -= 1
      end()
    })
    try {
      await this.#show(request, client, { head, isReadOnly })
    } catch (error) {
      refuse(client, 503, `the screen cannot be reached: ${(error as Error).message}`)
    }
  }

  async #show(
    request: IncomingMessage,
    client: Socket,
    { head, isReadOnly }: { readonly head: Buffer; readonly isReadOnly: boolean },
  ): Promise<void> {
    const { browser, config } = this.#options
    const { ViewerSocket } = await import('./viewer-socket.ts')
    const { showDisplay } = await import('./display-viewer.ts')
    await browser.displayName() // The display may be starting again.
    const display = await connectTo(join(config.run_folder, 'vnc.sock'))
    client.once('close', () => display.destroy())
    const viewer = await ViewerSocket.accept(request, client, head)
    showDisplay(viewer, { display, isReadOnly, typeText: (text) => this.#type(text) })
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
