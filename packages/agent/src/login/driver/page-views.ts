import { setTimeout as delay } from 'node:timers/promises'
import type { ObserveLoginRequest } from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginPage } from '@berth/contract/agent/login/login-page.ts'
import { AllowedHosts } from '../allowed-hosts.ts'
import { isOneTimeCode } from '../analysis/fields.ts'
import { isSurely } from '../analysis/find-login-page.ts'
import { type Judgement, judgePage, keyOf } from '../analysis/judge-page.ts'
import { cookieNotice, type Obstacle, passkeyPrompt, questionAfterLogin } from '../analysis/obstacles.ts'
import { signatureOf } from '../analysis/reading.ts'
import type { LoginAttempt } from '../login-attempt.ts'
import type { ReadPage } from '../login-frames.ts'
import type { LoginTab } from '../login-tab.ts'
import { press } from '../press.ts'
import type { HttpChallenge } from './http-auth.ts'
import { challengePage, challengeReading } from './http-challenge-page.ts'

export const lookMilliseconds = 90
/** A page with signs of a login is idle when it has not changed for this long; other pages may still be loading. */
const quietMilliseconds = 300
const emptyQuietMilliseconds = 1_300
/** A page that has not changed for this long is read despite network activity. */
const unchangedMilliseconds = 12_000
/** How long a page may take to react to an action. */
export const reactionMilliseconds = 2_500
/** Challenges that solve themselves do so within this time. */
const challengeMilliseconds = 2_500
const maxRounds = 6

/** The page at one moment, and its role in a login. */
export interface View extends ReadPage {
  readonly judgement: Judgement
  readonly signature: string
  readonly isIdle: boolean
  /** Set if the browser asks for credentials instead of the page. */
  readonly challenge?: HttpChallenge
}

export interface Wait {
  readonly end: number
  readonly signal: AbortSignal
  /** Signature of the page before the action. */
  readonly from?: string
}

export type Rule = Pick<ObserveLoginRequest, 'allowed_domains'>

/** Reads the page of a login once it is idle, and classifies it. */
export class PageViews {
  readonly #tab: LoginTab
  attempt: LoginAttempt | undefined
  /** Signature of each page when it was last read. */
  readonly #signatures = new Map<string, string>()

  constructor(tab: LoginTab) {
    this.#tab = tab
  }

  /** Returns the name of the error if the URL cannot be loaded. */
  async navigate(url: string, { end }: Wait): Promise<string | undefined> {
    const protocol = URL.canParse(url) ? new URL(url).protocol : ''
    if (!['http:', 'https:'].includes(protocol)) return 'ERR_INVALID_URL'
    return this.#tab.navigate(url, end - performance.now())
  }

  /** Waits until the page is idle, and dismisses obstacles. */
  async look(rule: Rule, wait: Wait): Promise<View | undefined> {
    let view = await this.rest(rule, wait)
    for (let round = 0; round < maxRounds && view?.isIdle; round++) {
      const obstacle = this.#obstacleOf(view)
      const frame = obstacle && view.frames[obstacle.press.frame]
      if (!obstacle || !frame) break
      await press(frame, obstacle.press.at)
      view = await this.rest(rule, { ...wait, from: view.signature })
    }
    this.#noteView(view)
    return view
  }

