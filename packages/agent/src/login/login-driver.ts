import { setTimeout as delay } from 'node:timers/promises'
import type {
  CheckLoginReply,
  CheckLoginRequest,
  ChooseLoginRequest,
  LoginOutcome,
  ObserveLoginRequest,
  OpenLoginRequest,
  SubmitLoginRequest,
} from '@berth/contract/agent/login-endpoints.ts'
import type { LoginPage } from '@berth/contract/agent/login-page.ts'
import { Queue } from '@berth/runtime/async/queue.ts'
import type { Browser } from '../browser/browser.ts'
import { AllowedHosts } from './allowed-hosts.ts'
import { isTermsToggle, type KnownChoice } from './choices.ts'
import { compareEvidence, signsOf } from './evidence.ts'
import { isIdentifier, isOneTimeCode, isSecret, type KnownField } from './fields.ts'
import { homePages, isSurely, type LoginLink, loginLinks, wellKnownPaths } from './find-login-page.ts'
import { areFilled, leaveField, typeInto } from './in-page/act-in-page.ts'
import { type Judgement, judgePage, keyOf } from './judge-page.ts'
import { LoginAttempt, TypedPasswords } from './login-attempt.ts'
import { callIn, type LoginFrame, type ReadPage } from './login-frames.ts'
import { LoginTab } from './login-tab.ts'
import { cookieNotice, type Obstacle, passkeyPrompt, questionAfterLogin } from './obstacles.ts'
import { press, submitByKey } from './press.ts'
import { signatureOf } from './reading.ts'
import { SecretGuard } from './secret-guard.ts'
import * as pageWords from './words/page-words.ts'

const lookMilliseconds = 90
/** A page that has something of a login is at rest when it has not changed for so long; others may just have begun. */
const quietMilliseconds = 300
const emptyQuietMilliseconds = 1_300
/** However much goes on in the network, a page that has not changed for so long is taken as it is. */
const stillMilliseconds = 12_000
/** How long a page may take until it shows that it was acted on. */
const reactionMilliseconds = 2_500
/** Challenges that need nobody solve themselves within this. */
const challengeMilliseconds = 2_500
const maxRounds = 6
const maxLinks = 3

/** The page at one moment, and what it is to a login. */
interface View extends ReadPage {
  readonly judgement: Judgement
  readonly signature: string
  readonly isAtRest: boolean
}

interface Wait {
  readonly end: number
  readonly signal: AbortSignal
  /** Signature of the page that was acted on. */
  readonly from?: string
}

type Rule = Pick<ObserveLoginRequest, 'allowed_domains'>

/**
 * Logs in to sites as a person with assistive technology would, one step for each call. What the steps are, and which
 * values are typed, others decide. It types secrets only where `allowed_domains` lets it, and a password only once.
 */
export class LoginDriver {
  readonly #tab: LoginTab
  readonly #passwords = new TypedPasswords()
  #attempt: LoginAttempt | undefined
  /** One call after another: two would type into one page. */
  readonly #turns = new Queue()
  /** Of the last look at each page. */
  readonly #signatures = new Map<string, string>()

  constructor(browser: Browser) {
    this.#tab = new LoginTab(browser)
  }

  open(request: OpenLoginRequest, signal: AbortSignal): Promise<LoginPage> {
    return this.#turns.run(() => this.#open(request, signal))
  }

  observe(request: ObserveLoginRequest, signal: AbortSignal): Promise<LoginPage> {
    return this.#turns.run(() => this.#observe(request, signal))
  }

  submit(request: SubmitLoginRequest, signal: AbortSignal): Promise<LoginOutcome> {
    return this.#turns.run(() => this.#submit(request, signal))
  }

  choose(request: ChooseLoginRequest, signal: AbortSignal): Promise<LoginOutcome> {
    return this.#turns.run(() => this.#choose(request, signal))
  }

  check(request: CheckLoginRequest, signal: AbortSignal): Promise<CheckLoginReply> {
    return this.#turns.run(() => this.#check(request, signal))
  }

