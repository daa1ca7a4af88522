import { setTimeout as delay } from 'node:timers/promises'
import type {
  CheckLoginReply,
  CheckLoginRequest,
  ChooseLoginRequest,
  LoginOutcome,
  ObserveLoginRequest,
  OpenLoginRequest,
  SubmitLoginRequest,
} from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginPage } from '@berth/contract/agent/login/login-page.ts'
import { Queue } from '@berth/runtime/async/queue.ts'
import type { Browser } from '../browser/browser.ts'
import { AllowedHosts } from './allowed-hosts.ts'
import type { KnownChoice } from './analysis/choices.ts'
import { isIdentifier, isSecret } from './analysis/fields.ts'
import { homePages } from './analysis/find-login-page.ts'
import { checkLogin } from './driver/check-login.ts'
import { discoverLogin } from './driver/discover-login.ts'
import { type Entry, pressWhenEnabled, sendForm, typeAll, withoutSecrets } from './driver/fill-form.ts'
import type { HttpChallenge } from './driver/http-auth.ts'
import { hostOf, isLogin, lookMilliseconds, PageViews, type Rule, type View, type Wait } from './driver/page-views.ts'
import { LoginAttempt, TypedPasswords } from './login-attempt.ts'
import { LoginTab } from './login-tab.ts'
import { press } from './press.ts'
import { SecretGuard } from './secret-guard.ts'
import { signIn } from './words/page-words.ts'

/**
 * Logs in to sites as a person with assistive technology would, one step per call. The server decides on steps and
 * values. The driver types secrets only on `allowed_domains`, and each password only once.
 */
export class LoginDriver {
  readonly #tab: LoginTab
  readonly #views: PageViews
  readonly #passwords = new TypedPasswords()
  /** One call at a time: two would type into the same page. */
  readonly #turns = new Queue()

  constructor(browser: Browser) {
    this.#tab = new LoginTab(browser)
    this.#views = new PageViews(this.#tab)
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
    return this.#turns.run(() => checkLogin(request, { tab: this.#tab, views: this.#views, signal }))
  }

  async #open(request: OpenLoginRequest, signal: AbortSignal): Promise<LoginPage> {
    const { domain, login_url, timeout_ms = 45_000 } = request
    const wait = { end: performance.now() + timeout_ms, signal }
    const attempt = new LoginAttempt(domain, login_url, await this.#tab.cookies())
    this.#views.attempt = attempt
    for (const url of login_url ? [login_url] : homePages(domain)) {
      attempt.netError = await this.#views.navigate(url, wait)
      if (attempt.netError === undefined) break
    }
    const view = await this.#views.look(request, wait)
    const isAskedFor =
      login_url !== undefined || view?.reading.headings.some((heading) => signIn.isIn(heading)) === true
    const isThere = !view || attempt.netError !== undefined || isLogin(view, isAskedFor)
    return this.#views.told(isThere ? view : await this.#discover(request, view, wait))
  }

  #discover(rule: Rule, home: View, wait: Wait): Promise<View | undefined> {
    return discoverLogin(home, { tab: this.#tab, views: this.#views, rule, wait })
  }

  async #observe(request: ObserveLoginRequest, signal: AbortSignal): Promise<LoginPage> {
    const { page_key, wait_ms = 0, timeout_ms = 20_000 } = request
    const until = performance.now() + wait_ms
    const wait = { end: until + timeout_ms, signal }
    for (;;) {
      const page = this.#views.told(await this.#views.look(request, wait))
      const isOther = page_key === undefined || page.page_key !== page_key
      if (isOther || performance.now() >= until || signal.aborted) return page
      await delay(lookMilliseconds * 3)
    }
  }

  async #submit(request: SubmitLoginRequest, signal: AbortSignal): Promise<LoginOutcome> {
    const wait = { end: performance.now() + (request.timeout_ms ?? 30_000), signal }
    const { attempt } = this.#views
    const view = await this.#views.glance(request)
    if (!attempt || !view || this.#views.keyOf(view) !== request.page_key) return this.#refused('stale', view)
    if (view.judgement.page.denied_hosts) return this.#refused('domain_not_allowed', view)
    if (view.challenge) return this.#answer(request, { attempt, view, challenge: view.challenge, wait })
    const entries = request.values.map(({ ref, value }) => ({ value, field: view.judgement.fields[indexOf(ref, 'f')] }))
    const choice = request.press === undefined ? undefined : view.judgement.choices[indexOf(request.press, 'c')]
    const known = entries.flatMap(({ field, value }) => (field ? [{ field, value }] : []))
    if (known.length < entries.length || (request.press !== undefined && !choice))
      return this.#refused('unknown_ref', view)
    const passwords = known.filter(({ field }) => field.purpose === 'password').map(({ value }) => value)
    if (!this.#mayType(new URL(view.reading.url).hostname, passwords, request)) {
      return this.#refused('already_typed', view)
    }
    attempt.generation += 1
    return this.#enter(request, { attempt, view, known, choice, wait })
  }

