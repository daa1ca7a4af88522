import { access } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  ClickRequest,
  ExtractRequest,
  NavigateRequest,
  PageSnapshot,
  PressRequest,
  SelectRequest,
  SnapshotRequest,
  TypeRequest,
  UploadRequest,
  WaitRequest,
} from '@berth/contract/agent/operations/page-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import { keysNamed } from '../computer/keys.ts'
import { PageKeyboard } from '../computer/page/page-keyboard.ts'
import { changedLines } from './changed-lines.ts'
import { drawMarks, type Mark } from './draw-marks.ts'
import {
  chooseOptions,
  findMarks,
  findPoint,
  focusElement,
  getElement,
  isParsing,
  readMarkdown,
  readSnapshot,
  readText,
  setValue,
} from './in-page.ts'
import { callIn, type PageFrame, PageFrames } from './page-frames.ts'
import { type Tab, Tabs } from './tabs.ts'

const maxMarks = 200
const lookMilliseconds = 100
/** How long to wait for a document that is still being parsed. */
const parseLimitMilliseconds = 5_000
/** Number of tabs whose last snapshot is kept, to compute its changes. */
const maxKeptSnapshots = 20

interface Answer {
  readonly fault?: string
}

interface Place {
  readonly tab_id: string
  readonly url: string
  readonly title: string
}

/** Pages for language models: read as text with references, which also control them. */
export class PageTools {
  readonly #browser: Browser
  readonly tabs: Tabs
  readonly #frames: PageFrames
  /** The lines that a caller has seen last, by target. */
  readonly #seen = new Map<string, readonly string[]>()

  constructor(browser: Browser) {
    this.#browser = browser
    this.tabs = new Tabs(browser)
    this.#frames = new PageFrames(browser)
  }

