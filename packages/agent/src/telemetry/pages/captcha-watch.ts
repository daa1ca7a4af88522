import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import type { CdpEventParams } from '../../browser/cdp-types.ts'
import { withTarget } from '../../browser/targets/tabs.ts'
import type { CaptchaTasks } from '../captcha-tasks.ts'
import type { TelemetrySink } from '../telemetry-sink.ts'
import {
  type CaptchaType,
  captchaTypeOf,
  type ElementCaptchaType,
  isElementCaptchaHost,
  isSolvable,
  lookForCaptcha,
} from './captcha-page.ts'
import { enterToken, findSiteKey, siteKeyIn } from './captcha-widget.ts'

type TargetInfo = CdpEventParams<'Target.targetCreated'>['targetInfo']

const pollMilliseconds = 1_000
const challengeLimitMilliseconds = 5 * 60_000
const answerLimitMilliseconds = 3_000
/** How long pages are searched for challenge elements after a sign of a challenge. */
const elementLimitMilliseconds = 30_000
const elementTypes: readonly ElementCaptchaType[] = ['geetest', 'press_and_hold']
/** Limits pages that create frames endlessly. */
const maxFrames = 100
/** The operator has no service that solves challenges, or the session does not use it. */
const noSolver = 'solver_not_configured'

interface Frame {
  readonly type: CaptchaType
  readonly url: string
  /** The page that shows it. */
  readonly pageId: string | undefined
}

interface Challenge {
  readonly id: string
  readonly type: CaptchaType
  readonly pageId: string
  readonly pageUrl: string
  readonly startedAt: number
  /** Of the service that solves it; undefined if there is none. */
  readonly taskId: string | undefined
  attempt: 'asked' | 'answered' | 'over'
}

type AttemptResult =
  | { readonly status: 'success' | 'timeout' | 'abandoned' }
  | { readonly status: 'failure'; readonly error_code: string }
type Outcome = 'solved' | 'timeout' | 'abandoned'

/**
 * Detects challenges that a person would see. Most are frames of other sites, which Chromium reports without being
 * attached to their page. Only a page with such a frame is examined, once a second: whether it shows the frame, and
 * whether it has the answer. Challenges without a frame are elements of the page itself: after a program of the session
 * has looked up the host of such a service, and after each later navigation, all pages are examined for a while.
 */
export class CaptchaWatch {
  readonly #pipe: CdpPipe
  readonly #collector: TelemetrySink
  readonly #pages = new Map<string, string>()
  readonly #frames = new Map<string, Frame>()
  /** One per page. */
  readonly #challenges = new Map<string, Challenge>()
  /** Pages whose challenge has ended but is still present. */
  readonly #done = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  /** Until this time elements may be challenges. Undefined if nobody has looked up a host of theirs. */
  #elementsUntil: number | undefined
  #isLooking = false
  #lastId = 0
  readonly #tasks: CaptchaTasks | undefined

  /** Without tasks nothing is solved. */
  constructor(pipe: CdpPipe, collector: TelemetrySink, tasks: CaptchaTasks | undefined) {
    this.#pipe = pipe
    this.#collector = collector
    this.#tasks = tasks
  }

  get isWanted(): boolean {
    return this.#tasks !== undefined || this.#collector.captures('captcha')
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Examines the pages that have such frames. */
  start(): void {
    if (this.#timer || (this.#frames.size === 0 && !this.#expectsElements)) return
    this.#timer = setInterval(() => void this.#look(), pollMilliseconds)
    this.#timer.unref()
    void this.#look()
  }

  /** Notes that a program of the session has looked up this host. */
  noteLookup(name: string): void {
    if (isElementCaptchaHost(name)) this.#expectElements()
  }

  #expectElements(): void {
    this.#elementsUntil = performance.now() + elementLimitMilliseconds
    if (this.isWanted) this.start()
  }

  get #expectsElements(): boolean {
    return this.#elementsUntil !== undefined && performance.now() < this.#elementsUntil
  }

