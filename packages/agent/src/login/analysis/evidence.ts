import type { LoginEvidence } from '@berth/contract/agent/login/login-page.ts'
import * as pageWords from '../words/page-words.ts'
import { plainText } from '../words/word-list.ts'
import type { LoginForm } from './login-form.ts'
import type { PageReading } from './reading.ts'

/** Signs for and against being logged in, with their weights. */
const weights = {
  sign_out: 3,
  http_auth_accepted: 2,
  account_menu: 1,
  identifier_shown: 2,
  form_gone: 1,
  left_login_page: 1,
  cookie_set: 1,
  login_offer: -3,
  login_form: -5,
} as const
export type Sign = keyof typeof weights

const signOutAddress = /(log|sign)[-_]?(out|off)(?![a-z])/i
const maxLabel = 40

/** Signs in the page itself. */
export function signsOf(
  reading: PageReading,
  form: LoginForm | undefined,
  identifier: string | undefined,
): readonly Sign[] {
  const controls = reading.controls.filter(({ label }) => label.length <= maxLabel)
  const hidden = reading.frames.flatMap(({ hiddenLinks }) => hiddenLinks)
  const links = [...reading.controls, ...hidden]
  const hasSignOut =
    links.some(
      ({ label, href }) =>
        (label.length <= maxLabel && pageWords.signOut.isIn(label)) || signOutAddress.test(pathOf(href)),
    ) ||
    reading.controls.some(({ formTarget, formHasFields }) => !formHasFields && signOutAddress.test(pathOf(formTarget)))
  const offersLogin = controls.some(({ label }) => pageWords.signIn.isAll(label)) && !hasSignOut
  const isShown =
    identifier !== undefined && identifier.length > 2 && plainText(reading.text).includes(plainText(identifier))
  const signs: readonly (readonly [Sign, boolean])[] = [
    ['sign_out', hasSignOut],
    [
      'account_menu',
      controls.some(({ label }) => pageWords.accountMenu.isIn(label)) ||
        reading.headings.some((each) => pageWords.accountMenu.isIn(each)),
    ],
    ['identifier_shown', isShown],
    ['login_offer', offersLogin],
    ['login_form', form !== undefined],
  ]
  return signs.flatMap(([sign, holds]) => (holds ? [sign] : []))
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : ''
}

export function weightOf(signs: readonly Sign[]): number {
  return signs.reduce((sum, sign) => sum + weights[sign], 0)
}

/** The weight from which the user counts as logged in. */
export const enoughWeight = 2

export interface Cookie {
  readonly name: string
  readonly domain: string
  readonly httpOnly: boolean
  readonly value: string
}

const sessionName = /sess|sid|auth|token|login|user|account|remember|jwt|identity/i

/** Cookies of the site that look like session cookies, by name and domain. */
export function sessionCookies(cookies: readonly Cookie[], url: string): ReadonlyMap<string, string> {
  const host = URL.canParse(url) ? new URL(url).hostname : ''
  const ofSite = cookies.filter(({ domain }) => {
    const bare = domain.replace(/^\./, '')
    return host === bare || host.endsWith(`.${bare}`)
  })
  const likely = ofSite.filter(({ name, httpOnly }) => httpOnly || sessionName.test(name))
  return new Map(likely.map(({ name, value }) => [name, value]))
}

/** Whether the evidence indicates the same state as at the login. Undefined if it is inconclusive. */
export function compareEvidence(
  now: { readonly signs: readonly Sign[]; readonly url: string; readonly cookies: readonly string[] },
  before: LoginEvidence | undefined,
): boolean | undefined {
  const { signs } = now
  if (signs.includes('login_form')) return false
  if (signs.includes('sign_out')) return true
  if (signs.includes('login_offer')) return false
  const weight = weightOf(signs)
  if (!before) return weight >= enoughWeight ? true : undefined
  const kept = before.cookies.filter((name) => now.cookies.includes(name))
  const haveGone = before.cookies.length > 0 && kept.length === 0
  const isSamePlace = pathOf(now.url) === pathOf(before.url)
  const hadSignOut = before.signs.includes('sign_out')
  if (haveGone && !isSamePlace) return false
  if (hadSignOut && isSamePlace) return haveGone ? false : undefined
  if (isSamePlace && (kept.length > 0 || before.cookies.length === 0)) return true
  return weight >= enoughWeight ? true : undefined
}
