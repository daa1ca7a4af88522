import * as pageWords from '../words/page-words.ts'
import { fieldsOf, isIdentifier, isOneTimeCode, type KnownField, purposeOf } from './fields.ts'
import { providerInLabel } from './providers.ts'
import type { InFrame, PageReading, RawControl, RawToggle } from './reading.ts'

/** The login fields of a page, and the control that submits them. */
export interface LoginForm {
  readonly fields: readonly KnownField[]
  readonly submit: InFrame<RawControl> | undefined
  readonly toggles: readonly InFrame<RawToggle>[]
  /** Confidence that this is a login: possible from 2, certain from 4. */
  readonly score: number
}

const loginAddress = /log-?in|sign-?in|logon|signon|auth|session|sso|identifier|account\/|verify|otp|mfa|2fa|challenge/i
const otherAddress = /subscribe|newsletter|search|register|sign-?up|contact|comment|checkout|join/i

/** The form of the page that is a login or a step of one; the most likely if there are several. */
export function findLoginForm(reading: PageReading): LoginForm | undefined {
  const around = textAround(reading)
  const boxes = fieldsOf(reading.fields)
  const groups = Map.groupBy(boxes, ([raw]) => `${raw?.frame}/${raw?.group}`)
  const forms = [...groups.values()].map((group) => {
    const raws = group.map(([raw]) => raw).filter((raw) => raw !== undefined)
    const fields = group.flatMap((fieldBoxes): readonly KnownField[] => {
      const [raw] = fieldBoxes
      if (!raw) return []
      // A field beside others that cannot be reached with the keyboard is a trap for programs.
      if (!raw.isTabbable && fieldBoxes.length === 1 && group.length > 1 && raw.type !== 'password') return []
      const beside = raws.filter((other) => other !== raw)
      return [{ raw, places: fieldBoxes.map(({ at }) => at), purpose: purposeOf(fieldBoxes, { beside, around }) }]
    })
    return formOf(reading, fields)
  })
  const likely = forms.filter(({ score, fields }) => score >= 2 && fields.length > 0)
  // Elements behind a dialog cannot be reached.
  const inDialog = likely.filter(({ fields }) => fields.some(isProofInDialog))
  return (inDialog.length > 0 ? inDialog : likely).toSorted((one, other) => other.score - one.score)[0]
}

function isProofInDialog({ raw, purpose }: KnownField): boolean {
  return raw.region === 'dialog' && (purpose === 'password' || isOneTimeCode(purpose))
}

/** The text of the page without the labels of its controls, which may mention other methods. */
function textAround({ text, controls, headings, title }: PageReading): string {
  const labels = new Set(controls.map(({ label }) => label))
  const lines = text.split('\n').filter((line) => !labels.has(line.trim()))
  return [title, ...headings, ...lines].join('\n').slice(0, 4_000)
}

function formOf(reading: PageReading, fields: readonly KnownField[]): LoginForm {
  const [first] = fields
  if (!first) return { fields, submit: undefined, toggles: [], score: 0 }
  const { frame, group, region } = first.raw
  const isSame = (item: { readonly frame: number; readonly group: number }) =>
    item.frame === frame && item.group === group
  const submit = submitOf(reading, fields)
  const purposes = fields.map(({ purpose }) => purpose)
  const count = (fits: (purpose: (typeof purposes)[0]) => boolean) => purposes.filter(fits).length
  const passwords = count((purpose) => purpose === 'password')
  const label = submit?.label ?? ''
  const isSignIn = pageWords.signIn.isIn(label)
  const heading = [reading.title, ...reading.headings].join(' | ')
  const tokens = fields.flatMap(({ raw }) => raw.autocomplete.split(' '))
  const score =
    (passwords === 1 ? 4 : 0) +
    (passwords > 1 ? -4 : 0) +
    (count(isIdentifier) > 0 ? 1 : 0) +
    (count(isOneTimeCode) > 0 ? 4 : 0) +
    (count((purpose) => purpose === 'captcha') > 0 ? 2 : 0) -
    6 * count((purpose) => purpose === 'new_password') -
    (fields.length > 5 ? 3 : 0) +
    (isSignIn ? 3 : 0) +
    (pageWords.register.isIn(label) && !isSignIn ? -4 : 0) +
    (pageWords.notLogin.isIn(`${label} ${fields.map(({ raw }) => `${raw.label} ${raw.placeholder}`).join(' ')}`)
      ? -5
      : 0) +
    (region === 'footer' ? -4 : 0) +
    (region === 'dialog' ? 2 : 0) +
    (pageWords.signIn.isIn(heading) ? 1 : 0) +
    (pageWords.proceed.isIn(label) ? 1 : 0) +
    (tokens.some((token) => ['username', 'webauthn', 'current-password'].includes(token)) ? 2 : 0) +
    addressScore(first.raw.formTarget) +
    (loginAddress.test(pathOf(reading.url)) ? 1 : 0)
  const needed = fields.filter(({ purpose }) => purpose !== 'new_password')
  return { fields: needed, submit, toggles: reading.toggles.filter(isSame), score }
}

function addressScore(url: string): number {
  const path = pathOf(url)
  return otherAddress.test(path) ? -4 : loginAddress.test(path) ? 1 : 0
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : ''
}

/** The control that submits the fields: one in their form, or the one that follows them. */
function submitOf({ controls }: PageReading, fields: readonly KnownField[]): InFrame<RawControl> | undefined {
  const [first] = fields
  const last = fields.at(-1)
  if (!first || !last) return undefined
  const { frame, group } = first.raw
  const around = controls.filter((control) => control.frame === frame && !control.isOutOfSight && isButton(control))
  const usable = around.filter(({ label }) => !isOtherWay(label))
  const ofForm = usable.filter((control) => control.group === group)
  const says = (control: RawControl) => pageWords.signIn.isIn(control.label) || pageWords.proceed.isIn(control.label)
  const below = (control: RawControl) => control.box.y >= last.raw.box.y - 20
  return (
    ofForm.find((control) => control.isSubmit && says(control)) ??
    ofForm.find((control) => control.isSubmit && below(control)) ??
    ofForm.find((control) => says(control) && below(control)) ??
    ofForm.find((control) => control.isSubmit) ??
    usable.find((control) => says(control) && below(control) && control.tag !== 'a') ??
    ofForm.findLast((control) => below(control) && control.tag === 'button')
  )
}

function isButton({ tag, role, href }: RawControl): boolean {
  return tag !== 'a' || role === 'button' || href === '' || /^javascript:|#$/.test(href)
}

function isOtherWay(label: string): boolean {
  const isAside = pageWords.aside.isIn(label) && !pageWords.signIn.isIn(label)
  const isService = providerInLabel(label) !== undefined && !pageWords.signIn.isAll(label)
  return isAside || isService || pageWords.skip.isAll(label) || pageWords.refuseCookies.isAll(label)
}
