import type { CdpEventParams } from '../../browser/cdp-types.ts'
import type { ObservablePage, Observer } from './observer.ts'

const settledMilliseconds = 1_000

type TimelineEvent = CdpEventParams<'PerformanceTimeline.timelineEventAdded'>['event']

/** The lifecycle of the documents of a target. */
export class PageObserver implements Observer {
  readonly #target: ObservablePage
  #timer: NodeJS.Timeout | undefined
  #hasContent = false
  /** Set from the load of a document until its layout is stable. */
  #isSettling = false

  constructor(target: ObservablePage) {
    this.#target = target
  }

  get isWanted(): boolean {
    return this.#target.hasDocument && this.#target.collector.captures('page')
  }

  readonly handlers = {
    'Page.frameNavigated': ({ frame }: CdpEventParams<'Page.frameNavigated'>) => this.#takeNavigation(frame),
    'Page.domContentEventFired': ({ timestamp }: CdpEventParams<'Page.domContentEventFired'>) => {
      this.#hasContent = true
      this.#emit('page_dom_content_loaded', 'Page.domContentEventFired', { cdp_timestamp: timestamp })
    },
    'Page.loadEventFired': ({ timestamp }: CdpEventParams<'Page.loadEventFired'>) => {
      this.#emit('page_load', 'Page.loadEventFired', { cdp_timestamp: timestamp })
      this.#isSettling = true
      this.#restart()
      this.#target.noteVisibleChange()
    },
    'PerformanceTimeline.timelineEventAdded': ({ event }: CdpEventParams<'PerformanceTimeline.timelineEventAdded'>) =>
      this.#takeTimeline(event),
  }

  start(): Promise<unknown> {
    const eventTypes = ['largest-contentful-paint', 'layout-shift']
    return this.#target.send('PerformanceTimeline.enable', { eventTypes })
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#target.send('PerformanceTimeline.enable', { eventTypes: [] }).catch(() => {}) // The target has closed.
  }

  #takeNavigation({ id, parentId, loaderId, url }: CdpEventParams<'Page.frameNavigated'>['frame']): void {
    const { nav_seq: _, ...context } = this.#target.context()
    const data = { ...context, url, frame_id: id, loader_id: loaderId, ...(parentId && { parent_frame_id: parentId }) }
    this.#target.emit('page_navigation', 'Page.frameNavigated', data)
    if (parentId !== undefined && this.#target.type === 'page') return
    clearTimeout(this.#timer)
    this.#isSettling = false
    this.#hasContent = false
  }

  #takeTimeline({ type, frameId, time, duration, lcpDetails, layoutShiftDetails }: TimelineEvent): void {
    const of = { source_frame_id: frameId, time: time * 1000 }
    const source = 'PerformanceTimeline.timelineEventAdded'
    if (layoutShiftDetails) {
      const { value, hadRecentInput } = layoutShiftDetails
      const details = { value, had_recent_input: hadRecentInput }
      this.#emit('page_layout_shift', source, { ...of, duration: duration ?? 0, layout_shift_details: details })
      if (this.#isSettling) this.#restart()
    } else if (type === 'largest-contentful-paint' && lcpDetails) {
      const { renderTime, loadTime, size, elementId, url, nodeId } = lcpDetails
      const details = {
        render_time: renderTime * 1000,
        load_time: loadTime * 1000,
        size,
        ...(elementId && { element_id: elementId }),
        ...(url && { url }),
        ...(nodeId !== undefined && { node_id: nodeId }),
      }
      this.#emit('page_lcp', source, { ...of, lcp_details: details })
    }
  }

  /** A layout shift restarts the second. */
  #restart(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#settle(), settledMilliseconds)
    this.#timer.unref()
  }

  #settle(): void {
    this.#isSettling = false
    this.#emit('page_layout_settled', 'Page.loadEventFired', {})
    if (this.#hasContent) this.#emit('page_navigation_settled', 'Page.loadEventFired', {})
    this.#target.noteVisibleChange()
  }

  #emit(type: Parameters<ObservablePage['emit']>[0], nativeName: string, data: object): void {
    this.#target.emit(type, nativeName, { ...this.#target.context(), ...data })
  }
}
