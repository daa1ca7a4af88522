import { setTimeout as delay } from 'node:timers/promises'
import type { FetchPageReply, FetchPageRequest } from '@berth/contract/agent/agent-endpoints.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { CdpAnswer, CdpEventParams, CdpMethod, CdpParams } from '../browser/cdp-types.ts'
import { netError } from '../curl/net-error.ts'

/** How long a page may continue to load and change after its load event. */
const afterLoadMilliseconds = 5_000
/** A page that has not changed for this long is idle: timers of hidden pages fire once a second. */
const quietMilliseconds = 1_250
const lookMilliseconds = 250
/** Time to read the page after the time limit. */
const readMilliseconds = 2_000

interface MainAnswer {
  readonly status: number
  readonly contentType: string
}

/**
 * Opens the page in a target that no window shows, waits until it is idle, and returns its document. A page that has
 * not loaded within the time limit is returned as it is then. The target is closed at the end of this call.
 */
export async function renderPage(
  pipe: CdpPipe,
  request: FetchPageRequest,
  signal: AbortSignal,
): Promise<FetchPageReply> {
  // Hidden targets also end with the agent, whatever happens to it.
  const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank', hidden: true })
  try {
    const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true })
    return await new RenderedPage(pipe, sessionId).render(request, signal)
  } finally {
    await pipe.send('Target.closeTarget', { targetId }).catch(() => {}) // It ended with its Chromium.
  }
}

class RenderedPage {
  readonly #pipe: CdpPipe
  readonly #sessionId: string
  readonly #loaded = Promise.withResolvers<void>()
  readonly #idle = Promise.withResolvers<void>()
  #frameId = ''
  #loaderId: string | undefined
  #answer: MainAnswer | undefined

  constructor(pipe: CdpPipe, sessionId: string) {
    this.#pipe = pipe
    this.#sessionId = sessionId
  }

  async render(request: FetchPageRequest, signal: AbortSignal): Promise<FetchPageReply> {
    const unsubscribe = this.#listen()
    try {
      await this.#prepare(request)
      const isLoaded = await this.#open(request, signal)
      return await this.#read(request, isLoaded)
    } finally {
      unsubscribe()
    }
  }

  async #prepare({ accept_language }: FetchPageRequest): Promise<void> {
    const { frameTree } = await this.#send('Page.getFrameTree')
    this.#frameId = frameTree.frame.id
    await Promise.all([
      this.#send('Page.enable'),
      this.#send('Network.enable'),
      this.#send('Page.setLifecycleEventsEnabled', { enabled: true }),
      this.#send('Page.addScriptToEvaluateOnNewDocument', { source: framesWithoutDisplay }),
      // A page that considers itself hidden may not render.
      this.#send('Emulation.setFocusEmulationEnabled', { enabled: true }),
      this.#send('Page.setDownloadBehavior', { behavior: 'deny' }),
      accept_language !== undefined &&
        this.#send('Network.setExtraHTTPHeaders', { headers: { 'Accept-Language': accept_language } }),
    ])
  }

  /** Returns whether the page has loaded in time. */
  async #open({ url, timeout_ms }: FetchPageRequest, signal: AbortSignal): Promise<boolean> {
    const over = Promise.withResolvers<'over'>()
    const timer = setTimeout(() => over.resolve('over'), Math.max(0, timeout_ms - readMilliseconds))
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => {})
    const leave = () => left.reject(netError('ERR_ABORTED'))
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave)
    try {
      const navigation = this.#send('Page.navigate', { url }, Number.POSITIVE_INFINITY)
      const navigated = await Promise.race([navigation, over.promise, left.promise])
      if (navigated === 'over') throw netError('ERR_TIMED_OUT')
      if (navigated.errorText !== undefined) throw netError(String(navigated.errorText))
      const loaded = await Promise.race([this.#loaded.promise.then(() => true), over.promise, left.promise])
      if (loaded === 'over') return false
      const rest = new AbortController()
      const restTimer = setTimeout(() => rest.abort(), afterLoadMilliseconds)
      await Promise.race([this.#waitUntilIdle(rest.signal), over.promise, left.promise]).finally(() => {
        clearTimeout(restTimer)
        rest.abort()
      })
      return true
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', leave)
    }
  }

  /** Resolves when the network is idle and the document has stopped changing, or the signal aborts. */
  async #waitUntilIdle(signal: AbortSignal): Promise<void> {
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    await Promise.race([this.#idle.promise, aborted])
    let last: unknown
    let since = performance.now()
    while (!signal.aborted && performance.now() - since < quietMilliseconds) {
      const size = await this.#send('Runtime.evaluate', { expression: sizeOfDocument, returnByValue: true }).catch(
        () => {},
      )
      const value = (size?.result as { value?: unknown } | undefined)?.value
      if (value !== last) since = performance.now()
      last = value
      await delay(lookMilliseconds, undefined, { signal }).catch(() => {})
    }
  }

  async #read({ max_bytes }: FetchPageRequest, isLoaded: boolean): Promise<FetchPageReply> {
    // In an isolated world, which the page cannot modify.
    const { executionContextId: contextId } = await this.#send(
      'Page.createIsolatedWorld',
      { frameId: this.#frameId },
      readMilliseconds,
    ).catch(throwLate)
    const { result } = await this.#send(
      'Runtime.evaluate',
      { expression: `(${readDocument})(${max_bytes})`, contextId, returnByValue: true, timeout: readMilliseconds },
      readMilliseconds,
    ).catch(throwLate)
    const { value } = result as { value?: { html: string; isCut: boolean; url: string } }
    if (!value) throw netError('ERR_FAILED')
    const bytes = Buffer.from(value.html)
    return {
      status: this.#answer?.status ?? 200,
      content_type: this.#answer?.contentType ?? null,
      final_url: value.url,
      body_b64: bytes.subarray(0, max_bytes).toString('base64'),
      is_cut: value.isCut || bytes.length > max_bytes,
      is_loaded: isLoaded,
    }
  }

  #listen(): () => void {
    const own = <Params>(handler: (params: Params) => void) => {
      return (params: Params, session: string | undefined) => {
        if (session === this.#sessionId) handler(params)
      }
    }
    const unsubscribes = [
      this.#pipe.on(
        'Page.lifecycleEvent',
        own((params: CdpEventParams<'Page.lifecycleEvent'>) => this.#noteLifecycle(params)),
      ),
      this.#pipe.on(
        'Network.responseReceived',
        own((params: CdpEventParams<'Network.responseReceived'>) => this.#noteAnswer(params)),
      ),
      // A dialog would block the page until somebody answers it.
      this.#pipe.on(
        'Page.javascriptDialogOpening',
        own(() => void this.#send('Page.handleJavaScriptDialog', { accept: false }).catch(() => {})),
      ),
    ]
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe()
    }
  }

  #noteLifecycle({ frameId, loaderId, name }: CdpEventParams<'Page.lifecycleEvent'>): void {
    // Before the response the page is empty.
    if (frameId !== this.#frameId || loaderId !== this.#loaderId || !this.#answer) return
    if (name === 'load') this.#loaded.resolve()
    if (name === 'networkIdle') this.#idle.resolve()
  }

  #noteAnswer({ frameId, loaderId, type, response }: CdpEventParams<'Network.responseReceived'>): void {
    if (type !== 'Document' || frameId !== this.#frameId) return
    const { status, mimeType } = response
    this.#loaderId = loaderId
    // The document is now a UTF-8 string, and is returned as such.
    this.#answer = { status, contentType: `${mimeType || 'text/html'}; charset=utf-8` }
  }

  #send<Method extends CdpMethod>(
    method: Method,
    params?: CdpParams<Method>,
    limitMilliseconds = 10_000,
  ): Promise<CdpAnswer<Method>> {
    return this.#pipe.send(method, params, { sessionId: this.#sessionId, limitMilliseconds })
  }
}

