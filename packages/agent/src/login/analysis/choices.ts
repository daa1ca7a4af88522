import type { LoginChoice, LoginMfaType } from '@berth/contract/agent/login/login-page.ts'
import * as fieldWords from '../words/field-words.ts'
import * as pageWords from '../words/page-words.ts'
import { isIdentifier, isOneTimeCode, maskedDestination, type Purpose } from './fields.ts'
import type { LoginForm } from './login-form.ts'
import { providerInLabel, providerInMarks } from './providers.ts'
import type { InFrame, PageReading, RawControl, RawToggle } from './reading.ts'

type Described = Pick<LoginChoice, 'kind' | 'mfa_type' | 'provider'>

export interface KnownChoice extends Described {
  readonly label: string
  readonly description?: string
  readonly element: InFrame<RawControl> | InFrame<RawToggle>
  /** The control to press after choosing an item of a list. */
  readonly confirm?: InFrame<RawControl>
  /** Checkboxes that must be checked before. */
  readonly toggles?: readonly InFrame<RawToggle>[]
}

const maxLabel = 160
const emailAddress = /[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+/
const ssoAddress = /oauth|openid|oidc|saml|sso|federat|\/auth\/|\/connect\/|social|login\/|signin\/|authorize|idp/i
const storeAddress = /apps\.apple\.com|play\.google\.com|itunes|app-store|appstore/i

interface Page {
  readonly reading: PageReading
  readonly form: LoginForm | undefined
}

/** Whether the page asks for additional proof of identity, or which kind to use. */
export function isVerification({ reading, form }: Page): boolean {
  const heading = [reading.title, ...reading.headings].join(' | ')
  const asks = (fits: (purpose: Purpose) => boolean) => form?.fields.some(({ purpose }) => fits(purpose)) ?? false
  // Beside a user name field, the code is the login itself.
  const asksForCode = asks(isOneTimeCode) && !asks(isIdentifier)
  return asksForCode || fieldWords.verification.isIn(heading)
}

/** What a person could press to continue the login, besides filling in the form. */
export function findChoices(page: Page): readonly KnownChoice[] {
  const { reading, form } = page
  const usable = reading.controls.filter((control) => isUsable(control) && control !== form?.submit)
  const accounts = findAccounts(page, usable)
  const ofToggles = findOfToggles(page)
  const sso = usable.flatMap((control) => ssoOf(page, control))
  const taken = new Set([...sso, ...accounts].map(({ element }) => element))
  const methods = usable.filter((control) => !taken.has(control)).flatMap((control) => methodOf(page, control))
  const found = [...accounts, ...ofToggles, ...sso, ...methods]
  const terms = found.length === 0 || !form ? findTerms(page, usable) : []
  return withoutRepeats([...found.filter(({ element }) => !terms.some((term) => term.element === element)), ...terms])
}

function isUsable({ label, isOutOfSight, isDisabled, marks }: RawControl): boolean {
  return !isOutOfSight && !isDisabled && label.length <= maxLabel && (label !== '' || marks !== '')
}

const isPeripheral = ({ region }: RawControl) => ['footer', 'nav', 'header', 'search'].includes(region)

function ssoOf({ form }: Page, control: InFrame<RawControl>): readonly KnownChoice[] {
  const { label, marks, href, formTarget, region } = control
  if (region === 'footer' || storeAddress.test(href)) return []
  const isRegistration =
    pageWords.register.isIn(label) && !pageWords.signIn.isIn(label) && !fieldWords.withWords.isIn(label)
  if (isRegistration || pageWords.cookies.isIn(label)) return []
  const named = providerInLabel(label)
  const address = `${href} ${control.formHasFields ? '' : formTarget}`
  const leadsToLogin = ssoAddress.test(pathAndHost(address))
  if (named !== undefined) {
    if (pageWords.aside.isIn(label) && !fieldWords.withWords.isIn(label)) return []
    const isNear = form?.fields.some(({ raw }) => raw.frame === control.frame && raw.group === control.group) ?? false
    const isSaid = fieldWords.withWords.isIn(label)
    // The operator's profile page at a social network is a plain link.
    const isPlainLink = control.tag === 'a' && !leadsToLogin && !isSaid
    if (isPlainLink || !(isSaid || leadsToLogin || isNear || control.tag !== 'a')) return []
    if (fieldWords.totp.isIn(label) && !isSaid) return []
    return [{ kind: 'sso', label: label || named, provider: named, element: control }]
  }
  const marked = providerInMarks(`${marks} ${address}`)
  if (marked === undefined || !leadsToLogin || label.length > 40 || isPeripheral(control)) return []
  if (control.isSubmit && control.formHasFields) return []
  if (pageWords.aside.isIn(label) || pageWords.register.isIn(label)) return []
  return [{ kind: 'sso', label: label || marked, provider: marked, element: control }]
}

function pathAndHost(address: string): string {
  return address
    .split(' ')
    .map((url) =>
      URL.canParse(url) ? `${new URL(url).hostname}${new URL(url).pathname}${new URL(url).search.slice(0, 100)}` : '',
    )
    .join(' ')
}

/** Labels that name a method that the user does not have. */
const unable = /\b(can[’']?t|cannot|don[’']?t have|no access to|lost)\b/i

/** Verification methods, as far as a label names them. */
export function mfaTypeOf(label: string): LoginMfaType | undefined {
  if (unable.test(label)) return 'switch'
  if (fieldWords.backupCode.isIn(label)) return 'other'
  if (fieldWords.passkey.isIn(label)) return 'passkey'
  if (fieldWords.totp.isIn(label) && !/push|notif/i.test(label)) return 'totp'
  if (fieldWords.push.isIn(label)) return 'push'
  if (fieldWords.sms.isIn(label)) return 'sms'
  if (fieldWords.call.isIn(label)) return 'call'
  if (fieldWords.email.isIn(label) || emailAddress.test(label)) return 'email'
  if (fieldWords.password.isIn(label)) return 'password'
  if (fieldWords.otherMethod.isIn(label)) return 'switch'
  const destination = maskedDestination(label)
  if (destination !== undefined) return destination.includes('@') ? 'email' : 'sms'
  return undefined
}

function methodOf(page: Page, control: InFrame<RawControl>): readonly KnownChoice[] {
  const { label } = control
  if (isPeripheral(control) || pageWords.signOut.isIn(label)) return []
  const isOther = fieldWords.otherMethod.isIn(label)
  if (pageWords.aside.isIn(label) && !isOther) return []
  if (pageWords.register.isIn(label) && !pageWords.signIn.isIn(label) && !fieldWords.withWords.isIn(label)) return []
  const type = mfaTypeOf(label)
  if (type === undefined) return []
  const isProof = isVerification(page)
  const isOfLogin = isProof || isLoginPage(page)
  if (!isOfLogin) return []
  return [{ kind: isProof ? 'mfa' : 'method', mfa_type: type, label, element: control }]
}

function isLoginPage({ reading, form }: Page): boolean {
  if (form) return true
  const heading = [reading.title, ...reading.headings].join(' | ')
  const path = URL.canParse(reading.url) ? new URL(reading.url).pathname : ''
  return (
    pageWords.signIn.isIn(heading) || fieldWords.passkey.isIn(heading) || /log-?in|sign-?in|auth|session/i.test(path)
  )
}

/** Accounts to choose from, on a page that says so. */
function findAccounts({ reading, form }: Page, controls: readonly InFrame<RawControl>[]): readonly KnownChoice[] {
  const heading = [reading.title, ...reading.headings, reading.text.slice(0, 400)].join(' | ')
  if (form || !fieldWords.chooseAccount.isIn(heading)) return []
  return controls
    .filter((control) => !isPeripheral(control) && control.label !== '')
    .filter(({ label }) => !isOfPage(label) || emailAddress.test(label) || fieldWords.useOtherAccount.isIn(label))
    .map((element) => ({ kind: 'account', label: element.label, element }))
}

const isOfPage = (label: string) =>
  pageWords.aside.isIn(label) ||
  pageWords.terms.isIn(label) ||
  pageWords.register.isIn(label) ||
  pageWords.signOut.isIn(label) ||
  pageWords.proceed.isAll(label) ||
  pageWords.cookies.isIn(label)

/** Lists of radio buttons: verification methods, or accounts. */
function findOfToggles(page: Page): readonly KnownChoice[] {
  const { reading, form } = page
  const radios = reading.toggles.filter(
    ({ type, label }) => type === 'radio' && label !== '' && label.length <= maxLabel,
  )
  if (radios.length === 0 || (form && !isVerification(page))) return []
  const heading = [reading.title, ...reading.headings, reading.text.slice(0, 400)].join(' | ')
  const isAccounts = fieldWords.chooseAccount.isIn(heading)
  return radios.flatMap((element): readonly KnownChoice[] => {
    const confirm = confirmOf(reading, element)
    const how = confirm && { confirm }
    if (isAccounts) return [{ kind: 'account', label: element.label, element, ...how }]
    const type = isVerification(page) ? mfaTypeOf(element.label) : undefined
    return type === undefined ? [] : [{ kind: 'mfa', mfa_type: type, label: element.label, element, ...how }]
  })
}

function confirmOf({ controls }: PageReading, { frame, group }: InFrame<RawToggle>): InFrame<RawControl> | undefined {
  const near = controls.filter((control) => control.frame === frame && !control.isOutOfSight && control.tag !== 'a')
  const says = (control: RawControl) => pageWords.proceed.isIn(control.label) || control.isSubmit
  return near.find((control) => control.group === group && says(control)) ?? near.find(says)
}

/** Buttons that accept terms, or allow a service to share the user's identity. */
function findTerms({ reading, form }: Page, controls: readonly InFrame<RawControl>[]): readonly KnownChoice[] {
  if (form) return []
  const heading = [reading.title, ...reading.headings].join(' | ')
  const start = `${heading} | ${reading.text.slice(0, 1_500)}`
  const buttons = controls.filter(
    (control) => !isPeripheral(control) && (control.tag !== 'a' || control.role === 'button'),
  )
  if (pageWords.terms.isIn(start)) {
    const accepting = buttons.filter(
      ({ label }) =>
        pageWords.acceptTerms.isIn(label) && !pageWords.refuseCookies.isIn(label) && !pageWords.cookies.isIn(label),
    )
    const isAbout =
      pageWords.terms.isIn(heading) ||
      accepting.some(({ label }) => pageWords.terms.isIn(label)) ||
      reading.toggles.some(isTermsToggle)
    if (isAbout && accepting[0]) {
      const [element] = accepting
      return [{ kind: 'terms', label: element.label, element, toggles: reading.toggles.filter(isTermsToggle) }]
    }
  }
  return buttons
    .filter(({ label }) => pageWords.allow.isIn(label) && label.length < 60)
    .slice(0, 3)
    .map((element) => ({ kind: 'other', label: element.label, element }))
}

export function isTermsToggle({ type, label, isChecked }: RawToggle): boolean {
  return type === 'checkbox' && !isChecked && (pageWords.terms.isIn(label) || pageWords.acceptTerms.isIn(label))
}

function withoutRepeats(choices: readonly KnownChoice[]): readonly KnownChoice[] {
  const seen = new Set<string>()
  return choices.filter(({ kind, label }) => {
    const key = `${kind} ${label}`
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew
  })
}
