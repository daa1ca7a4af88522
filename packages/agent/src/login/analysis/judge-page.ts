import { createHash } from 'node:crypto'
import {
  type LoginChoice,
  type LoginField,
  type LoginPage,
  maxLoginChoices,
  maxLoginFields,
  maxLoginText,
} from '@berth/contract/agent/login/login-page.ts'
import type { AllowedHosts } from '../allowed-hosts.ts'
import * as fieldWords from '../words/field-words.ts'
import * as pageWords from '../words/page-words.ts'
import * as problemWords from '../words/problem-words.ts'
import { findChoices, type KnownChoice } from './choices.ts'
import { enoughWeight, type Sign, signsOf, weightOf } from './evidence.ts'
import { isIdentifier, isOneTimeCode, type KnownField, maskedDestination } from './fields.ts'
import { findLoginForm, type LoginForm } from './login-form.ts'
import type { PageReading } from './reading.ts'
import { findError, type SiteError } from './site-errors.ts'

/** What has happened since the login began, if it helps to understand the page. */
export interface Situation {
  readonly allowed: AllowedHosts
  /** A password or a code was submitted, or another service or a device has confirmed the user. */
  readonly hasProved: boolean
  /** The host has requested a password with status 401, and received one. */
  readonly hasAnsweredHttp: boolean
  /** Text of the page before the last submit. */
  readonly textBefore: string | undefined
  readonly wasCode: boolean
  /** The last submit contained a password or a code, and the page asks for the same again. */
  readonly submitted: readonly KnownField['purpose'][]
  readonly identifier: string | undefined
  readonly dialogs: readonly string[]
  /** Of the page's own document. */
  readonly status: number | undefined
  readonly isChallenge: boolean
  readonly netError: string | undefined
  readonly isIdle: boolean
  readonly newCookies: readonly string[]
  readonly hasLeftLoginPage: boolean
  /** The documents that existed before the last submit. */
  readonly documentsBefore: ReadonlySet<string>
}

export interface Judgement {
  readonly page: Omit<LoginPage, 'page_key'>
  readonly form: LoginForm | undefined
  /** In the order of the page. */
  readonly fields: readonly KnownField[]
  readonly choices: readonly KnownChoice[]
  readonly signs: readonly Sign[]
}