/** A page in an endless loop never answers. */
function throwLate(cause: unknown): never {
  throw netError('ERR_TIMED_OUT', { cause })
}

const sizeOfDocument = 'document.documentElement.textContent.length + "/" + document.getElementsByTagName("*").length'

/**
 * Hidden pages draw no frames, but many create their content in a frame or when scrolled to. So a timer triggers
 * frames, and every element counts as visible.
 */
const framesWithoutDisplay = `(() => {
  window.requestAnimationFrame = (callback) => setTimeout(() => callback(performance.now()), 16)
  window.cancelAnimationFrame = (handle) => clearTimeout(handle)
  window.IntersectionObserver = class IntersectionObserver {
    #callback
    #observed = new Set()
    root = null
    rootMargin = '0px'
    thresholds = [0]
    constructor(callback) { this.#callback = callback }
    observe(target) {
      if (this.#observed.has(target)) return
      this.#observed.add(target)
      setTimeout(() => {
        if (!this.#observed.has(target)) return
        const bounds = target.getBoundingClientRect()
        const entry = { target, isIntersecting: true, intersectionRatio: 1, boundingClientRect: bounds, intersectionRect: bounds, rootBounds: null, time: performance.now() }
        this.#callback([entry], this)
      }, 0)
    }
    unobserve(target) { this.#observed.delete(target) }
    disconnect() { this.#observed.clear() }
    takeRecords() { return [] }
  }
})()`

/** Runs in the page. Open shadow trees are written as if their content were in the document. */
const readDocument = `function (maxLength) {
  const pieces = []
  let length = 0
  const add = (text) => { pieces.push(text); length += text.length }
  const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
  const hasShadow = [...document.querySelectorAll('*')].some((element) => element.shadowRoot)
  if (!hasShadow) add(document.documentElement ? document.documentElement.outerHTML : '')
  else write(document.documentElement)
  const html = pieces.join('')
  return { html: html.slice(0, maxLength), isCut: html.length > maxLength, url: location.href }
  function write(node) {
    if (length > maxLength) return
    if (node.nodeType === 3) return add(escape(node.data))
    if (node.nodeType !== 1) return
    const name = node.localName
    if (name === 'slot' && node.assignedNodes) return void (node.assignedNodes().length ? node.assignedNodes() : [...node.childNodes]).forEach(write)
    const raw = name === 'script' || name === 'style'
    add('<' + name + [...node.attributes].map(({ name, value }) => ' ' + name + '="' + escape(value) + '"').join('') + '>')
    if (raw) add(node.textContent)
    else if (node.shadowRoot) node.shadowRoot.childNodes.forEach(write)
    else node.childNodes.forEach(write)
    add('</' + name + '>')
  }
}`
