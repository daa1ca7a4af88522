import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import { isCode, type StoredLogin, storedValue, takesTotp } from '../stored-login/stored-login.ts'
import type { FlowErrorCode, FlowFailure, HumanNeed } from './flow-state.ts'

/** The input of a decision about a page. */
export interface FlowView {
  readonly isAttended: boolean
  readonly storedLogin: StoredLogin | undefined
  /** The keys of the values that were typed before, from `typedKey`. */
  readonly typed: readonly string[]
  /** Whether anything was typed or pressed since the start of the flow. */
  readonly hasActed: boolean
  /** How often the page was observed without a result since the last action. */
  readonly looks: number
}

/** What to do with a page. */
export type Decision =
  | { readonly do: 'succeed' }
  | { readonly do: 'look' }
  | { readonly do: 'reopen' }
  | { readonly do: 'type'; readonly values: readonly PlannedValue[] }
  | { readonly do: 'choose'; readonly choice: LoginChoice }
  /** A person has to enter values or choose. The known fields are filled in as well. */
  | { readonly do: 'ask'; readonly known: readonly LoginField[] }
  | { readonly do: 'wait'; readonly message: string }
  | { readonly do: 'fail'; readonly failure: FlowFailure }

/** The source of a field's value. */
export interface PlannedValue {
  readonly field: LoginField
  readonly source: 'stored' | 'totp'
}

/** How often a page that is not ready is observed. */
const maxLooks = 4
/** A code may expire while it is typed; then the next one is tried. */
const maxTotpTries = 2
/** A site may request the user name in each of its steps. */
const maxTimes = 3

export const totpMark = 'totp'

/** Identifies a field of a host. Pages of one host with the same field request the same value again. */
export function typedKey(page: Pick<LoginPage, 'url'>, field: Pick<LoginField, 'name'>): string {
  return `${URL.parse(page.url)?.host ?? ''}/${field.name}`
}

/**
 * Decides from the page, the stored values, and what was typed before. A stored password is typed once for each host: a
 * site that requests it again has rejected it or is confused, and only a person can resolve that.
 */
export function decide(page: LoginPage, view: FlowView): Decision {
  switch (page.state) {
    case 'logged_in':
      return { do: 'succeed' }
    case 'loading':
      return again(page, view, 'navigation_confused', 'The site did not finish loading a page.')
    case 'not_found':
      return view.hasActed
        ? again(page, view, 'navigation_confused', 'The login led to a page that has nothing to do with it.')
        : fail(page, 'login_form_not_found', 'No login was found on the site. Set login_url to its address.')
    case 'captcha':
      return view.isAttended
        ? { do: 'wait', message: 'Solve the captcha of the site in the live view.' }
        : fail(page, 'captcha_blocked', 'The site shows a challenge that only a person can solve.')
    case 'blocked':
    case 'error':
      return onProblem(page, view)
    case 'external_action':
      return onExternalAction(page, view)
    case 'form':
    case 'choice':
      return onQuestion(page, view)
  }
}

function again(page: LoginPage, { looks }: FlowView, code: FlowErrorCode, message: string): Decision {
  return looks < maxLooks ? { do: 'look' } : fail(page, code, message)
}

const retriedProblems: readonly string[] = ['website_error', 'network_error', 'session_expired']

/** The site denies the login without a question. A denial before anything was typed is tried once more. */
function onProblem(page: LoginPage, { hasActed, looks }: FlowView): Decision {
  const problem = page.problem ?? 'website_error'
  if (retriedProblems.includes(problem) && !hasActed && looks === 0) return { do: 'reopen' }
  return fail(page, codeOfProblem(problem), messages[problem])
}

const messages: Readonly<Record<NonNullable<LoginPage['problem']>, string>> = {
  credentials_invalid: 'The site refuses the user name or the password.',
  code_rejected: 'The site refuses the code.',
  account_locked: 'The site has locked the account.',
  rate_limited: 'The site takes no more attempts for now.',
  session_expired: 'The site has ended the login before it was finished.',
  website_error: 'The site shows an error.',
  bot_detected: 'The site does not let this browser in.',
  captcha_blocked: 'The site shows a challenge that only a person can solve.',
  unsupported_auth_method: 'The site takes nothing but a passkey.',
  domain_not_allowed: 'The login leads to a host that is not among the allowed domains.',
  login_form_not_found: 'No login was found on the site. Set login_url to its address.',
  network_error: 'A page of the site could not be loaded.',
}

