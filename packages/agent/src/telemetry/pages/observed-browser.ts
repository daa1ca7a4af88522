import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import type { CdpEvent, CdpEventParams } from '../../browser/cdp-types.ts'
import type { Chromium } from '../../browser/chromium.ts'
import type { CaptchaTasks } from '../captcha-tasks.ts'
import type { TelemetrySink } from '../telemetry-sink.ts'
import { CaptchaWatch } from './captcha-watch.ts'
import { ObservedTarget, observedEvents } from './observed-target.ts'

type TargetInfo = CdpEventParams<'Target.targetCreated'>['targetInfo']

const pageCategories = ['console', 'network', 'page', 'interaction', 'screenshot'] as const
/** In a browser with more pages and frames than this, only some are observed. */
const maxTargets = 500

/**
 * One run of Chromium, over a separate CDP session: discovery and attachment are settings of a session, and other parts
 * of the agent have their own. Targets are attached only while events of pages are captured.
 */
export class ObservedBrowser {
  readonly chromium: Chromium
  readonly #pipe: CdpPipe
  readonly #collector: TelemetrySink
  readonly #captchas: CaptchaWatch
  readonly #targets = new Map<string, ObservedTarget>()
  readonly #unwatch: (() => void)[] = []
  #session: Promise<string> | undefined
  #sessionId: string | undefined
  #discovers = false
  /** Set while existing targets are listed, which are not new tabs. */
  #isListing = false
  #attaches = false
  #updates: Promise<void> = Promise.resolve()

  constructor(chromium: Chromium, collector: TelemetrySink, captchaTasks: CaptchaTasks | undefined) {
    this.chromium = chromium
    this.#pipe = chromium.pipe
    this.#collector = collector
    this.#captchas = new CaptchaWatch(chromium.pipe, collector, captchaTasks)
  }

  close(): void {
    for (const unwatch of this.#unwatch.splice(0)) unwatch()
    for (const target of this.#targets.values()) target.close()
    this.#targets.clear()
    this.#captchas.close()
  }

  noteLookup(name: string): void {
    this.#captchas.noteLookup(name)
  }

  /** Applies the current configuration. Changes are made one at a time. */
  update(): Promise<void> {
    const updated = this.#updates.then(() => this.#update())
    this.#updates = updated.catch(() => {})
    return updated
  }

  async #update(): Promise<void> {
    const attaches = pageCategories.some((category) => this.#collector.captures(category))
    const watchesCaptchas = this.#captchas.isWanted
    const discovers = watchesCaptchas || this.#collector.captures('page')
    if (!attaches && !discovers && !this.#session) return
    this.#session ??= this.#open()
    const sessionId = await this.#session
    if (watchesCaptchas) this.#captchas.start()
    else this.#captchas.close()
    if (discovers !== this.#discovers) {
      this.#discovers = discovers
      this.#isListing = true
      await this.#pipe.send('Target.setDiscoverTargets', { discover: discovers }, sessionId)
      this.#isListing = false
    }
    if (attaches !== this.#attaches) {
      this.#attaches = attaches
      await this.#autoAttach(sessionId, attaches, [{ type: 'page' }])
      if (!attaches) this.#detachAll()
    }
    await Promise.all([...this.#targets.values()].map((target) => target.update()))
  }

  async #open(): Promise<string> {
    const { sessionId } = await this.#pipe.send('Target.attachToBrowserTarget')
    this.#sessionId = sessionId
    this.#watch('Target.targetCreated', ({ targetInfo }, session) => {
      if (session !== sessionId) return
      this.#captchas.take(targetInfo)
      if (!this.#isListing) this.#reportTab(targetInfo)
    })
    this.#watch('Target.targetInfoChanged', ({ targetInfo }, session) => {
      if (session === sessionId) this.#captchas.take(targetInfo)
    })
    this.#watch('Target.targetDestroyed', ({ targetId }, session) => {
      if (session === sessionId) this.#captchas.lose(targetId)
    })
    this.#watch('Target.targetCrashed', ({ targetId }, session) => {
      if (session === sessionId) void this.#reportCrash(targetId)
    })
    this.#watch('Target.attachedToTarget', ({ sessionId: attached, targetInfo }, session) => {
      if (session === sessionId || this.#targets.has(session ?? '')) this.#attach(attached, targetInfo)
    })
    this.#watch('Target.detachedFromTarget', ({ sessionId: detached }) => {
      this.#targets.get(detached)?.close()
      this.#targets.delete(detached)
    })
    for (const event of observedEvents) {
      this.#watch(event, (params, session) => this.#targets.get(session ?? '')?.take(event, params))
    }
    return sessionId
  }

  #watch<Event extends CdpEvent>(
    event: Event,
    handler: (params: CdpEventParams<Event>, session: string | undefined) => void,
  ): void {
    this.#unwatch.push(this.#pipe.on(event, handler))
  }

  /** New targets wait until their events are observed, so that none is missed. */
  #autoAttach(sessionId: string, autoAttach: boolean, filter: { type: string }[]): Promise<unknown> {
    const settings = { autoAttach, waitForDebuggerOnStart: autoAttach, flatten: true, ...(autoAttach && { filter }) }
    return this.#pipe.send('Target.setAutoAttach', settings, sessionId)
  }

  #attach(sessionId: string, info: TargetInfo): void {
    if (this.#attaches && this.#targets.size < maxTargets) {
      const target = new ObservedTarget({ pipe: this.#pipe, collector: this.#collector, sessionId, info })
      this.#targets.set(sessionId, target)
      // In this order: Chromium executes the commands of a session one at a time.
      void target.update()
      this.#autoAttach(sessionId, true, [{ type: 'iframe' }, { type: 'worker' }]).catch(() => {})
    }
    this.#pipe.send('Runtime.runIfWaitingForDebugger', undefined, sessionId).catch(() => {}) // The target has closed.
  }

  #detachAll(): void {
    for (const [sessionId, target] of this.#targets) {
      target.close()
      this.#pipe.send('Target.detachFromTarget', { sessionId }).catch(() => {}) // The target has closed.
    }
    this.#targets.clear()
  }

  #reportTab({ type, targetId, url, title, openerId }: TargetInfo): void {
    if (type !== 'page') return
    this.#collector.emit({
      type: 'page_tab_opened',
      source: { kind: 'cdp', event: 'Target.targetCreated' },
      data: { target_id: targetId, target_type: type, url, title, ...(openerId && { opener_id: openerId }) },
    })
  }

  async #reportCrash(targetId: string): Promise<void> {
    const { targetInfos } = await this.#pipe
      .send('Target.getTargets', undefined, this.#sessionId)
      .catch(() => ({ targetInfos: [] }))
    const info = targetInfos.find((target) => target.targetId === targetId)
    if (info && info.type !== 'page') return
    this.#collector.emit({
      type: 'page_crashed',
      source: { kind: 'cdp', event: 'Target.targetCrashed' },
      data: { target_id: targetId, target_type: info?.type ?? 'page', ...(info && { url: info.url }) },
    })
  }
}
