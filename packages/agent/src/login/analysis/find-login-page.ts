import * as pageWords from '../words/page-words.ts'
import type { LoginForm } from './login-form.ts'
import type { InFrame, PageReading, RawControl } from './reading.ts'

/** Common paths of login pages, the most common first. */
export const wellKnownPaths = [
  ...['/login', '/signin', '/sign-in', '/account/login', '/users/sign_in', '/auth/login', '/user/login'],
  ...['/accounts/login/', '/log-in', '/session/new', '/wp-login.php', '/my-account/', '/login.php', '/account'],
]

const loginAddress =
  /(^|[/._-])(log-?in|sign-?in|logon|signon|sso|anmelden|connexion|acceso|entrar|accedi|inloggen|logowanie|giris|vhod)([/._?-]|$)/i
const accountAddress = /(^|[/._-])(account|auth|member|my|session)([/._?-]|$)/i

export interface LoginLink {
  readonly control?: InFrame<RawControl>
  readonly href: string
  readonly score: number
}

/** Links and buttons that may lead to the login page, the most likely first. */
export function loginLinks(reading: PageReading): readonly LoginLink[] {
  const seen = reading.controls
    .filter(({ isDisabled }) => !isDisabled)
    .map((control) => ({
      control,
      href: control.href,
      score:
        scoreOf(control.label, control.href, control.marks) +
        (control.isOutOfSight ? -2 : 0) +
        (control.region === 'footer' ? -1 : 0),
    }))
  const hidden = reading.frames
    .flatMap(({ hiddenLinks }) => hiddenLinks)
    .map(({ label, href }) => ({ href, score: scoreOf(label, href, '') - 2 }))
  const links: readonly LoginLink[] = [...seen, ...hidden]
  const likely = links.filter(({ score }) => score >= 3).toSorted((one, other) => other.score - one.score)
  const known = new Set<string>()
  return likely.filter(({ href, control }) => {
    const key = href || (control?.selector ?? '')
    const isNew = !known.has(key)
    known.add(key)
    return isNew
  })
}

function scoreOf(label: string, href: string, marks: string): number {
  if (label.length > 60 || pageWords.signOut.isIn(label)) return 0
  const path = URL.canParse(href) ? `${new URL(href).hostname}${new URL(href).pathname}` : ''
  const isExact = pageWords.signIn.isAll(label)
  const says = pageWords.signIn.isIn(label)
  const registers = pageWords.register.isIn(label) && !isExact
  return (
    (isExact ? 6 : says ? 4 : 0) +
    (loginAddress.test(path) ? 3 : accountAddress.test(path) ? 1 : 0) +
    (pageWords.accountMenu.isIn(label) ? 2 : 0) +
    (label === '' && /log-?in|sign-?in|account|user/i.test(marks) ? 2 : 0) +
    (registers ? -5 : 0)
  )
}

/**
 * Whether it is a login form also on a page that was not asked to log in, such as a home page; not its search or
 * newsletter.
 */
export function isSurely(form: LoginForm | undefined): boolean {
  return form !== undefined && form.score >= 4
}

/**
 * Where to start for a domain. Special-use names (RFC 6761) have no public certificates, so plain HTTP is also tried
 * there; for others, passwords are sent unencrypted only if `login_url` says so.
 */
export function homePages(domain: string): readonly string[] {
  const bare = domain.trim().replace(/^https?:\/\//i, '')
  if (!URL.canParse(`https://${bare}/`)) return []
  const { host, hostname } = new URL(`https://${bare}/`)
  const isSpecial =
    /(^|\.)(localhost|test|example|invalid|internal|local|home\.arpa)$/.test(hostname) ||
    /^(127|10|192\.168)\./.test(hostname) ||
    hostname === '[::1]'
  const http = new URL(`http://${bare}/`).host
  return [`https://${host}/`, ...(isSpecial ? [`http://${http}/`] : [])]
}
