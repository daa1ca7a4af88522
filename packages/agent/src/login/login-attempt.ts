import { createHmac, randomBytes } from 'node:crypto'
import { AllowedHosts } from './allowed-hosts.ts'
import { type Cookie, sessionCookies } from './analysis/evidence.ts'
import type { Purpose } from './analysis/fields.ts'

/** What the driver remembers of the current login. */
export class LoginAttempt {
  /** The site to log in to. */
  readonly site: AllowedHosts
  /** Increases with each submit and choice, so that a page key is valid for one of them. */
  generation = 0
  hasProved = false
  wantsPasskey = false
  identifier: string | undefined
  submitted: readonly Purpose[] = []
  /** The host of the page with that form. */
  submittedTo: string | undefined
  textBefore: string | undefined
  documentsBefore: ReadonlySet<string> = new Set()
  loginPath: string | undefined
  netError: string | undefined
  /** The host whose 401 challenge was answered. */
  answeredHttp: string | undefined
  /** Dismissed obstacles with their counts, so that none is pressed repeatedly. */
  readonly pressed = new Map<string, number>()
  readonly #cookiesBefore: ReadonlyMap<string, string>

  constructor(domain: string, url: string | undefined, cookies: readonly Cookie[]) {
    const hosts = [domain, url].map((text) => hostOf(text ?? '')).filter((host) => host !== undefined)
    this.site = new AllowedHosts(hosts.map(siteOf))
    this.#cookiesBefore = new Map(cookies.map(({ name, domain: of, value }) => [`${of} ${name}`, value]))
  }

  /** Names of session cookies that are new or have changed. */
  newCookies(cookies: readonly Cookie[], url: string): readonly string[] {
    const changed = cookies.filter(({ name, domain, value }) => this.#cookiesBefore.get(`${domain} ${name}`) !== value)
    return [...sessionCookies(changed, url).keys()].slice(0, 50)
  }
}

function hostOf(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? text : `http://${text}`
  return URL.canParse(url) ? new URL(url).hostname : undefined
}

/** The host without a first label such as `www` or `login`. */
function siteOf(host: string): string {
  return host.replace(/^(www|login|signin|auth|account|accounts|id|sso|my|secure)\.(?=.+\..+)/, '')
}

/** Remembers which passwords were typed where, without storing the passwords. */
export class TypedPasswords {
  readonly #key = randomBytes(32)
  readonly #typed = new Set<string>()

  has(site: string, password: string): boolean {
    return this.#typed.has(this.#markOf(site, password))
  }

  note(site: string, password: string): void {
    this.#typed.add(this.#markOf(site, password))
  }

  #markOf(site: string, password: string): string {
    return createHmac('sha256', this.#key).update(`${site}\0${password}`).digest('base64')
  }
}