  /** Records what is typed: the same password is not typed again on that site unless a person has entered it again. */
  #mayType(site: string, passwords: readonly string[], { is_new_input }: SubmitLoginRequest): boolean {
    const isRepeated = passwords.some((value) => this.#passwords.has(site, value))
    if (isRepeated && !is_new_input) return false
    for (const value of passwords) this.#passwords.note(site, value)
    return true
  }

  /** Answers the site's HTTP challenge. Chromium sends the credentials to that origin only. */
  async #answer(request: SubmitLoginRequest, { attempt, view, challenge, wait }: Answering): Promise<LoginOutcome> {
    const { fields } = view.judgement.page
    const given = new Map(
      request.values.map(({ ref, value }) => [fields.find((field) => field.ref === ref)?.name, value]),
    )
    if (given.has(undefined) || request.press !== undefined) return this.#refused('unknown_ref', view)
    const { username = '', password = '' } = Object.fromEntries(given)
    const host = hostOf(challenge.origin)
    if (!this.#mayType(host, [password], request)) return this.#refused('already_typed', view)
    attempt.generation += 1
    attempt.hasProved = true
    attempt.answeredHttp = host
    attempt.identifier = username
    attempt.submitted = []
    await this.#tab.answer(challenge, { username, password })
    let next = await this.#views.look(request, { ...wait, from: view.signature })
    // The protected page may be just the home page of a site with a login form of its own.
    if (next?.judgement.page.state === 'not_found') next = await this.#discover(request, next, wait)
    return { outcome: 'done', typed: true, page: withoutSecrets(this.#views.told(next), [password]) }
  }

  async #enter(rule: Rule, { attempt, view, known, choice, wait }: Entering): Promise<LoginOutcome> {
    const allowed = new AllowedHosts(rule.allowed_domains)
    const secrets = known.filter(({ field }) => isSecret(field.purpose)).map(({ value }) => value)
    const sessions = view.frames.map(({ session }) => session)
    await using guard = await SecretGuard.watch({ pipe: await this.#tab.pipe(), sessions, allowed, secrets })
    noteSubmit(attempt, view, known)
    const typed = await typeAll(view, known, allowed)
    if (typed.outcome !== 'typed') {
      const after = await this.#views.look(rule, wait)
      const page = this.#views.told(after)
      const hosts =
        typed.denied === undefined
          ? {}
          : { denied_hosts: [hostOf(typed.denied)], problem: 'domain_not_allowed' as const }
      const outcome = typed.outcome === 'denied' ? ('domain_not_allowed' as const) : ('not_typed' as const)
      return { outcome, typed: typed.count > 0, page: { ...page, ...hosts } }
    }
    await sendForm(view, known, choice)
    if (secrets.length > 0) attempt.hasProved = true
    const after = await this.#views.look(rule, { ...wait, from: view.signature })
    const page = withoutSecrets(this.#views.told(after), secrets)
    if (guard.denied.size === 0) return { outcome: 'done', typed: true, page }
    const denied_hosts = [...guard.denied].slice(0, 10)
    return {
      outcome: 'domain_not_allowed',
      typed: true,
      page: { ...page, problem: 'domain_not_allowed', denied_hosts },
    }
  }

  async #choose(request: ChooseLoginRequest, signal: AbortSignal): Promise<LoginOutcome> {
    const wait = { end: performance.now() + (request.timeout_ms ?? 30_000), signal }
    const { attempt } = this.#views
    const view = await this.#views.glance(request)
    if (!attempt || !view || this.#views.keyOf(view) !== request.page_key) return this.#refused('stale', view)
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
    const after = await this.#views.look(request, { ...wait, from: view.signature })
    return { outcome: 'done', typed: false, page: this.#views.told(after) }
  }

  #refused(outcome: LoginOutcome['outcome'], view: View | undefined): LoginOutcome {
    return { outcome, typed: false, page: this.#views.told(view) }
  }
}

interface Answering {
  readonly attempt: LoginAttempt
  readonly view: View
  readonly challenge: HttpChallenge
  readonly wait: Wait
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

function indexOf(ref: string, prefix: 'f' | 'c'): number {
  return ref.startsWith(prefix) && /^\d{1,3}$/.test(ref.slice(1)) ? Number(ref.slice(1)) - 1 : -1
}
