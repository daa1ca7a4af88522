import { machinePorts } from '@berth/contract/agent/machine/machine-network.ts'
import { tabsByActivity } from '../../browser/targets/tabs.ts'
import type { BrowserLine, CdpResult } from './browser-line.ts'

export interface Tab {
  readonly targetId: string
  readonly title: string
  readonly url: string
}

export interface PendingDialog {
  readonly type: string
  readonly message: string
}

/** Pages of the browser itself. */
const chromePages = /^(chrome|devtools|chrome-extension|chrome-untrusted):/

/** The tab that helpers work in: initially the visible one, later the one that code switches to. */
export class AttachedTab {
  readonly #line: BrowserLine
  #attached: Promise<{ readonly targetId: string; readonly sessionId: string }> | undefined
  /** Sessions of other targets that code has used. */
  readonly #others = new Map<string, Promise<string>>()
  #wanted: string | undefined
  dialog: PendingDialog | undefined
  /** Pending requests of the tab, as far as they were observed. */
  readonly openRequests = new Set<string>()
  lastRequestAt = 0

  constructor(line: BrowserLine) {
    this.#line = line
    line.onLost = () => this.#forget()
    line.listen(({ method, params, sessionId }) => void this.#note(method, params, sessionId))
  }

  async send(method: string, params: object = {}): Promise<CdpResult> {
    const { sessionId } = await this.attach()
    return this.#line.send(method, params, sessionId)
  }

  async sendTo(targetId: string, method: string, params: object = {}): Promise<CdpResult> {
    const known = this.#others.get(targetId)
    const attached =
      known ?? this.#line.send('Target.attachToTarget', { targetId, flatten: true }).then(({ sessionId }) => sessionId)
    this.#others.set(targetId, attached)
    attached.catch(() => this.#others.delete(targetId))
    return this.#line.send(method, params, await attached)
  }

  async list(includesChrome: boolean): Promise<Tab[]> {
    const { targetInfos } = await this.#line.send('Target.getTargets')
    return (targetInfos as (Tab & { type: string })[])
      .filter(({ type, url }) => type === 'page' && (includesChrome || !chromePages.test(url)))
      .map(({ targetId, title, url }) => ({ targetId, title, url }))
  }

  async current(): Promise<Tab> {
    const { targetId } = await this.attach()
    const tab = (await this.list(true)).find((found) => found.targetId === targetId)
    if (!tab) throw new Error('The tab was closed. newTab() opens another.')
    return tab
  }

  async switchTo(targetId: string): Promise<void> {
    await this.#line.send('Target.activateTarget', { targetId })
    await this.workIn(targetId)
  }

  /** Does not bring the tab to the front. */
  async workIn(targetId: string): Promise<void> {
    await this.#leave()
    this.#wanted = targetId
    await this.attach()
  }

  attach(): Promise<{ readonly targetId: string; readonly sessionId: string }> {
    if (this.#attached) return this.#attached
    const attached = this.#attachNow()
    this.#attached = attached
    attached.catch(() => {
      if (this.#attached === attached) this.#attached = undefined
    })
    return attached
  }

  async #attachNow(): Promise<{ readonly targetId: string; readonly sessionId: string }> {
    const targetId = this.#wanted ?? (await this.#shown())
    const { sessionId } = await this.#line.send('Target.attachToTarget', { targetId, flatten: true })
    this.#wanted = targetId
    // Not awaited: code must be able to switch away from a tab that does not answer.
    for (const method of ['Page.enable', 'DOM.enable']) this.#line.send(method, {}, sessionId).catch(() => {})
    this.#line.send('Emulation.setFocusEmulationEnabled', { enabled: true }, sessionId).catch(() => {})
    return { targetId, sessionId }
  }

  async #shown(): Promise<string> {
    await this.#line.send('Browser.getVersion') // Waits for the next browser after a crash.
    const [shown] = await tabsByActivity({ port: machinePorts.chromium })
    return shown ?? (await this.#line.send('Target.createTarget', { url: 'about:blank' })).targetId
  }

  async #leave(): Promise<void> {
    const attached = await this.#attached?.catch(() => undefined)
    this.#forgetTab()
    if (attached) await this.#line.send('Target.detachFromTarget', { sessionId: attached.sessionId }).catch(() => {})
  }

  #forget(): void {
    this.#others.clear()
    this.#wanted = undefined // The browser and its tabs have ended with the connection.
    this.#forgetTab()
  }

  #forgetTab(): void {
    this.#attached = undefined
    this.dialog = undefined
    this.openRequests.clear()
  }

  async #note(method: string, params: Record<string, unknown>, sessionId: string | undefined): Promise<void> {
    if (method === 'Target.detachedFromTarget') return this.#noteDetached(params.sessionId as string)
    const attached = await this.#attached?.catch(() => undefined)
    if (sessionId === undefined || sessionId !== attached?.sessionId) return
    if (method === 'Page.javascriptDialogOpening') {
      this.dialog = { type: String(params.type), message: String(params.message) }
    } else if (method === 'Page.javascriptDialogClosed') this.dialog = undefined
    else this.#noteRequest(method, String(params.requestId))
  }

  async #noteDetached(gone: string): Promise<void> {
    for (const [targetId, session] of this.#others) {
      if ((await session.catch(() => undefined)) === gone) this.#others.delete(targetId)
    }
    if ((await this.#attached?.catch(() => undefined))?.sessionId !== gone) return
    this.#wanted = undefined
    this.#forgetTab()
  }

  #noteRequest(method: string, requestId: string): void {
    if (method === 'Network.requestWillBeSent') this.openRequests.add(requestId)
    else if (method === 'Network.loadingFinished' || method === 'Network.loadingFailed')
      this.openRequests.delete(requestId)
    else return
    this.lastRequestAt = performance.now()
  }
}
