import type { LoginPage } from '@berth/contract/agent/login/login-page.ts'

/** A request as the page's handler sees it. */
export interface Visit {
  readonly host: string
  readonly path: string
  readonly query: URLSearchParams
  /** Fields of a submitted form. */
  readonly sent: URLSearchParams
  readonly method: string
  readonly isLoggedIn: boolean
  /** `name:password` of HTTP basic authentication. */
  readonly basic: string | undefined
  readonly authorization: string | undefined
  readonly cookies: ReadonlyMap<string, string>
  /** Kept between the requests of one site. */
  readonly memory: Map<string, unknown>
}

export interface Reply {
  readonly status?: number
  readonly html?: string
  readonly json?: object
  readonly location?: string
  readonly cookies?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  readonly delayMilliseconds?: number
}

type Handler = (visit: Visit) => Reply | string

/** A site of the gallery, and what its user does to log in. */
export interface Site {
  readonly name: string
  /** `host/path`, or a path of the site's own host. */
  readonly pages: Readonly<Record<string, Handler>>
  /** Absent: only the domain is given. */
  readonly loginUrl?: string
  /** In addition to the site's own. */
  readonly allowed?: readonly string[]
  /** Choices that the user presses, in this order: `kind`, `kind:type`, or a part of a label. */
  readonly choices?: readonly string[]
  /** Typed one after another; the last one is repeated. */
  readonly passwords?: readonly string[]
  readonly values?: Readonly<Record<string, string>>
  /** Credentials for a 401 challenge, if they differ from those of the form. */
  readonly gate?: Readonly<Record<string, string>>
  /** Whether the browser has cookies of an earlier login. */
  readonly isLoggedInBefore?: boolean
  /** The user acts on a device. */
  readonly approve?: (memory: Map<string, unknown>) => void
  readonly ends: LoginPage['state']
  readonly problem?: LoginPage['problem']
  /** Part of the site's message. */
  readonly says?: RegExp
  /** A problem that the driver must have reported earlier. */
  readonly toldBefore?: LoginPage['problem']
}

export const user = 'ann@example.com'
export const password = 'Correct-Horse-9!'
export const wrongPassword = 'Wrong-Donkey-8?'
export const code = '482913'
export const evil = 'evil.test'

export function page(body: string, { title = 'Example', lang = 'en', dir = 'ltr', head = '' } = {}): string {
  return `<!doctype html><html lang="${lang}" dir="${dir}"><head><meta charset="utf-8"><title>${title}</title>${head}</head><body>${body}</body></html>`
}

export const redirect = (location: string, ...cookies: string[]): Reply => ({ status: 303, location, cookies })
const session = 'session=s3cr3t-token; Path=/; HttpOnly'
export const welcome = (location = '/account'): Reply => redirect(location, session)

export const account = page(
  '<header><a href="/account">My account</a> <a href="/logout">Sign out</a></header><h1>Your orders</h1>',
  { title: 'Account' },
)

export const isRight = ({ sent }: Visit) => [...sent.values()].includes(user) && [...sent.values()].includes(password)

/** A home page with a link, a login page that submits a form to itself, and the protected page. */
export function plain(
  login: string | ((visit: Visit, error: string) => string),
  {
    home = page(
      '<nav><a href="/about">About</a><a href="/login">Log in</a></nav><h1>Welcome to the shop</h1><form action="/search"><input type="search" name="q" placeholder="Search"></form>',
    ),
    error = 'The password is incorrect.',
    after = (): Reply => welcome(),
  }: { readonly home?: string; readonly error?: string; readonly after?: (visit: Visit) => Reply } = {},
): Site['pages'] {
  const shown = (visit: Visit, message: string) =>
    typeof login === 'string'
      ? login.replace('<!--error-->', message && `<p role="alert">${message}</p>`)
      : login(visit, message)
  return {
    '/': ({ isLoggedIn }) => (isLoggedIn ? account : home),
    '/login': (visit) =>
      visit.method === 'GET' ? shown(visit, '') : isRight(visit) ? after(visit) : shown(visit, error),
    '/account': ({ isLoggedIn }) => (isLoggedIn ? account : redirect('/login')),
  }
}

/** The most common form, in the words of a language. */
export function form(
  words: { readonly user?: string; readonly password?: string; readonly submit?: string } = {},
): string {
  const { user: userLabel = 'Email', password: passwordLabel = 'Password', submit = 'Log in' } = words
  return `<form method="post" action="/login"><label for="u">${userLabel}</label><input id="u" name="user" type="text"><label for="p">${passwordLabel}</label><input id="p" name="password" type="password"><button type="submit">${submit}</button></form>`
}

/** A form for a code, which leads to the account if the code is right. */
export function codeStep(
  explanation: string,
  input: string,
  { submit = 'Verify', title = 'Verify it is you' } = {},
): Site['pages'] {
  const shown = (message: string) =>
    page(
      `<h1>${title}</h1><p>${explanation}</p>${message}<form method="post" action="/code">${input}<button>${submit}</button></form>`,
      { title },
    )
  return {
    '/code': ({ method, sent }) =>
      method === 'GET'
        ? shown('')
        : [...sent.values()].join('').includes(code)
          ? welcome()
          : shown('<p class="error">The code is not valid.</p>'),
  }
}