function codeOfProblem(problem: NonNullable<LoginPage['problem']>): FlowErrorCode {
  return problem === 'code_rejected' ? 'totp_code_rejected' : problem
}

function onExternalAction(page: LoginPage, view: FlowView): Decision {
  const byTotp = totpChoice(page, view)
  if (byTotp) return { do: 'choose', choice: byTotp }
  const message = page.external_action_message ?? 'Confirm the login on your other device.'
  if (view.isAttended) return { do: 'wait', message }
  return fail(page, 'external_action_required', message)
}

function onQuestion(page: LoginPage, view: FlowView): Decision {
  const { storedLogin, isAttended } = view
  const problem = page.problem
  const isRefused = problem !== undefined || page.fields.some(({ is_rejected }) => is_rejected)
  if (isRefused) {
    const retry = retryOfTotp(page, view)
    if (retry) return retry
    if (!isAttended) return refusal(page)
    return { do: 'ask', known: [] }
  }
  const sso = ssoChoice(page, view)
  if (sso) return { do: 'choose', choice: sso }
  const known = storedLogin ? page.fields.flatMap((field) => plan(page, field, view) ?? []) : []
  const isKnown = (field: LoginField) => known.some((planned) => planned.field === field)
  const isComplete = page.fields.every((field) => !field.required || isKnown(field))
  if (known.length > 0 && isComplete) return { do: 'type', values: known }
  const choice = obviousChoice(page, view)
  if (choice) return { do: 'choose', choice }
  if (!isAttended) {
    return unattendedNeed(
      page,
      page.fields.filter((field) => !isKnown(field)),
    )
  }
  // A code is computed when it is typed, so it is also known.
  return { do: 'ask', known: known.map(({ field }) => field) }
}

/** Undefined if no stored value is to be typed into the field. */
function plan(page: LoginPage, field: LoginField, { storedLogin, typed }: FlowView): PlannedValue | undefined {
  if (!storedLogin) return undefined
  if (takesTotp(storedLogin, field)) {
    // Only one field of a page is for the code. A person has to fill in the others.
    const isFirst = page.fields.find((each) => takesTotp(storedLogin, each)) === field
    return isFirst && !typed.includes(totpMark) ? { field, source: 'totp' } : undefined
  }
  const times = typed.filter((mark) => mark === typedKey(page, field)).length
  if (times >= (field.purpose === 'password' ? 1 : maxTimes)) return undefined
  return storedValue(storedLogin, field) === undefined ? undefined : { field, source: 'stored' }
}

function retryOfTotp(page: LoginPage, { storedLogin, typed }: FlowView): Decision | undefined {
  if (!storedLogin || page.problem === 'credentials_invalid') return undefined
  const [field, other] = page.fields.filter(({ required }) => required)
  const tries = typed.filter((mark) => mark === totpMark).length
  if (!field || other || !takesTotp(storedLogin, field) || tries === 0 || tries >= maxTotpTries) return undefined
  return { do: 'type', values: [{ field, source: 'totp' }] }
}

function refusal(page: LoginPage): Decision {
  const isOfCode = page.problem === 'code_rejected' || page.fields.some((field) => field.is_rejected && isCode(field))
  const problem = page.problem ?? (isOfCode ? 'code_rejected' : 'credentials_invalid')
  return fail(page, codeOfProblem(problem), messages[problem])
}

function ssoChoice({ choices }: LoginPage, { storedLogin, typed }: FlowView): LoginChoice | undefined {
  const provider = storedLogin?.ssoProvider?.toLowerCase()
  if (!provider || typed.includes(ssoMark(provider))) return undefined
  return choices.find((choice) => choice.kind === 'sso' && choice.provider === provider)
}

export function ssoMark(provider: string): string {
  return `sso ${provider}`
}

function totpChoice({ choices }: LoginPage, { storedLogin, typed }: FlowView): LoginChoice | undefined {
  if (!storedLogin?.totp || typed.includes(totpMark)) return undefined
  return choices.find((choice) => choice.mfa_type === 'totp')
}

