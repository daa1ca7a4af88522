import type { Browser } from '../browser/browser.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { activeTab } from '../browser/targets/tabs.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import { TargetSessions } from '../browser/targets/target-sessions.ts'
import { HttpAuth, type HttpChallenge } from './driver/http-auth.ts'
import { type ReadPage, readAllFrames } from './login-frames.ts'

/** Requests that have been open for longer are streams or are stuck. */
const requestMilliseconds = 15_000
/** A page that repeats a request this often is polling for an external action. */
const pollingCount = 3
const maxAddresses = 500
const commandMilliseconds = 5_000
const maxDialogs = 5
const maxPopups = 5

/** State of a page since it was attached to. */
class WatchedPage {
  readonly session: TargetSession
  readonly httpAuth: HttpAuth
  /** Start time and document of each open request. */
  readonly #requests = new Map<string, { readonly begun: number; readonly documentId: string }>()
  readonly #counts = new Map<string, number>()
  readonly #unwatch: readonly (() => void)[]
  #mainFrame: string | undefined
  lastActivity = performance.now()
  status: number | undefined
  isChallenge = false
  /** Messages of its dialogs, which are closed immediately because they block the page. */
  dialogs: string[] = []

  constructor(session: TargetSession, httpAuth: HttpAuth) {
    this.session = session
    this.httpAuth = httpAuth
    const end = ({ requestId }: { readonly requestId: string }) => {
      if (this.#requests.delete(requestId)) this.lastActivity = performance.now()
    }
    this.#unwatch = [
      session.on('Network.requestWillBeSent', ({ requestId, loaderId, frameId, type, request }) => {
        // Other sessions report the ends of loads in frames of other processes.
        const isPage = type === 'Document' && frameId === this.#mainFrame
        if (isPage || type === 'XHR' || type === 'Fetch')
          this.#begin(requestId, loaderId, `${request.method} ${request.url.split('?')[0]}`)
      }),
      session.on('Network.loadingFinished', end),
      session.on('Network.loadingFailed', end),
      session.on('Network.responseReceived', ({ frameId, type, response }) => {
        if (type !== 'Document' || (this.#mainFrame !== undefined && frameId !== this.#mainFrame)) return
        const headers = Object.fromEntries(
          Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
        )
        this.status = response.status
        this.isChallenge =
          headers['cf-mitigated'] === 'challenge' || ('x-datadome' in headers && response.status === 403)
      }),
      session.on('Page.frameNavigated', ({ frame }) => {
        if (frame.parentId !== undefined) return
        this.#mainFrame = frame.id
        this.lastActivity = performance.now()
        // Requests of the previous document end with it, without events.
        for (const [id, { documentId }] of this.#requests) if (documentId !== frame.loaderId) this.#requests.delete(id)
      }),
      session.on('Page.javascriptDialogOpening', ({ message, type }) => {
        if (this.dialogs.length < maxDialogs && type !== 'beforeunload') this.dialogs.push(message.slice(0, 300))
        // The dialog is gone.
        session.send('Page.handleJavaScriptDialog', { accept: type !== 'prompt' }).catch(() => {})
      }),
    ]
  }

  async prepare(): Promise<void> {
    const { session } = this
    await Promise.all([
      session.send('Page.enable', {}, commandMilliseconds),
      session.send(
        'Network.enable',
        { maxTotalBufferSize: 100_000, maxResourceBufferSize: 10_000 },
        commandMilliseconds,
      ),
      // A page that considers itself hidden may not render.
      session.send('Emulation.setFocusEmulationEnabled', { enabled: true }, commandMilliseconds),
    ])
    const { frameTree } = await session.send('Page.getFrameTree', undefined, commandMilliseconds)
    this.#mainFrame = frameTree.frame.id
  }

  #begin(requestId: string, documentId: string, address: string): void {
    const count = (this.#counts.get(address) ?? 0) + 1
    if (this.#counts.size < maxAddresses) this.#counts.set(address, count)
    if (count > pollingCount) return
    if (this.#requests.size > 1_000) this.#requests.clear()
    this.#requests.set(requestId, { begun: performance.now(), documentId })
    this.lastActivity = performance.now()
  }

  get isLoading(): boolean {
    const since = performance.now() - requestMilliseconds
    return [...this.#requests.values()].some(({ begun }) => begun > since)
  }

  /** Called before a new action: its requests count again. */
  forgetRequests(): void {
    this.#requests.clear()
    this.#counts.clear()
  }

  close(): void {
    for (const unwatch of this.#unwatch) unwatch()
    this.httpAuth.close()
  }
}

/** The tab of the login, with the popups that it opens: the newest open one has the current step. */
export class LoginTab {
  readonly #browser: Browser
  readonly #sessions = new TargetSessions()
  readonly #watched = new Map<string, WatchedPage>()
  #pipe: CdpPipe | undefined
  /** The tab first, then its popups in order of opening. */
  #pages: string[] = []

  constructor(browser: Browser) {
    this.#browser = browser
  }

  get hasPopup(): boolean {
    return this.#pages.length > 1
  }

  async pipe(): Promise<CdpPipe> {
    const pipe = await this.#browser.pipe()
    if (pipe !== this.#pipe) this.#forgetPages()
    this.#pipe = pipe
    return pipe
  }

  #forgetPages(): void {
    for (const watched of this.#watched.values()) watched.close()
    this.#watched.clear()
    this.#pages = []
  }

  /** The page with the current step; initially the one that a person sees. */
  async current(): Promise<{ readonly id: string; readonly page: WatchedPage }> {
    const pipe = await this.pipe()
    const { targetInfos } = await pipe.send('Target.getTargets')
    const pages = targetInfos.filter(({ type }) => type === 'page')
    this.#pages = this.#pages.filter((id) => pages.some(({ targetId }) => targetId === id))
    const [tab] = this.#pages
    if (tab === undefined) this.#pages = [await this.#firstTab(pipe)]
    else {
      const popups = pages.filter(
        ({ openerId, targetId }) =>
          openerId !== undefined && this.#pages.includes(openerId) && !this.#pages.includes(targetId),
      )
      this.#pages.push(...popups.slice(0, maxPopups).map(({ targetId }) => targetId))
    }
    const id = this.#pages.at(-1) as string
    return { id, page: await this.#watch(pipe, id) }
  }

  async #firstTab(pipe: CdpPipe): Promise<string> {
    const tab = await activeTab(pipe, await this.#browser.endpoint())
    if (tab !== undefined) return tab
    const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank' })
    return targetId
  }

  async #watch(pipe: CdpPipe, id: string): Promise<WatchedPage> {
    const session = await this.#sessions.get(pipe, id)
    const known = this.#watched.get(id)
    if (known?.session === session) return known
    known?.close()
    const watched = new WatchedPage(session, await HttpAuth.watch(pipe, id))
    this.#watched.set(id, watched)
    const forget = () => {
      watched.close()
      if (this.#watched.get(id) === watched) this.#watched.delete(id)
    }
    void session.lost.then(forget)
    await watched.prepare()
    await session.send('Page.bringToFront', undefined, commandMilliseconds).catch(() => {}) // The tab has no window.
    return watched
  }

  async read(): Promise<(ReadPage & { readonly page: WatchedPage }) | undefined> {
    const { id, page } = await this.current()
    const read = await readAllFrames(await this.pipe(), this.#sessions, id)
    return read && { ...read, page }
  }

  /** The HTTP challenge that the browser shows instead of a page. */
  async challenge(): Promise<HttpChallenge | undefined> {
    return (await this.current()).page.httpAuth.challenge
  }

  async answer(challenge: HttpChallenge, given: { username: string; password: string }): Promise<void> {
    const { page } = await this.current()
    page.status = undefined
    page.httpAuth.answer(challenge, given)
  }

  /** Closes popups and navigates. Returns the name of the error if the page cannot be loaded. */
  async navigate(url: string, limitMilliseconds: number): Promise<string | undefined> {
    await this.current()
    await this.#closePopups()
    const { page } = await this.current()
    page.status = undefined
    page.isChallenge = false
    page.dialogs = []
    page.forgetRequests()
    page.httpAuth.cancel()
    // The response arrives with the document, which waits for the answer to a challenge.
    const challenged = page.httpAuth.next().then(() => ({}))
    const loaded = page.session
      .send('Page.navigate', { url }, Math.max(1_000, limitMilliseconds))
      .catch((error: Error) => ({ errorText: /no answer/.test(error.message) ? 'ERR_TIMED_OUT' : 'ERR_FAILED' }))
    const { errorText } = (await Promise.race([loaded, challenged])) as { errorText?: string }
    if (errorText === undefined || errorText === '') return undefined
    return errorText === 'net::ERR_ABORTED' ? undefined : errorText.replace(/^net::/, '')
  }

  async #closePopups(): Promise<void> {
    const pipe = await this.pipe()
    const popups = this.#pages.splice(1)
    await Promise.all(popups.map((targetId) => pipe.send('Target.closeTarget', { targetId }).catch(() => {})))
  }

  async cookies(): Promise<readonly { name: string; domain: string; httpOnly: boolean; value: string }[]> {
    const { cookies } = await (await this.pipe()).send('Storage.getCookies')
    return cookies.slice(0, 3_000)
  }
}
