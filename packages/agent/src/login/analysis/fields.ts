import type { LoginFieldPurpose } from '@berth/contract/agent/login/login-page.ts'
import * as fieldWords from '../words/field-words.ts'
import { captchaWords } from '../words/problem-words.ts'
import { plainText } from '../words/word-list.ts'
import type { InFrame, RawField } from './reading.ts'

/** `new_password` and `captcha` are recognized to distinguish them from login fields, and never filled in. */
export type Purpose = LoginFieldPurpose | 'new_password' | 'captcha'

export interface KnownField {
  readonly raw: InFrame<RawField>
  /** Several for a code with one box per character. */
  readonly places: readonly number[]
  readonly purpose: Purpose
}

const notOneTime =
  /zip|postal|postcode|plz|country|area code|promo|coupon|discount|gutschein|referral|qr|source|language/
const maskedPhone =
  /([•*x·.]\s?){2,}[\s-]*\d{2,4}(?!\d)|(ending|endet|endend|terminan|que termina|finale|eindig|konczac)[^.\n]{0,20}\d{2,4}/i
const maskedEmail = /[\p{L}\d._•*+-]+@[\p{L}\d•*-]+[.•*][\p{L}•*.]+/u

/** The parts of `userName_field-1` as words. */
function wordsOf(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[_.[\]:-]+/g, ' ')
    .replace(/\d+/g, ' ')
}

/** The fields that a person can fill in; a code with several boxes counts as one. */
export function fieldsOf(raws: readonly InFrame<RawField>[]): readonly (readonly InFrame<RawField>[])[] {
  const shown = raws.filter(({ isOutOfSight, region, role, name }) => {
    return !isOutOfSight && region !== 'search' && role !== 'searchbox' && !/^(q|query|search|s)$/i.test(name)
  })
  const fields: InFrame<RawField>[][] = []
  for (const raw of shown) {
    const before = fields.at(-1)
    if (before?.[0] && isBox(raw) && isBox(before[0]) && isBeside(before[0], raw)) before.push(raw)
    else fields.push([raw])
  }
  return fields.flatMap((boxes) => (boxes.length >= 4 ? [boxes] : boxes.map((box) => [box])))
}

function isBox({ type, maxLength, box }: RawField): boolean {
  return (
    ['text', 'tel', 'number', 'password'].includes(type) && (maxLength === 1 || (maxLength === 0 && box.width <= 64))
  )
}

function isBeside(one: InFrame<RawField>, other: InFrame<RawField>): boolean {
  return one.frame === other.frame && one.group === other.group && Math.abs(one.box.y - other.box.y) < 12
}

/** What the field asks for. `beside` are the other fields of its form, `around` is the text that explains it. */
export function purposeOf(
  boxes: readonly InFrame<RawField>[],
  { beside, around }: { readonly beside: readonly RawField[]; readonly around: string },
): Purpose {
  const [raw] = boxes as [InFrame<RawField>]
  const { type, autocomplete, label, placeholder, name, id, hint } = raw
  const marks = `${wordsOf(name)} ${wordsOf(id)}`
  const said = `${label} ${placeholder}`
  const text = `${said} ${marks}`
  const tokens = autocomplete.split(' ')
  const codeKind = () => kindOfCode(`${said} ${hint} ${marks}`, around)
  if (type === 'select') return 'other'
  if (captchaWords.isIn(`${text} ${hint}`)) return 'captcha'
  if (boxes.length > 1 || tokens.includes('one-time-code')) return codeKind()
  if (tokens.includes('new-password')) return 'new_password'
  if (fieldWords.backupCode.isIn(said)) return 'backup_code'
  const isPassword = fieldWords.password.isIn(text) && !fieldWords.email.isIn(label)
  const isCode = fieldWords.code.isIn(text) && !notOneTime.test(plainText(text))
  if (type === 'password' || tokens.includes('current-password')) {
    if (fieldWords.newPassword.isIn(said)) return 'new_password'
    const isOneTime = isCode && !fieldWords.password.isIn(label) && !/^pin$/.test(plainText(label))
    return isOneTime && !beside.some(isIdentifierLike) ? codeKind() : 'password'
  }
  if (type === 'email' || tokens.includes('email')) return 'email'
  if (isCode && !fieldWords.username.isIn(label) && !isPassword) return codeKind()
  if (/one.?time|einmal/.test(plainText(text)) && isCode) return codeKind()
  if (isPassword && type === 'text' && beside.length > 0 && !beside.some((field) => field.type === 'password'))
    return 'password'
  const isShort = raw.maxLength >= 4 && raw.maxLength <= 8
  if (isShort && (raw.inputMode === 'numeric' || type === 'tel' || type === 'number') && beside.length === 0)
    return codeKind()
  if (isQuestion(label) || (beside.length === 0 && isTenant(said))) return 'other'
  const isEmail = fieldWords.email.isIn(text)
  const isUsername = fieldWords.username.isIn(said) || tokens.includes('username')
  const isPhone = fieldWords.phone.isIn(text) || type === 'tel' || tokens.some((token) => token.startsWith('tel'))
  if (isEmail && (isPhone || (isUsername && !fieldWords.email.isAll(label)))) return 'username'
  if (isEmail) return 'email'
  if (isUsername) return 'username'
  if (isPhone) return 'phone'
  if (fieldWords.username.isIn(marks)) return 'username'
  const others = beside.filter(({ type: other }) => other !== 'password')
  return others.length === 0 ? 'username' : 'other'
}

/** "What was the name of your first pet?" */
function isQuestion(label: string): boolean {
  return /[?？؟]$/.test(label.trim()) && label.trim().split(/\s+/).length > 2
}

function isTenant(said: string): boolean {
  return fieldWords.tenant.isIn(said) && !fieldWords.username.isIn(said) && !fieldWords.email.isIn(said)
}

function isIdentifierLike({ type, isOutOfSight }: RawField): boolean {
  return !isOutOfSight && ['text', 'email', 'tel'].includes(type)
}

/** Where a one-time code comes from, according to the field itself or else the text around it. */
export function kindOfCode(own: string, around: string): LoginFieldPurpose {
  for (const text of [own, around]) {
    if (fieldWords.backupCode.isIn(text) && text === own) return 'backup_code'
    if (fieldWords.totp.isIn(text)) return 'totp'
    if (maskedEmail.test(text)) return 'email_code'
    if (fieldWords.sms.isIn(text) || maskedPhone.test(text) || fieldWords.call.isIn(text)) return 'sms_code'
    if (fieldWords.email.isIn(text)) return 'email_code'
    if (fieldWords.phone.isIn(text)) return 'sms_code'
  }
  return 'code'
}

/** The destination of a code as the page shows it. */
export function maskedDestination(label: string): string | undefined {
  return (maskedEmail.exec(label) ?? maskedPhone.exec(label))?.[0].trim()
}

export const isOneTimeCode = (purpose: Purpose) =>
  ['totp', 'sms_code', 'email_code', 'code', 'backup_code'].includes(purpose)
export const isIdentifier = (purpose: Purpose) => ['username', 'email', 'phone'].includes(purpose)
/** Values that only the user may see, and that are sent to allowed hosts only. */
export const isSecret = (purpose: Purpose) => purpose === 'password' || isOneTimeCode(purpose)