  async #open(request: OpenLoginRequest, signal: AbortSignal): Promise<LoginPage> {
    const { domain, login_url, timeout_ms = 45_000 } = request
    const wait = { end: performance.now() + timeout_ms, signal }
    const attempt = new LoginAttempt(domain, login_url, await this.#tab.cookies())
    this.#attempt = attempt
    for (const url of login_url ? [login_url] : homePages(domain)) {
      attempt.netError = await this.#navigate(url, wait)
      if (attempt.netError === undefined) break
    }
    const view = await this.#look(request, wait)
    if (!view || attempt.netError !== undefined || isLogin(view, login_url !== undefined)) return this.#told(view)
    return this.#told(await this.#discover(request, view, wait))
  }

  async #navigate(url: string, { end }: Wait): Promise<string | undefined> {
    const protocol = URL.canParse(url) ? new URL(url).protocol : ''
    if (!['http:', 'https:'].includes(protocol)) return 'ERR_INVALID_URL'
    return this.#tab.navigate(url, end - performance.now())
  }

  /** Follows what leads to the login: links, then the paths that sites usually have. */
  async #discover(rule: Rule, home: View, wait: Wait): Promise<View | undefined> {
    const homeUrl = home.reading.url
    const tried = new Set<string>()
    let view: View | undefined = home
    for (let depth = 0; depth < maxLinks && view; depth++) {
      const link: LoginLink | undefined = loginLinks(view.reading).find(
        ({ href, control }) => !tried.has(href || `${control?.selector}`),
      )
      if (!link) break
      tried.add(link.href || `${link.control?.selector}`)
      const next: View | undefined = await this.#follow(rule, view, { link, wait })
      if (next && isLogin(next, true)) return next
      view = next ?? view
    }
    const origin = URL.canParse(homeUrl) ? new URL(homeUrl).origin : undefined
    for (const path of origin === undefined || origin === 'null' ? [] : wellKnownPaths) {
      if (wait.end - performance.now() < 3_000 || wait.signal.aborted) break
      if (tried.has(`${origin}${path}`)) continue
      if ((await this.#navigate(`${origin}${path}`, wait)) !== undefined) continue
      const { page } = await this.#tab.current()
      if ((page.status ?? 200) >= 400) continue
      const next = await this.#look(rule, wait)
      if (next && isLogin(next, true)) return next
    }
    const last = await this.#look(rule, wait)
    if (!last || !['not_found', 'loading'].includes(last.judgement.page.state)) return last
    const page = { ...last.judgement.page, state: 'not_found' as const, problem: 'login_form_not_found' as const }
    return { ...last, judgement: { ...last.judgement, page } }
  }

  async #follow(rule: Rule, view: View, { link, wait }: { link: LoginLink; wait: Wait }): Promise<View | undefined> {
    const { control, href } = link
    const frame = control && view.frames[control.frame]
    if (frame && control && !control.isOutOfSight) {
      const pressed = await press(frame, control.at)
      const next = pressed === 'pressed' ? await this.#look(rule, { ...wait, from: view.signature }) : undefined
      if (next && next.signature !== view.signature) return next
    }
    if (href === '' || (await this.#navigate(href, wait)) !== undefined) return undefined
    return this.#look(rule, wait)
  }

  async #observe(request: ObserveLoginRequest, signal: AbortSignal): Promise<LoginPage> {
    const { page_key, wait_ms = 0, timeout_ms = 20_000 } = request
    const until = performance.now() + wait_ms
    const wait = { end: until + timeout_ms, signal }
    for (;;) {
      const page = this.#told(await this.#look(request, wait))
      const isOther = page_key === undefined || page.page_key !== page_key
      if (isOther || performance.now() >= until || signal.aborted) return page
      await delay(lookMilliseconds * 3)
    }
  }

  async #submit(request: SubmitLoginRequest, signal: AbortSignal): Promise<LoginOutcome> {
    const wait = { end: performance.now() + (request.timeout_ms ?? 30_000), signal }
    const attempt = this.#attempt
    const view = await this.#glance(request)
    if (!attempt || !view || this.#keyOf(view) !== request.page_key) return this.#refused('stale', view)
    if (view.judgement.page.denied_hosts) return this.#refused('domain_not_allowed', view)
    const entries = request.values.map(({ ref, value }) => ({ value, field: view.judgement.fields[indexOf(ref, 'f')] }))
    const choice = request.press === undefined ? undefined : view.judgement.choices[indexOf(request.press, 'c')]
    const known = entries.flatMap(({ field, value }) => (field ? [{ field, value }] : []))
    if (known.length < entries.length || (request.press !== undefined && !choice))
      return this.#refused('unknown_ref', view)
    const site = new URL(view.reading.url).hostname
    const passwords = known.filter(({ field }) => field.purpose === 'password').map(({ value }) => value)
    const isRepeated = passwords.some((value) => this.#passwords.has(site, value))
    if (isRepeated && !request.is_new_input) return this.#refused('already_typed', view)
    attempt.generation += 1
    for (const value of passwords) this.#passwords.note(site, value)
    return this.#enter(request, { attempt, view, known, choice, wait })
  }

  async #enter(rule: Rule, { attempt, view, known, choice, wait }: Entering): Promise<LoginOutcome> {
    const allowed = new AllowedHosts(rule.allowed_domains)
    const secrets = known.filter(({ field }) => isSecret(field.purpose)).map(({ value }) => value)
    const sessions = view.frames.map(({ session }) => session)
    await using guard = await SecretGuard.watch({ pipe: await this.#tab.pipe(), sessions, allowed, secrets })
    noteSubmit(attempt, view, known)
    const typed = await typeAll(view, known, allowed)
    if (typed.outcome !== 'typed') {
      const after = await this.#look(rule, wait)
      const page = this.#told(after)
      const hosts =
        typed.denied === undefined
          ? {}
          : { denied_hosts: [hostOf(typed.denied)], problem: 'domain_not_allowed' as const }
      const outcome = typed.outcome === 'denied' ? ('domain_not_allowed' as const) : ('not_typed' as const)
      return { outcome, typed: typed.count > 0, page: { ...page, ...hosts } }
    }
    await this.#send(view, known, choice)
    if (secrets.length > 0) attempt.hasProved = true
    const page = this.#told(await this.#look(rule, { ...wait, from: view.signature }))
    if (guard.denied.size === 0) return { outcome: 'done', typed: true, page }
    const denied_hosts = [...guard.denied].slice(0, 10)
    return {
      outcome: 'domain_not_allowed',
      typed: true,
      page: { ...page, problem: 'domain_not_allowed', denied_hosts },
    }
  }

  /** Checks what the form needs to be checked, and presses its button. */
  async #send(view: View, known: readonly Entry[], choice: KnownChoice | undefined): Promise<void> {
    const { form } = view.judgement
    for (const toggle of form?.toggles ?? []) {
      const isNeeded = toggle.isRequired && isTermsToggle(toggle)
      const isKept = toggle.type === 'checkbox' && !toggle.isChecked && pageWords.stayIn.isIn(toggle.label)
      const frame = view.frames[toggle.frame]
      if (frame && (isNeeded || isKept)) await press(frame, toggle.at)
    }
    const last = known.at(-1)?.field
    const frame = last && view.frames[last.raw.frame]
    if (!last || !frame) return
    const place = last.places.at(-1) ?? last.raw.at
    await callIn(frame, leaveField, [place])
    const target = choice?.element ?? form?.submit
    const own = target && view.frames[target.frame]
    if (!target || !own) return submitByKey(frame, place)
    await pressWhenEnabled(own, target.at)
  }

  async #choose(request: ChooseLoginRequest, signal: AbortSignal): Promise<LoginOutcome> {
    const wait = { end: performance.now() + (request.timeout_ms ?? 30_000), signal }
    const attempt = this.#attempt
    const view = await this.#glance(request)
    if (!attempt || !view || this.#keyOf(view) !== request.page_key) return this.#refused('stale', view)
    const choice = view.judgement.choices[indexOf(request.ref, 'c')]
    if (!choice) return this.#refused('unknown_ref', view)
    attempt.generation += 1
    attempt.submitted = []
    attempt.textBefore = view.reading.text
    if (['sso', 'account'].includes(choice.kind) || choice.mfa_type === 'push') attempt.hasProved = true
    attempt.wantsPasskey = choice.mfa_type === 'passkey'
    for (const { frame: index, at } of [...(choice.toggles ?? []), choice.element]) {
      const frame = view.frames[index]
      if (frame) await press(frame, at)
    }
    const confirm = choice.confirm && view.frames[choice.confirm.frame]
    if (choice.confirm && confirm) await pressWhenEnabled(confirm, choice.confirm.at)
    return {
      outcome: 'done',
      typed: false,
      page: this.#told(await this.#look(request, { ...wait, from: view.signature })),
    }
  }

  async #check(request: CheckLoginRequest, signal: AbortSignal): Promise<CheckLoginReply> {
    const { domain, url, evidence, timeout_ms = 30_000 } = request
    const wait = { end: performance.now() + timeout_ms, signal }
    const target = url ?? evidence?.url
    const attempt = new LoginAttempt(domain, target, [])
    this.#attempt = attempt
    for (const each of target === undefined ? homePages(domain) : [target]) {
      attempt.netError = await this.#navigate(each, wait)
      if (attempt.netError === undefined) break
    }
    let view: View | undefined
    if (attempt.netError === undefined) view = await this.#rest(request, wait)
    const cookies = view ? attempt.newCookies(await this.#tab.cookies(), view.reading.url) : []
    const signs = view
      ? signsOf(view.reading, isSurely(view.judgement.form) ? view.judgement.form : undefined, undefined)
      : []
    const found = {
      url: view?.reading.url.slice(0, 2_000) ?? target ?? domain,
      signs: [...signs],
      cookies: [...cookies],
    }
    const problem = attempt.netError ?? (view ? problemOf(view) : 'ERR_TIMED_OUT')
    if (problem !== undefined || !view)
      return { logged_in: 'unknown', evidence: found, ...(problem !== undefined && { problem }) }
    const isSame = compareEvidence({ signs, url: view.reading.url, cookies }, evidence)
    const isLoginPage = isLogin(view, true) && view.judgement.page.state !== 'logged_in' && !signs.includes('sign_out')
    const loggedIn = isLoginPage ? 'no' : isSame === undefined ? 'unknown' : isSame ? 'yes' : 'no'
    return { logged_in: loggedIn, evidence: found }
  }

  /** Waits for rest, and presses away what stands in between. */
  async #look(rule: Rule, wait: Wait): Promise<View | undefined> {
    let view = await this.#rest(rule, wait)
    for (let round = 0; round < maxRounds && view?.isAtRest; round++) {
      const obstacle = this.#obstacleOf(view)
      const frame = obstacle && view.frames[obstacle.press.frame]
      if (!obstacle || !frame) break
      await press(frame, obstacle.press.at)
      view = await this.#rest(rule, { ...wait, from: view.signature })
    }
    this.#noteView(view)
    return view
  }

  #obstacleOf({ reading, judgement }: View): Obstacle | undefined {
    const attempt = this.#attempt
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
    const attempt = this.#attempt
    if (!view || !attempt) return
    const { state } = view.judgement.page
    if (state === 'external_action') attempt.hasProved = true
    if ((state === 'form' || state === 'choice') && !attempt.hasProved) attempt.loginPath = pathOf(view.reading.url)
  }

  /** The page now, without waiting. */
  async #glance(rule: Rule): Promise<View | undefined> {
    const read = await this.#tab.read().catch(() => undefined)
    return read && this.#judged(rule, read, { isAtRest: true })
  }

  /** Waits until the page has come to rest, or the time is over. */
  async #rest(rule: Rule, { end, signal, from }: Wait): Promise<View | undefined> {
    const begun = performance.now()
    let expected = from
    let last = ''
    let since = begun
    let pageId: string | undefined
    for (;;) {
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

  async #judged(
    rule: Rule,
    read: NonNullable<Awaited<ReturnType<LoginTab['read']>>>,
    { isAtRest }: Pick<View, 'isAtRest'>,
  ): Promise<View> {
    const { reading, frames, page } = read
    const attempt = this.#attempt
    const url = reading.url
    const isAtHome = attempt?.site.outside(url) === undefined
    const newCookies = attempt?.hasProved ? attempt.newCookies(await this.#tab.cookies(), url) : []
    const judgement = judgePage(reading, {
      allowed: new AllowedHosts(rule.allowed_domains),
      hasProved: (attempt?.hasProved ?? false) && isAtHome && !this.#tab.hasPopup,
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

  #keyOf({ reading, judgement }: View): string {
    return `${this.#attempt?.generation ?? 0}.${keyOf(reading, judgement)}`
  }

  #told(view: View | undefined): LoginPage {
    if (view) return { page_key: this.#keyOf(view), ...view.judgement.page }
    const nothing = { page_key: 'none', url: 'about:blank', title: '', fields: [], choices: [] }
    const error = this.#attempt?.netError
    if (error === undefined) return { ...nothing, state: 'loading' }
    return { ...nothing, state: 'error', problem: 'network_error', website_error: error }
  }

  #refused(outcome: LoginOutcome['outcome'], view: View | undefined): LoginOutcome {
    return { outcome, typed: false, page: this.#told(view) }
  }
}

interface Entry {
  readonly field: KnownField
  readonly value: string
}

interface Entering {
  readonly attempt: LoginAttempt
  readonly view: View
  readonly known: readonly Entry[]
  readonly choice: KnownChoice | undefined
  readonly wait: Wait
}

function noteSubmit(attempt: LoginAttempt, { reading }: View, known: readonly Entry[]): void {
  attempt.submitted = known.map(({ field }) => field.purpose)
  attempt.submittedTo = hostOf(reading.url)
  attempt.textBefore = reading.text
  attempt.documentsBefore = new Set(reading.frames.map(({ documentId }) => documentId))
  const identifier = known.find(({ field }) => isIdentifier(field.purpose))
  if (identifier) attempt.identifier = identifier.value
}

interface Typed {
  readonly outcome: 'typed' | 'denied' | 'refused' | 'gone'
  readonly denied?: string
}

/** Types every value, and once more what the page has lost meanwhile: one that draws itself anew starts empty. */
async function typeAll(view: View, known: readonly Entry[], allowed: AllowedHosts): Promise<Typed & { count: number }> {
  let count = 0
  const type = async ({ field, value }: Entry): Promise<Typed> => {
    const frame = view.frames[field.raw.frame]
    const typed = frame && (await callIn<Typed>(frame, typeInto, [field.places, value, allowed.roots, true]))
    if (typed?.outcome === 'typed') count += 1
    return typed ?? { outcome: 'gone' }
  }
  for (const entry of known) {
    const typed = await type(entry)
    // A code may be sent by its last character, and takes its page away.
    if (typed.outcome === 'gone' && isOneTimeCode(entry.field.purpose) && count > 0) return { outcome: 'typed', count }
    if (typed.outcome !== 'typed') return { ...typed, count }
  }
  for (const entry of known) {
    const frame = view.frames[entry.field.raw.frame]
    const isThere =
      !frame || entry.value === '' || (await callIn<boolean>(frame, areFilled, [entry.field.places])) !== false
    if (!isThere && !isOneTimeCode(entry.field.purpose)) await type(entry)
  }
  return { outcome: 'typed', count }
}

/** Pages enable their buttons when they have seen what was typed. */
async function pressWhenEnabled(frame: LoginFrame, at: number): Promise<void> {
  const end = performance.now() + reactionMilliseconds
  while ((await press(frame, at)) === 'disabled' && performance.now() < end) await delay(lookMilliseconds)
}

/** Whether the login goes on from here. On a page that nobody has asked for, only what is surely one. */
function isLogin({ judgement }: View, isAskedFor: boolean): boolean {
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

function quietFor({ judgement: { page } }: View): number {
  return page.state === 'not_found' || page.state === 'loading' ? emptyQuietMilliseconds : quietMilliseconds
}

/** Why a page says nothing about the login. */
function problemOf({ judgement: { page }, isAtRest }: View): string | undefined {
  if (page.state === 'blocked' || page.state === 'captcha' || page.state === 'error')
    return page.problem ?? 'website_error'
  return isAtRest ? undefined : 'loading'
}

function indexOf(ref: string, prefix: 'f' | 'c'): number {
  return ref.startsWith(prefix) && /^\d{1,3}$/.test(ref.slice(1)) ? Number(ref.slice(1)) - 1 : -1
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : ''
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.slice(0, 253) : url.slice(0, 100)
}
