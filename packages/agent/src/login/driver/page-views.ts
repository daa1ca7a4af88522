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
/** A page that has something of a login is at rest when it has not changed for so long; others may just have begun. */
const quietMilliseconds = 300
const emptyQuietMilliseconds = 1_300
/** However much goes on in the network, a page that has not changed for so long is taken as it is. */
const stillMilliseconds = 12_000
/** How long a page may take until it shows that it was acted on. */
export const reactionMilliseconds = 2_500
/** Challenges that need nobody solve themselves within this. */
const challengeMilliseconds = 2_500
const maxRounds = 6

/** The page at one moment, and what it is to a login. */
export interface View extends ReadPage {
  readonly judgement: Judgement
  readonly signature: string
  readonly isAtRest: boolean
  /** The browser asks in the page's stead. */
  readonly challenge?: HttpChallenge
}

export interface Wait {
  readonly end: number
  readonly signal: AbortSignal
  /** Signature of the page that was acted on. */
  readonly from?: string
}

export type Rule = Pick<ObserveLoginRequest, 'allowed_domains'>

/** Looks at the page of a login: when it has come to rest, and what it is then. */
export class PageViews {
  readonly #tab: LoginTab
  attempt: LoginAttempt | undefined
  /** Of the last look at each page. */
  readonly #signatures = new Map<string, string>()

  constructor(tab: LoginTab) {
    this.#tab = tab
  }

  /** The name of the error where the URL cannot be loaded. */
  async navigate(url: string, { end }: Wait): Promise<string | undefined> {
    const protocol = URL.canParse(url) ? new URL(url).protocol : ''
    if (!['http:', 'https:'].includes(protocol)) return 'ERR_INVALID_URL'
    return this.#tab.navigate(url, end - performance.now())
  }

  /** Waits for rest, and presses away what stands in between. */
  async look(rule: Rule, wait: Wait): Promise<View | undefined> {
    let view = await this.rest(rule, wait)
    for (let round = 0; round < maxRounds && view?.isAtRest; round++) {
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

  /** The page now, without waiting. */
  async glance(rule: Rule): Promise<View | undefined> {
    const challenge = await this.#tab.challenge().catch(() => undefined)
    if (challenge) return this.#challengeView(rule, challenge)
    const read = await this.#tab.read().catch(() => undefined)
    return read && this.#judged(rule, read, { isAtRest: true })
  }

  /** Waits until the page has come to rest, or the time is over. */
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
        // A pop-up has closed: the page below shows at first what it showed before.
        expected = this.#signatures.get(id)
      }
      pageId = id ?? pageId
      const isOver = now >= end || signal.aborted
      if (read) {
        const hasReacted = signature !== expected || now - begun >= reactionMilliseconds
        const idle = read.page.isLoading ? 0 : now - read.page.lastActivity
        const view = await this.#judged(rule, read, { isAtRest: true })
        const quiet = quietFor(view)
        const isReady = read.reading.frames[0]?.readyState === 'complete' || now - since > 4_000
        const isQuiet =
          now - since >= quiet && (idle >= Math.min(quiet, quietMilliseconds) || now - since > stillMilliseconds)
        const isPending =
          view.judgement.page.state === 'loading' ||
          (view.judgement.page.state === 'captcha' && now - since < challengeMilliseconds)
        if (isReady && isQuiet && hasReacted && !isPending) {
          if (id !== undefined) this.#signatures.set(id, signature)
          return view
        }
        if (isOver) return this.#judged(rule, read, { isAtRest: false })
      } else if (isOver) return undefined
      await delay(lookMilliseconds)
    }
  }

  #challengeView({ allowed_domains }: Rule, challenge: HttpChallenge): View {
    const reading = challengeReading(challenge)
    const judgement = challengePage(challenge, new AllowedHosts(allowed_domains))
    return { reading, frames: [], judgement, signature: challenge.id, isAtRest: true, challenge }
  }

  async #judged(
    rule: Rule,
    read: NonNullable<Awaited<ReturnType<LoginTab['read']>>>,
    { isAtRest }: Pick<View, 'isAtRest'>,
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
      isAtRest,
      newCookies,
      hasLeftLoginPage: attempt?.loginPath !== undefined && pathOf(url) !== attempt.loginPath,
      documentsBefore: attempt?.documentsBefore ?? new Set(),
    })
    return { reading, frames, judgement, signature: signatureOf(reading), isAtRest }
  }

  keyOf({ reading, judgement, challenge }: View): string {
    return `${this.attempt?.generation ?? 0}.${challenge?.id ?? keyOf(reading, judgement)}`
  }

  /** What the server is told of the page. */
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

/** Whether the login goes on from here. On a page that nobody has asked for, only what is surely one. */
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