  async snapshot({ tab_id, changes, interactive, max_chars: limit }: SnapshotRequest): Promise<PageSnapshot> {
    const tab = await this.tabs.find(tab_id)
    await this.#parsed(tab)
    const lines: string[] = []
    let length = 0
    let isTruncated = false
    for (const frame of await this.#frames.of(tab.targetId)) {
      const left = limit - length
      const isPage = frame.prefix === ''
      const read = callIn<{ lines: string[]; isTruncated: boolean }>(
        frame,
        readSnapshot,
        frame.prefix,
        interactive,
        Math.max(0, left),
      )
      // A frame may close or hang while the page does not.
      const found = isPage ? await read : await read.catch(() => undefined)
      if (!found || (!isPage && found.lines.length === 0)) continue
      const own = isPage
        ? found.lines
        : [`frame ${frame.prefix} ${frame.url.slice(0, 200)}`, ...found.lines.map((line) => ` ${line}`)]
      lines.push(...own)
      length += own.reduce((sum, line) => sum + line.length + 1, 0)
      isTruncated ||= found.isTruncated
      if (isTruncated) break
    }
    const before = this.#seen.get(tab.targetId)
    this.#seen.delete(tab.targetId)
    this.#seen.set(tab.targetId, lines)
    if (this.#seen.size > maxKeptSnapshots) this.#seen.delete(this.#seen.keys().next().value ?? '')
    const shown = changes && before ? changedLines(before, lines) : lines
    return { ...(await this.#placeOf(tab)), text: shown.join('\n'), is_truncated: isTruncated }
  }

  async navigate({ tab_id, url, history, timeout_ms: limit }: NavigateRequest, signal: AbortSignal): Promise<Place> {
    const tab = await this.tabs.find(tab_id)
    return this.#go(tab, { url, history, limit, signal })
  }

  async open(url: string, signal: AbortSignal): Promise<Place> {
    const tab = await this.tabs.open()
    if (url === 'about:blank') return { tab_id: tab.id, url, title: '' }
    return this.#go(tab, { url, history: undefined, limit: 30_000, signal })
  }

  async #go(tab: Tab, { url, history, limit, signal }: Going): Promise<Place> {
    const session = await this.#frames.session(tab.targetId)
    const loaded = Promise.withResolvers<void>()
    const stops = [
      session.on('Page.loadEventFired', () => loaded.resolve()),
      // Navigations within a document have no load event.
      session.on('Page.navigatedWithinDocument', () => loaded.resolve()),
      session.on('Page.frameNavigated', ({ type }) => {
        if (type === 'BackForwardCacheRestore') loaded.resolve()
      }),
    ]
    try {
      await session.send('Page.enable')
      if (url !== undefined) {
        const { errorText, loaderId } = await session.send('Page.navigate', { url: withScheme(url) }, limit + 5_000)
        if (errorText) throw new BerthError('navigation_failed', { reason: `${errorText}.` })
        // A navigation within the document: there is no load.
        if (!loaderId) loaded.resolve()
      } else if (history === 'reload') await session.send('Page.reload')
      else await this.#goInHistory(session, history === 'back' ? -1 : 1)
      await Promise.race([loaded.promise, session.lost, delay(limit, undefined, { signal, ref: false })])
    } finally {
      for (const stop of stops) stop()
    }
    return this.#placeOf(tab)
  }

  async #goInHistory(session: TargetSession, step: -1 | 1): Promise<void> {
    const { currentIndex, entries } = await session.send('Page.getNavigationHistory')
    const entry = entries[currentIndex + step]
    if (!entry)
      throw new BerthError('navigation_failed', {
        reason: `there is nothing to go ${step < 0 ? 'back' : 'forward'} to.`,
      })
    await session.send('Page.navigateToHistoryEntry', { entryId: entry.id })
  }

  async click({ tab_id, ref, button, clicks }: ClickRequest): Promise<void> {
    const tab = await this.tabs.find(tab_id)
    const { frame, number } = await this.#frames.ofRef(tab.targetId, ref)
    const point = await callIn<Answer & { x: number; y: number }>(frame, findPoint, number)
    refuse(point, ref)
    const offset = await this.#frames.offsetOf(frame, tab.targetId)
    const session = await this.#frames.session(tab.targetId)
    const place = { x: point.x + offset.x, y: point.y + offset.y }
    await this.#input(session, 'Input.dispatchMouseEvent', { type: 'mouseMoved', ...place, button: 'none' })
    for (let clickCount = 1; clickCount <= clicks; clickCount += 1) {
      const press = { ...place, button, clickCount }
      await this.#input(session, 'Input.dispatchMouseEvent', { type: 'mousePressed', ...press })
      await this.#input(session, 'Input.dispatchMouseEvent', { type: 'mouseReleased', ...press })
    }
  }

  async type({ tab_id, ref, text, append, submit }: TypeRequest): Promise<void> {
    const tab = await this.tabs.find(tab_id)
    const { frame, number } = await this.#frames.ofRef(tab.targetId, ref)
    const focused = await callIn<Answer & { isPicker?: boolean; isEmpty?: boolean }>(
      frame,
      focusElement,
      number,
      append ? 'append' : 'replace',
    )
    refuse(focused, ref)
    const session = frame.session
    if (focused.isPicker) refuse(await callIn<Answer>(frame, setValue, number, text), ref)
    else if (text !== '') await this.#input(session, 'Input.insertText', { text })
    else if (!append && !focused.isEmpty) await this.#press(session, 'Delete')
    if (submit) await this.#press(session, 'Enter')
  }

  async select({ tab_id, ref, values }: SelectRequest): Promise<{ selected: string[] }> {
    const tab = await this.tabs.find(tab_id)
    const { frame, number } = await this.#frames.ofRef(tab.targetId, ref)
    const { selected = [], ...answer } = await callIn<Answer & { selected?: string[] }>(
      frame,
      chooseOptions,
      number,
      values,
    )
    refuse(answer, ref)
    return { selected }
  }

  async press({ tab_id, key, ref }: PressRequest): Promise<void> {
    const tab = await this.tabs.find(tab_id)
    if (ref === undefined) return this.#press(await this.#frames.session(tab.targetId), key)
    const { frame, number } = await this.#frames.ofRef(tab.targetId, ref)
    refuse(await callIn<Answer>(frame, focusElement, number, 'focus'), ref)
    await this.#press(frame.session, key)
  }

  async upload({ tab_id, ref, paths }: UploadRequest): Promise<void> {
    const tab = await this.tabs.find(tab_id)
    for (const path of paths) {
      await access(path).catch((cause: unknown) => {
        throw new BerthError('file_not_found', { field: 'paths', path }, { cause })
      })
    }
    const { frame, number } = await this.#frames.ofRef(tab.targetId, ref)
    const { session, contextId } = frame
    const { result } = await session.send('Runtime.callFunctionOn', {
      functionDeclaration: getElement,
      executionContextId: contextId,
      arguments: [{ value: number }],
    })
    if (!result.objectId) throw new BerthError('element_not_found', { ref })
    await session
      .send('DOM.setFileInputFiles', { files: [...paths], objectId: result.objectId })
      .catch((cause: unknown) => {
        throw new BerthError('element_not_usable', { ref, reason: 'is not a file field.' }, { cause })
      })
  }

  async waitFor({ tab_id, text, text_gone, url, timeout_ms: limit }: WaitRequest, signal: AbortSignal): Promise<Place> {
    const tab = await this.tabs.find(tab_id)
    const end = performance.now() + limit
    for (;;) {
      const place = await this.#placeOf(tab)
      const shown = text === undefined && text_gone === undefined ? '' : await this.#textOf(tab)
      const isText = text === undefined || shown.includes(text)
      const isGone = text_gone === undefined || !shown.includes(text_gone)
      const isThere = url === undefined || place.url.includes(url)
      if (isText && isGone && isThere) return place
      if (performance.now() + lookMilliseconds > end) {
        const wanted = [
          !isText && `it does not show ${JSON.stringify(text)}`,
          !isGone && `it still shows ${JSON.stringify(text_gone)}`,
          !isThere && `its URL is ${place.url}`,
        ]
        throw new BerthError('page_wait_timed_out', { reason: `${wanted.filter(Boolean).join(', and ')}.` })
      }
      await delay(lookMilliseconds, undefined, { signal })
    }
  }

  async extract({ tab_id, max_chars: limit }: ExtractRequest) {
    const tab = await this.tabs.find(tab_id)
    await this.#parsed(tab)
    const [page] = await this.#frames.of(tab.targetId)
    const { markdown, isTruncated } = await callIn<{ markdown: string; isTruncated: boolean }>(
      page as PageFrame,
      readMarkdown,
      limit,
    )
    return { ...(await this.#placeOf(tab)), markdown, is_truncated: isTruncated }
  }

  async screenshot({ tab_id, marks: hasMarks }: { readonly tab_id?: string | undefined; readonly marks: boolean }) {
    const tab = await this.tabs.find(tab_id)
    const session = await this.#frames.session(tab.targetId)
    const frames = hasMarks ? await this.#frames.of(tab.targetId) : []
    const inFrames = await Promise.all(frames.map((frame) => this.#marksIn(frame, tab).catch(() => [])))
    const marks = inFrames.flat().slice(0, maxMarks)
    const { data } = await session.send('Page.captureScreenshot', { format: 'png' }).catch((cause: unknown) => {
      throw new BerthError('page_not_answering', undefined, { cause })
    })
    const png = marks.length > 0 ? await drawMarks(await this.#browser.pipe(), data, marks) : data
    return { ...(await this.#placeOf(tab)), png_b64: png, marks }
  }

  async #marksIn(frame: PageFrame, { targetId }: Tab): Promise<readonly Mark[]> {
    const [found, offset] = await Promise.all([
      callIn<readonly (Omit<Mark, 'ref'> & { ref: number })[]>(frame, findMarks, maxMarks),
      this.#frames.offsetOf(frame, targetId),
    ])
    return found.map(({ ref, x, y, ...size }) => ({
      ref: `${frame.prefix}e${ref}`,
      x: x + offset.x,
      y: y + offset.y,
      ...size,
    }))
  }

  async #textOf(tab: Tab): Promise<string> {
    const frames = await this.#frames.of(tab.targetId)
    const texts = await Promise.all(frames.map((frame) => callIn<string>(frame, readText).catch(() => '')))
    return texts.join('\n')
  }

  /** Waits while the document is being parsed: its content is incomplete. */
  async #parsed({ targetId }: Tab): Promise<void> {
    const end = performance.now() + parseLimitMilliseconds
    while (performance.now() < end) {
      const [page] = await this.#frames.of(targetId)
      if (!(await callIn<boolean>(page as PageFrame, isParsing))) return
      await delay(lookMilliseconds)
    }
  }

  async #placeOf({ id, targetId }: Tab): Promise<Place> {
    const pipe = await this.#browser.pipe()
    const { targetInfos } = await pipe.send('Target.getTargets')
    const target = targetInfos.find((each) => each.targetId === targetId)
    if (!target) throw new BerthError('page_not_found')
    return { tab_id: id, url: target.url, title: target.title }
  }

  async #press(session: TargetSession, name: string): Promise<void> {
    const keyboard = new PageKeyboard()
    const keys = keysNamed(name, 'key')
    for (const event of keys.flatMap((key) => keyboard.press(key)))
      await this.#input(session, 'Input.dispatchKeyEvent', event)
    for (const event of keys.toReversed().flatMap((key) => keyboard.release(key))) {
      await this.#input(session, 'Input.dispatchKeyEvent', event)
    }
  }

  /** Does not wait if the page shows a dialog: it takes the input after the dialog is answered. */
  async #input(
    session: TargetSession,
    method: 'Input.dispatchMouseEvent' | 'Input.dispatchKeyEvent' | 'Input.insertText',
    params: object,
  ): Promise<void> {
    const taken = session.send(method, params as never).catch(() => {})
    const over = new AbortController()
    await Promise.race([
      taken,
      delay(inputLimitMilliseconds, undefined, { ref: false, signal: over.signal }).catch(() => {}),
    ])
    over.abort()
  }
}

const inputLimitMilliseconds = 2_000

interface Going {
  readonly url: string | undefined
  readonly history: 'back' | 'forward' | 'reload' | undefined
  readonly limit: number
  readonly signal: AbortSignal
}

function refuse({ fault }: Answer, ref: string): void {
  if (fault === 'gone') throw new BerthError('element_not_found', { ref })
  if (fault !== undefined) throw new BerthError('element_not_usable', { ref, reason: fault })
}

function withScheme(url: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.test(url) ? url : `https://${url}`
}