/**
 * The choice that follows from the stored values: a code, the password instead of a link, or the account with this user
 * name.
 */
function obviousChoice(page: LoginPage, view: FlowView): LoginChoice | undefined {
  const byTotp = totpChoice(page, view)
  if (byTotp) return byTotp
  const { storedLogin } = view
  if (!storedLogin || (page.state !== 'choice' && !asksForCodeInstead(page))) return undefined
  const texts = [...storedLogin.values.values()].map((value) => value.toLowerCase())
  const isNew = (choice: LoginChoice) => !view.typed.includes(choiceMark(page, choice))
  const account = page.choices.find(
    (choice) => choice.kind === 'account' && isNew(choice) && texts.some((text) => says(choice, text)),
  )
  if (account) return account
  const password = storedValue(storedLogin, passwordField)
  if (password === undefined) return undefined
  return page.choices.find((choice) => choice.mfa_type === 'password' && isNew(choice))
}

/** A form that requests a code instead of the password and offers the password as a choice. */
function asksForCodeInstead({ fields }: LoginPage): boolean {
  const asks = (...purposes: readonly LoginField['purpose'][]) =>
    fields.some(({ purpose }) => purposes.includes(purpose))
  return fields.some(isCode) && asks('username', 'email', 'phone') && !asks('password')
}

export function choiceMark(page: Pick<LoginPage, 'url'>, { label }: Pick<LoginChoice, 'label'>): string {
  return `choice ${URL.parse(page.url)?.host ?? ''}/${label}`
}

function says({ label, description = '' }: LoginChoice, text: string): boolean {
  return (
    text.length > 2 &&
    `${label} ${description}`
      .toLowerCase()
      .split(/[\s<>()]+/)
      .includes(text)
  )
}

const passwordField: LoginField = {
  ref: '',
  name: 'password',
  label: '',
  purpose: 'password',
  input_mode: 'text',
  required: true,
  is_rejected: false,
  selector: '',
}

/** Nobody can be asked, so the failure says what was needed. */
function unattendedNeed(page: LoginPage, missing: readonly LoginField[]): Decision {
  const [need = 'customer_input'] = needsOf(missing, page.choices, page.state === 'choice')
  const [code, message] = failureOf[need]
  return fail(page, code, message)
}

const failureOf: Readonly<Record<HumanNeed, readonly [FlowErrorCode, string]>> = {
  external_action: ['external_action_required', 'A person has to confirm the login elsewhere.'],
  totp: ['totp_required', 'The site asks for a code of an authenticator, and no secret for it is stored.'],
  sms_code: ['sms_code_required', 'The site asks for a code that it sends to a phone.'],
  email_code: ['email_code_required', 'The site asks for a code that it sends by e-mail.'],
  code: ['mfa_required', 'The site asks for a code.'],
  mfa_choice: ['mfa_required', 'The site asks how to prove the identity.'],
  account_choice: ['account_choice_required', 'The site asks which account is meant.'],
  customer_input: ['customer_input_required', 'The site asks for something that is not stored.'],
}

/** What a person has to do to answer these fields or one of the choices. The most specific need comes first. */
export function needsOf(
  fields: readonly LoginField[],
  choices: readonly LoginChoice[],
  isChoice: boolean,
): readonly HumanNeed[] {
  const needs = new Set<HumanNeed>()
  for (const { purpose } of fields) {
    if (purpose === 'totp' || purpose === 'sms_code' || purpose === 'email_code' || purpose === 'code')
      needs.add(purpose)
    else if (purpose === 'backup_code') needs.add('code')
  }
  if (isChoice) {
    if (choices.some(({ kind }) => kind === 'account')) needs.add('account_choice')
    else if (choices.some(({ kind }) => kind === 'mfa')) needs.add('mfa_choice')
  }
  if (needs.size === 0) needs.add('customer_input')
  return [...needs]
}

function fail({ website_error, denied_hosts }: LoginPage, code: FlowErrorCode, message: string): Decision {
  const hosts = code === 'domain_not_allowed' && denied_hosts ? ` (${denied_hosts.join(', ')})` : ''
  return { do: 'fail', failure: { code, message: message.replace(/\.$/, `${hosts}.`), websiteError: website_error } }
}
