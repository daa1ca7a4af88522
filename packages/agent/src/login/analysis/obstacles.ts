import * as fieldWords from '../words/field-words.ts'
import * as pageWords from '../words/page-words.ts'
import { isIdentifier, isOneTimeCode } from './fields.ts'
import type { LoginForm } from './login-form.ts'
import type { InFrame, PageReading, RawControl } from './reading.ts'

/** Something in front of the login, and the button that anybody would press. */
export interface Obstacle {
  readonly kind: 'cookies' | 'stay_in' | 'offer' | 'passkey'
  readonly press: InFrame<RawControl>
}

const maxLabel = 60

/** A cookie notice: refused if possible, otherwise accepted. */
export function cookieNotice({ controls }: PageReading): Obstacle | undefined {
  const ofNotice = controls.filter(
    (control) => isPressable(control) && pageWords.cookies.isIn(`${control.context} ${control.label}`),
  )
  const press =
    ofNotice.find(({ label }) => pageWords.refuseCookies.isAll(label)) ??
    ofNotice.find(({ label, formHasFields }) => pageWords.acceptCookies.isAll(label) && !formHasFields)
  return press && { kind: 'cookies', press }
}

/** Buttons, and links that stay on the page. */
function isPressable({ isOutOfSight, label, tag, href, isDisabled }: RawControl): boolean {
  if (isOutOfSight || isDisabled || label === '' || label.length > maxLabel) return false
  return tag !== 'a' || href === '' || href.startsWith('javascript:') || href.includes('#')
}

/** A question or an offer after a login. `hasProved`: a password or a code was accepted before. */
export function questionAfterLogin(
  reading: PageReading,
  form: LoginForm | undefined,
  hasProved: boolean,
): Obstacle | undefined {
  const needsInput = form?.fields.some(({ purpose }) => purpose === 'password' || isOneTimeCode(purpose)) ?? false
  if (!hasProved || needsInput) return undefined
  const pressable = reading.controls.filter(
    (control) => !control.isOutOfSight && !control.isDisabled && control.label.length <= maxLabel,
  )
  const heading = [reading.title, ...reading.headings].join(' | ')
  if (pageWords.stayIn.isIn(`${heading} ${reading.text.slice(0, 600)}`)) {
    const agreeing = pressable.find(({ label }) => pageWords.yes.isAll(label))
    if (agreeing) return { kind: 'stay_in', press: agreeing }
  }
  const asksWhoItIs = form?.fields.some(({ purpose }) => isIdentifier(purpose) && purpose !== 'phone') ?? false
  const declining = pressable.find((control) => pageWords.skip.isAll(control.label) && control.region !== 'footer')
  return declining && !asksWhoItIs ? { kind: 'offer', press: declining } : undefined
}

/** A page that asks for a passkey first, and offers another method. */
export function passkeyPrompt(reading: PageReading, form: LoginForm | undefined): Obstacle | undefined {
  const heading = [reading.title, ...reading.headings].join(' | ')
  if (form || !fieldWords.passkey.isIn(`${heading} ${reading.text.slice(0, 300)}`)) return undefined
  const usable = reading.controls.filter(
    ({ isOutOfSight, isDisabled, label, region }) =>
      !isOutOfSight && !isDisabled && label.length <= maxLabel && region !== 'footer',
  )
  const byPassword = usable.find(({ label }) => fieldWords.password.isIn(label) && !pageWords.aside.isIn(label))
  const ways = [fieldWords.sms, fieldWords.totp, fieldWords.push, fieldWords.email]
  const isPicker = usable.filter(({ label }) => ways.some((words) => words.isIn(label))).length > 1
  const another = isPicker ? undefined : usable.find(({ label }) => fieldWords.otherMethod.isIn(label))
  const press = byPassword ?? another
  return press && { kind: 'passkey', press }
}