  take(info: TargetInfo): void {
    const { targetId, type, url } = info
    if (type === 'page') this.#takePage(targetId, url)
    if (type !== 'iframe') return
    const captcha = captchaTypeOf(url)
    if (!captcha) this.lose(targetId)
    if (!captcha || this.#frames.size >= maxFrames) return
    const { parentFrameId } = info as { readonly parentFrameId?: string }
    this.#frames.set(targetId, { type: captcha, url, pageId: parentFrameId })
    if (this.isWanted) this.start()
  }

  lose(targetId: string): void {
    this.#frames.delete(targetId)
    if (this.#pages.delete(targetId)) this.#end(targetId, 'abandoned')
  }

  #takePage(targetId: string, url: string): void {
    const before = this.#pages.get(targetId)
    this.#pages.set(targetId, url)
    if (before === undefined || before === url) return
    this.#done.delete(targetId)
    // Chromium caches addresses for a while, so there may be no lookup.
    if (this.#elementsUntil !== undefined) this.#expectElements()
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const pages = this.#pagesToLookAt()
      for (const [pageId, types] of pages) await this.#lookAt(pageId, types)
      for (const pageId of this.#challenges.keys()) if (!pages.has(pageId)) await this.#lookAt(pageId, new Set())
      if (this.#frames.size === 0 && this.#challenges.size === 0 && !this.#expectsElements) this.close()
    } finally {
      this.#isLooking = false
    }
  }

  /** A nested frame does not tell to which page it belongs: then every page is examined. */
  #pagesToLookAt(): ReadonlyMap<string, ReadonlySet<CaptchaType>> {
    const pages = new Map<string, Set<CaptchaType>>()
    if (this.#expectsElements) for (const id of this.#pages.keys()) pages.set(id, new Set(elementTypes))
    for (const { type, pageId } of this.#frames.values()) {
      const found = pageId !== undefined && this.#pages.has(pageId) ? [pageId] : [...this.#pages.keys()]
      for (const id of found) pages.set(id, (pages.get(id) ?? new Set()).add(type))
    }
    return pages
  }

  async #lookAt(pageId: string, types: ReadonlySet<CaptchaType>): Promise<void> {
    const limit = answerLimitMilliseconds
    const seen = await withTarget(this.#pipe, pageId, (session) => lookForCaptcha(this.#pipe, session, limit)).catch(
      () => undefined, // The page has closed or is busy.
    )
    if (!seen) return
    const known = this.#challenges.get(pageId)
    const hasLeft = known !== undefined && known.pageUrl !== this.#pages.get(pageId)
    if (hasLeft) {
      this.#end(pageId, 'abandoned')
      this.#done.delete(pageId)
    }
    const open = hasLeft ? undefined : known
    const isExpected = (type: CaptchaType) => types.has(type) || type === open?.type
    // Scripts cannot find the frame of Turnstile in its page.
    const visible = seen.visible.find(isExpected) ?? (types.has('turnstile') ? 'turnstile' : undefined)
    if (!open) {
      if (!visible) this.#done.delete(pageId)
      else if (!seen.isSolved && !this.#done.has(pageId)) this.#begin(pageId, visible)
    } else if (seen.isSolved) this.#end(pageId, 'solved')
    // After a press-and-hold challenge is solved, the page reloads with its content.
    else if (!visible) this.#end(pageId, open.type === 'press_and_hold' ? 'solved' : 'abandoned')
    else if (performance.now() - open.startedAt > challengeLimitMilliseconds) this.#end(pageId, 'timeout')
  }

  #begin(pageId: string, type: CaptchaType): void {
    const pageUrl = this.#pages.get(pageId) ?? ''
    this.#lastId += 1
    const challenge: Challenge = {
      id: `${pageId}-${this.#lastId}`,
      type,
      pageId,
      pageUrl,
      startedAt: performance.now(),
      taskId: this.#tasks?.newId(),
      attempt: 'asked',
    }
    this.#challenges.set(pageId, challenge)
    this.#report('captcha_solve_started', challenge, taskOf(challenge))
    void this.#solve(challenge).then((result) => this.#endAttempt(challenge, result))
  }

  async #solve(challenge: Challenge): Promise<AttemptResult> {
    const { type, pageId, pageUrl, taskId } = challenge
    const tasks = this.#tasks
    if (!tasks || taskId === undefined) return { status: 'failure', error_code: noSolver }
    if (!isSolvable(type)) return { status: 'failure', error_code: 'captcha_type_not_supported' }
    const inPage = <Result>(work: (options: Parameters<typeof findSiteKey>[0]) => Promise<Result>) =>
      withTarget(this.#pipe, pageId, (sessionId) =>
        work({ pipe: this.#pipe, sessionId, limitMilliseconds: answerLimitMilliseconds, type }),
      ).catch(() => undefined) // The page has closed or is busy.
    const frames = [...this.#frames.values()].filter((frame) => frame.type === type && frame.pageId === pageId)
    const siteKey = (await inPage(findSiteKey)) ?? frames.flatMap(({ url }) => siteKeyIn(type, url) ?? [])[0]
    if (siteKey === undefined) return { status: 'failure', error_code: 'site_key_not_found' }
    const outcome = await tasks.solve({ task_id: taskId, type, site_key: siteKey, page_url: withoutQuery(pageUrl) })
    if (outcome.status !== 'solved') return outcome
    if (challenge.attempt === 'over') return { status: 'abandoned' }
    challenge.attempt = 'answered'
    const isEntered = await inPage((options) => enterToken(outcome.token, options))
    return isEntered ? { status: 'success' } : { status: 'failure', error_code: 'token_not_entered' }
  }

  #endAttempt(challenge: Challenge, result: AttemptResult): void {
    if (challenge.attempt === 'over') return
    challenge.attempt = 'over'
    const duration_ms = Math.round(performance.now() - challenge.startedAt)
    this.#report('captcha_solve_result', challenge, { ...taskOf(challenge), ...result, duration_ms })
  }

  #end(pageId: string, status: Outcome): void {
    const challenge = this.#challenges.get(pageId)
    if (!challenge) return
    this.#challenges.delete(pageId)
    this.#done.add(pageId)
    // A person was faster than the service, or the page has changed.
    if (challenge.attempt === 'asked') this.#endAttempt(challenge, { status: 'abandoned' })
    const duration_ms = Math.round(performance.now() - challenge.startedAt)
    this.#report('captcha_challenge_result', challenge, { status, duration_ms })
  }

  #report(
    type: 'captcha_solve_started' | 'captcha_solve_result' | 'captcha_challenge_result',
    { id, type: captcha_type, pageUrl }: Challenge,
    result: Record<string, unknown>,
  ): void {
    const { hostname, pathname } = URL.canParse(pageUrl) ? new URL(pageUrl) : { hostname: '', pathname: '' }
    const site = { website_host: hostname, website_path: pathname.slice(0, 1024) }
    const data = { captcha_type, challenge_id: id, ...result, ...site }
    this.#collector.emit({ type, source: { kind: 'cdp', event: 'Target.targetInfoChanged' }, data })
  }
}

function taskOf({ taskId }: Challenge): { readonly task_id?: string } {
  return { ...(taskId !== undefined && { task_id: taskId }) }
}

/** The query may contain secrets of the site, and no service needs it. */
function withoutQuery(url: string): string {
  if (!URL.canParse(url)) return ''
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.slice(0, 4_096)
}