/** Changes with the documents, fields and choices of the page, but not with counters and advertisements. */
export function keyOf({ targetId, url, frames }: PageReading, { fields, choices }: Judgement): string {
  const documentOf = (frame: number) => frames.find(({ index }) => index === frame)?.documentId
  const hash = createHash('sha256').update(JSON.stringify([targetId, url.split(/[?#]/)[0], frames[0]?.documentId]))
  for (const { raw, purpose, places } of fields) {
    hash.update(JSON.stringify([documentOf(raw.frame), purpose, raw.label, raw.selector, places.length]))
  }
  for (const { kind, label, element } of choices) {
    hash.update(JSON.stringify([documentOf(element.frame), kind, label.replace(/\d+/g, ''), element.selector]))
  }
  return hash.digest('hex').slice(0, 24)
}

const cut = (text: string) => text.slice(0, maxLoginText)

/** Classifies the page as a step of a login. */
export function judgePage(reading: PageReading, situation: Situation): Judgement {
  const form = findLoginForm(reading)
  const known = (form?.fields ?? []).filter(({ purpose }) => purpose !== 'captcha').slice(0, maxLoginFields)
  const choices = findChoices({ reading, form }).slice(0, maxLoginChoices)
  const denied = deniedHosts(known, reading, situation.allowed)
  const fields = denied.length > 0 ? [] : known
  const error = findError(reading, { ...situation, text: situation.textBefore })
  const signs = signsFor(reading, form, situation)
  const rejected = rejectedFields(known, reading, situation, error)
  const common = {
    url: reading.url.slice(0, 2_000),
    title: cut(reading.title),
    fields: namedFields(fields, rejected),
    choices: choices.map(choiceOf),
  }
  const state = stateOf({
    reading,
    situation,
    form,
    choices,
    error,
    signs,
    rejected,
    isDenied: denied.length > 0,
    fields,
  })
  return {
    page: {
      ...common,
      ...state,
      ...(denied.length > 0 && { denied_hosts: denied.slice(0, 10), problem: 'domain_not_allowed' as const }),
    },
    form,
    fields,
    choices,
    signs,
  }
}

type State = Pick<LoginPage, 'state' | 'problem' | 'website_error' | 'external_action_message' | 'evidence'>

interface Found {
  readonly reading: PageReading
  readonly situation: Situation
  readonly form: LoginForm | undefined
  readonly fields: readonly KnownField[]
  readonly choices: readonly KnownChoice[]
  readonly error: SiteError | undefined
  readonly signs: readonly Sign[]
  readonly rejected: readonly KnownField[]
  readonly isDenied: boolean
}

function stateOf(found: Found): State {
  const { reading, situation, form, fields, choices, error, signs, rejected, isDenied } = found
  const said = error && { website_error: error.text }
  if (situation.netError !== undefined)
    return { state: 'error', problem: 'network_error', website_error: cut(situation.netError) }
  if (hasCaptcha(reading, form)) return { state: 'captcha', problem: 'captcha_blocked', ...said }
  const block = blockOf(found)
  if (block) return block
  if (isDenied) return { state: choices.length > 0 ? 'choice' : 'error', problem: 'domain_not_allowed', ...said }
  const hasProof = choices.some(({ kind }) => ['mfa', 'account', 'terms'].includes(kind))
  if (fields.length > 0) {
    const problem = error?.problem ?? (rejected.length > 0 ? rejectionOf(rejected) : undefined)
    return { state: 'form', ...(problem && { problem }), ...said }
  }
  const action = externalAction(reading)
  const isStrong = signs.includes('sign_out')
  const isOfPasskey = action === undefined || fieldWords.passkey.isIn(action)
  if (!form && isOfPasskey && isOnlyPasskey(reading, choices))
    return { state: 'error', problem: 'unsupported_auth_method', ...said }
  if (action !== undefined && !isStrong && !isPicker(choices))
    return { state: 'external_action', external_action_message: cut(action), ...said }
  if (hasProof) return { state: 'choice', ...(error && { problem: error.problem }), ...said }
  if (isLoggedIn(found)) return { state: 'logged_in', evidence: evidenceOf(found) }
  if (choices.length > 0 && !signs.includes('sign_out'))
    return { state: 'choice', ...(error && { problem: error.problem }), ...said }
  if (!situation.isIdle || isAtWork(reading)) return { state: 'loading' }
  if (error && situation.textBefore !== undefined) return { state: 'error', problem: error.problem, ...said }
  if ((situation.status ?? 200) >= 500)
    return {
      state: 'error',
      problem: 'website_error',
      website_error: cut(reading.title || reading.text.split('\n')[0] || `HTTP ${situation.status}`),
    }
  return { state: 'not_found' }
}

/** Hosts that are not allowed and own a field, its frame or its form. */
function deniedHosts(fields: readonly KnownField[], reading: PageReading, allowed: AllowedHosts): readonly string[] {
  const urls = fields.flatMap(({ raw }) => {
    const frame = reading.frames.find(({ index }) => index === raw.frame)
    const around = (frame?.ancestors ?? []).filter((origin) => origin !== 'null')
    return [reading.frames[0]?.origin ?? 'null', frame?.origin ?? 'null', ...around, raw.formTarget]
  })
  const isScript = (url: string) => /^javascript:/i.test(url)
  return [
    ...new Set(
      urls
        .filter((url) => !isScript(url))
        .map((url) => allowed.outside(url))
        .filter((host) => host !== undefined),
    ),
  ]
}

function hasCaptcha({ frames }: PageReading, form: LoginForm | undefined): boolean {
  const isUnsolved = frames.some(({ captchas, hasCaptchaToken }) => captchas.length > 0 && !hasCaptchaToken)
  return isUnsolved || (form?.fields.some(({ purpose }) => purpose === 'captcha') ?? false)
}

/** The site keeps the browser or the account out. */
function blockOf({ reading, situation, fields, error, signs }: Found): State | undefined {
  if (error?.problem === 'account_locked' || error?.problem === 'rate_limited') {
    return { state: 'blocked', problem: error.problem, website_error: error.text }
  }
  if (fields.length > 0 || signs.includes('sign_out')) return undefined
  const { status = 200, isChallenge } = situation
  const text = [reading.title, ...reading.headings, reading.text.slice(0, 1_500)].join('\n')
  const line = () => cut(reading.headings[0] || reading.title || reading.text.split('\n')[0] || `HTTP ${status}`)
  const isShort = reading.text.length < 2_500
  if (isShort && problemWords.locked.isIn(text) && situation.hasProved)
    return {
      state: 'blocked',
      problem: 'account_locked',
      website_error: lineWith(reading, problemWords.locked) ?? line(),
    }
  if (status === 429 || (isShort && status >= 400 && problemWords.rateLimited.isIn(text)))
    return { state: 'blocked', problem: 'rate_limited', website_error: line() }
  if (isShort && situation.textBefore !== undefined && problemWords.rateLimited.isIn(text))
    return {
      state: 'blocked',
      problem: 'rate_limited',
      website_error: lineWith(reading, problemWords.rateLimited) ?? line(),
    }
  if (isChallenge || (isShort && problemWords.botCheck.isIn(text)) || (status === 403 && isShort))
    return { state: 'blocked', problem: 'bot_detected', website_error: line() }
  return undefined
}

function lineWith({ text }: PageReading, words: { isIn(text: string): boolean }): string | undefined {
  const line = text.split('\n').find((each) => words.isIn(each))
  return line && cut(line.trim())
}

/** What a person has to do on a device or in a mail, in the page's words. */
function externalAction(reading: PageReading): string | undefined {
  const text = [...reading.headings, reading.text.slice(0, 2_500)].join('\n')
  const words = problemWords.deviceAction.isIn(text) ? problemWords.deviceAction : problemWords.mailAction
  const labels = new Set(reading.controls.map(({ label }) => label))
  const lines = text.split('\n').map((line) => line.trim())
  const message = lines.filter((line) => line.length > 8 && !labels.has(line)).find((line) => words.isIn(line))
  // Devices ask for the number that the page shows.
  const number = lines.find((line) => /^\d{1,3}$/.test(line))
  return message !== undefined && number !== undefined ? `${message} (${number})` : message
}

/** Several ways of proof, of which one is to be chosen: nothing has been sent yet. */
function isPicker(choices: readonly KnownChoice[]): boolean {
  const ways = choices.filter(({ kind, mfa_type }) => kind === 'mfa' && mfa_type !== 'switch')
  return ways.length > 1
}

function isOnlyPasskey(reading: PageReading, choices: readonly KnownChoice[]): boolean {
  const heading = [reading.title, ...reading.headings, reading.text.slice(0, 300)].join(' | ')
  const others = choices.filter(({ mfa_type }) => mfa_type !== 'passkey')
  const isAsked = fieldWords.passkey.isIn(heading) || choices.some(({ mfa_type }) => mfa_type === 'passkey')
  return isAsked && others.length === 0 && !pageWords.signOut.isIn(reading.text)
}

function isAtWork(reading: PageReading): boolean {
  const isShort = reading.text.length < 300
  return (
    isShort &&
    (reading.text === '' ||
      problemWords.working.isIn(`${reading.title} ${reading.text}`) ||
      reading.frames.some(({ isBusy }) => isBusy))
  )
}

function signsFor(reading: PageReading, form: LoginForm | undefined, situation: Situation): readonly Sign[] {
  const signs = signsOf(reading, form, situation.identifier)
  if (!situation.hasProved || form) return signs
  return [
    ...signs,
    'form_gone',
    ...(situation.hasAnsweredHttp ? (['http_auth_accepted'] as const) : []),
    ...(situation.hasLeftLoginPage ? (['left_login_page'] as const) : []),
    ...(situation.newCookies.length > 0 ? (['cookie_set'] as const) : []),
  ]
}

function isLoggedIn({ reading, situation, error, signs }: Found): boolean {
  if (signs.includes('sign_out')) return weightOf(signs) >= enoughWeight
  if (!situation.isIdle || isAtWork(reading) || (error && situation.textBefore !== undefined)) return false
  if ((situation.status ?? 200) >= 400) return false
  return weightOf(signs) >= enoughWeight
}

function evidenceOf({ reading, situation, signs }: Found): LoginPage['evidence'] {
  return {
    url: reading.url.slice(0, 2_000),
    signs: [...signs],
    cookies: situation.newCookies.filter((name) => name.length <= 200).slice(0, 50),
  }
}

/** Fields that ask again for what was submitted just now. */
function rejectedFields(
  fields: readonly KnownField[],
  reading: PageReading,
  { submitted, documentsBefore }: Situation,
  error: SiteError | undefined,
): readonly KnownField[] {
  const hasReacted = ({ raw }: KnownField) => {
    const document = reading.frames.find(({ index }) => index === raw.frame)?.documentId ?? ''
    return error !== undefined || !raw.hasValue || !documentsBefore.has(document)
  }
  const isRepeated = (purpose: KnownField['purpose']) =>
    submitted.includes(purpose) || (isOneTimeCode(purpose) && submitted.some(isOneTimeCode))
  const repeated = fields
    .filter(({ purpose }) => (purpose === 'password' || isOneTimeCode(purpose)) && isRepeated(purpose))
    .filter(hasReacted)
  const marked = fields.filter(({ raw }) => raw.isInvalid && submitted.length > 0)
  if (repeated.length > 0 || marked.length > 0) return [...new Set([...repeated, ...marked])]
  const isWrong = error?.problem === 'credentials_invalid' && submitted.length > 0
  return isWrong ? fields.filter(({ purpose }) => isIdentifier(purpose) && submitted.includes(purpose)) : []
}

function rejectionOf(rejected: readonly KnownField[]): NonNullable<State['problem']> {
  return rejected.some(({ purpose }) => isOneTimeCode(purpose)) ? 'code_rejected' : 'credentials_invalid'
}

function namedFields(fields: readonly KnownField[], rejected: readonly KnownField[]): LoginField[] {
  const names = new Set<string>()
  return fields.map((field, index) => {
    const { raw, purpose } = field
    const own = /^[\w.[\]-]{1,60}$/.test(raw.name) && !/\d{4,}|^:r/.test(raw.name) ? raw.name : purpose
    let name: string = own
    for (let count = 2; names.has(name); count++) name = `${own}_${count}`
    names.add(name)
    return {
      ref: `f${index + 1}`,
      name,
      label: cut(raw.label || raw.placeholder || raw.name || purpose),
      purpose: purpose as LoginField['purpose'],
      input_mode: inputModeOf(field),
      required: raw.isRequired || purpose !== 'other' || field.raw.type === 'select',
      is_rejected: rejected.includes(field),
      ...(raw.placeholder && { placeholder: cut(raw.placeholder) }),
      ...(raw.hint && { hint: cut(raw.hint) }),
      ...(raw.options && {
        options: raw.options.map(({ value, label }) => ({ value: cut(value), label: cut(label) })),
      }),
      selector: raw.selector,
    }
  })
}

function inputModeOf({ raw, purpose }: KnownField): LoginField['input_mode'] {
  if (purpose === 'email' || raw.inputMode === 'email') return 'email'
  if (purpose === 'phone' || (raw.type === 'tel' && !isOneTimeCode(purpose))) return 'tel'
  return raw.inputMode === 'numeric' || (isOneTimeCode(purpose) && purpose !== 'backup_code') ? 'numeric' : 'text'
}

function choiceOf({ kind, label, description, mfa_type, provider, element }: KnownChoice, index: number): LoginChoice {
  const masked = kind === 'mfa' ? maskedDestination(label) : undefined
  return {
    ref: `c${index + 1}`,
    kind,
    label: cut(label),
    ...(description && { description: cut(description) }),
    ...(mfa_type && { mfa_type }),
    ...(masked && { masked_destination: cut(masked) }),
    ...(provider && { provider }),
    selector: element.selector,
  }
}
