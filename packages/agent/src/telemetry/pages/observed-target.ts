import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import type { CdpEvent, CdpEventParams, CdpMethod, CdpParams } from '../../browser/cdp-types.ts'
import type { TelemetryReport, TelemetrySink } from '../telemetry-sink.ts'
import { ConsoleObserver } from './console-observer.ts'
import { InteractionObserver } from './interaction-observer.ts'
import { NetworkObserver } from './network-observer.ts'
import type { ObservablePage, Observer } from './observer.ts'
import { PageObserver } from './page-observer.ts'
import { ScreenshotObserver } from './screenshot-observer.ts'

type TargetInfo = CdpEventParams<'Target.targetCreated'>['targetInfo']
export const observedEvents = [
  'Runtime.consoleAPICalled',
  'Runtime.exceptionThrown',
  'Runtime.bindingCalled',
  'Network.requestWillBeSent',
  'Network.responseReceived',
  'Network.loadingFinished',
  'Network.loadingFailed',
  'Page.frameNavigated',
  'Page.domContentEventFired',
  'Page.loadEventFired',
  'PerformanceTimeline.timelineEventAdded',
] as const satisfies readonly CdpEvent[]

interface ObservedTargetOptions {
  readonly pipe: CdpPipe
  readonly collector: TelemetrySink
  readonly sessionId: string
  readonly info: TargetInfo
}

/** A page, frame or worker that the agent is attached to for telemetry. */
export class ObservedTarget implements ObservablePage {
  readonly collector: TelemetrySink
  readonly type: string
  readonly #pipe: CdpPipe
  readonly #sessionId: string
  readonly #info: TargetInfo
  readonly #observers: readonly Observer[]
  readonly #started = new Set<Observer>()
  readonly #screenshots: ScreenshotObserver
  #isPageEnabled = false
  #url: string
  #navigations = 0
  #frameId: string | undefined
  #loaderId: string | undefined

  constructor({ pipe, collector, sessionId, info }: ObservedTargetOptions) {
    this.collector = collector
    this.#pipe = pipe
    this.#sessionId = sessionId
    this.#info = info
    this.type = info.type
    this.#url = info.url
    this.#screenshots = new ScreenshotObserver(this)
    this.#observers = [
      new ConsoleObserver(this),
      new NetworkObserver(this),
      new PageObserver(this),
      new InteractionObserver(this),
      this.#screenshots,
    ]
  }

  get hasDocument(): boolean {
    return this.type !== 'worker'
  }

  send<Method extends CdpMethod>(method: Method, params?: CdpParams<Method>, limitMilliseconds?: number) {
    const limit = limitMilliseconds !== undefined && { limitMilliseconds }
    return this.#pipe.send(method, params, { sessionId: this.#sessionId, ...limit })
  }

  /** Applies the current configuration. */
  async update(): Promise<void> {
    const answers: Promise<unknown>[] = []
    if (this.hasDocument && !this.#isPageEnabled) {
      this.#isPageEnabled = true
      answers.push(this.send('Page.enable'))
    }
    for (const observer of this.#observers) {
      const isStarted = this.#started.has(observer)
      if (observer.isWanted === isStarted) continue
      if (isStarted) {
        this.#started.delete(observer)
        observer.stop()
      } else {
        this.#started.add(observer)
        answers.push(observer.start())
      }
    }
    // A target may close at any time; the next one is attached to as well.
    await Promise.allSettled(answers)
  }

  close(): void {
    for (const observer of this.#started) observer.stop()
    this.#started.clear()
  }

  take<Event extends CdpEvent>(event: Event, params: CdpEventParams<Event>): void {
    if (event === 'Page.frameNavigated') this.#noteNavigation(params as CdpEventParams<'Page.frameNavigated'>)
    for (const { handlers } of this.#started) (handlers[event] as ((params: unknown) => void) | undefined)?.(params)
  }

  /** Fields of every event of the target. */
  context(url = this.#url): Record<string, unknown> {
    return {
      session_id: this.#sessionId,
      target_id: this.#info.targetId,
      target_type: this.type,
      nav_seq: this.#navigations,
      ...(this.#frameId && { frame_id: this.#frameId }),
      ...(this.#loaderId && { loader_id: this.#loaderId }),
      ...(url && { url }),
    }
  }

  emit(type: TelemetryReport['type'], nativeName: string, data: object, truncated = false): void {
    const source = { kind: 'cdp' as const, event: nativeName }
    const all = data as Record<string, unknown>
    this.collector.emit({ type, source, data: all, ...(truncated && { truncated }) })
  }

  /** Notes a change that a person would see. */
  noteVisibleChange(): void {
    if (this.#started.has(this.#screenshots)) this.#screenshots.request()
  }

  #noteNavigation({ frame }: CdpEventParams<'Page.frameNavigated'>): void {
    const isTop = this.type === 'page' ? frame.parentId === undefined : frame.id === this.#info.targetId
    if (!isTop) return
    this.#navigations += 1
    this.#url = frame.url
    this.#frameId = frame.id
    this.#loaderId = frame.loaderId
  }
}