  #obstacleOf({ reading, judgement }: View): Obstacle | undefined {
    const { attempt } = this
    if (!attempt) return undefined
    const { form } = judgement
    const candidates = [
      cookieNotice(reading),
      questionAfterLogin(reading, form, attempt.hasProved),
      attempt.wantsPasskey ? undefined : passkeyPrompt(reading, form),
    ].filter((obstacle) => obstacle !== undefined)
    return candidates.find(({ kind, press: { selector, label } }) => {
      const key = [kind, selector, label, reading.frames[0]?.documentId].join(' ')
      const count = attempt.pressed.get(key) ?? 0
      attempt.pressed.set(key, count + 1)
      return count === 0 && attempt.pressed.size < 40
    })
  }

  #noteView(view: View | undefined): void {
    const { attempt } = this
    if (!view || !attempt) return
    const { state } = view.judgement.page
    if (state === 'external_action') attempt.hasProved = true
    if ((state === 'form' || state === 'choice') && !attempt.hasProved) attempt.loginPath = pathOf(view.reading.url)
  }

  /** The current page, without waiting. */
  async glance(rule: Rule): Promise<View | undefined> {
    const challenge = await this.#tab.challenge().catch(() => undefined)
    if (challenge) return this.#challengeView(rule, challenge)
    const read = await this.#tab.read().catch(() => undefined)
    return read && this.#judged(rule, read, { isIdle: true })
  }

  /** Waits until the page is idle, or the time limit passes. */
  async rest(rule: Rule, { end, signal, from }: Wait): Promise<View | undefined> {
    const begun = performance.now()
    let expected = from
    let last = ''
    let since = begun
    let pageId: string | undefined
    for (;;) {
      const challenge = await this.#tab.challenge().catch(() => undefined)
      if (challenge) return this.#challengeView(rule, challenge)
      const read = await this.#tab.read().catch(() => undefined)
      const now = performance.now()
      const signature = read ? signatureOf(read.reading) : ''
      if (signature !== last) since = now
      last = signature
      const id = read?.reading.targetId
      if (pageId !== undefined && id !== undefined && id !== pageId) {
        // A popup has closed: the page below initially shows what it showed before.
        expected = this.#signatures.get(id)
      }
      pageId = id ?? pageId
      const isOver = now >= end || signal.aborted
      if (read) {
        const hasReacted = signature !== expected || now - begun >= reactionMilliseconds
        const idle = read.page.isLoading ? 0 : now - read.page.lastActivity
        const view = await this.#judged(rule, read, { isIdle: true })
        const quiet = quietFor(view)
        const isReady = read.reading.frames[0]?.readyState === 'complete' || now - since > 4_000
        const isQuiet =
          now - since >= quiet && (idle >= Math.min(quiet, quietMilliseconds) || now - since > unchangedMilliseconds)
        const isPending =
          view.judgement.page.state === 'loading' ||
          (view.judgement.page.state === 'captcha' && now - since < challengeMilliseconds)
        if (isReady && isQuiet && hasReacted && !isPending) {
          if (id !== undefined) this.#signatures.set(id, signature)
          return view
        }
        if (isOver) return this.#judged(rule, read, { isIdle: false })
      } else if (isOver) return undefined
      await delay(lookMilliseconds)
    }
  }

  #challengeView({ allowed_domains }: Rule, challenge: HttpChallenge): View {
    const reading = challengeReading(challenge)
    const judgement = challengePage(challenge, new AllowedHosts(allowed_domains))
    return { reading, frames: [], judgement, signature: challenge.id, isIdle: true, challenge }
  }

  async #judged(
    rule: Rule,
    read: NonNullable<Awaited<ReturnType<LoginTab['read']>>>,
    { isIdle }: Pick<View, 'isIdle'>,
  ): Promise<View> {
    const { reading, frames, page } = read
    const { attempt } = this
    const url = reading.url
    const isAtHome = attempt?.site.outside(url) === undefined
    const newCookies = attempt?.hasProved ? attempt.newCookies(await this.#tab.cookies(), url) : []
    const judgement = judgePage(reading, {
      allowed: new AllowedHosts(rule.allowed_domains),
      hasProved: (attempt?.hasProved ?? false) && isAtHome && !this.#tab.hasPopup,
      hasAnsweredHttp: attempt?.answeredHttp === hostOf(url),
      textBefore: attempt?.textBefore,
      wasCode: attempt?.submitted.some(isOneTimeCode) ?? false,
      submitted: attempt?.submittedTo === hostOf(url) ? attempt.submitted : [],
      identifier: attempt?.hasProved ? attempt.identifier : undefined,
      dialogs: page.dialogs,
      status: page.status,
      isChallenge: page.isChallenge,
      netError: attempt?.netError,
      isIdle,
      newCookies,
      hasLeftLoginPage: attempt?.loginPath !== undefined && pathOf(url) !== attempt.loginPath,
      documentsBefore: attempt?.documentsBefore ?? new Set(),
    })
    return { reading, frames, judgement, signature: signatureOf(reading), isIdle }
  }

  keyOf({ reading, judgement, challenge }: View): string {
    return `${this.attempt?.generation ?? 0}.${challenge?.id ?? keyOf(reading, judgement)}`
  }

  /** The page as reported to the server. */
  told(view: View | undefined): LoginPage {
    if (view) return { page_key: this.keyOf(view), ...view.judgement.page }
    const nothing = { page_key: 'none', url: 'about:blank', title: '', fields: [], choices: [] }
    const error = this.attempt?.netError
    if (error === undefined) return { ...nothing, state: 'loading' }
    return { ...nothing, state: 'error', problem: 'network_error', website_error: error }
  }
}

function quietFor({ judgement: { page } }: View): number {
  return page.state === 'not_found' || page.state === 'loading' ? emptyQuietMilliseconds : quietMilliseconds
}

/**
 * Whether the login continues on this page. On a page that was not asked to log in, only if it certainly is a login.
 */
export function isLogin({ judgement }: View, isAskedFor: boolean): boolean {
  const { page, form, choices } = judgement
  switch (page.state) {
    case 'form':
      return isAskedFor || isSurely(form)
    case 'choice':
      return (
        choices.some(({ kind }) => kind !== 'other') &&
        (isAskedFor || choices.some(({ kind }) => kind === 'sso' || kind === 'account'))
      )
    case 'error':
      return page.problem !== 'website_error' || isAskedFor
    case 'loading':
    case 'not_found':
      return false
    default:
      return true
  }
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : ''
}

export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.slice(0, 253) : url.slice(0, 100)
}
