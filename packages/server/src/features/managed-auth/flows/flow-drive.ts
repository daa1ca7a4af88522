import {
  chooseLogin,
  type LoginOutcome,
  observeLogin,
  openLogin,
  submitLogin,
} from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { AuthBrowsers } from '../auth-browsers.ts'
import type { StoredConnection } from '../connection-store.ts'
import type { StoredLogin } from '../stored-login/stored-login.ts'
import { allowedFor } from './allowed-domains.ts'
import type { StoredFlow } from './flow-store.ts'

const openMilliseconds = 45_000
const observeMilliseconds = 20_000
const actMilliseconds = 40_000
const watchMilliseconds = 3_000

interface FlowDriveOptions {
  readonly browsers: AuthBrowsers
  readonly connection: StoredConnection
  readonly sessionId: SessionId
  readonly signal: AbortSignal
}

/** The browser of a running flow, and the state of its page that is not stored. */
export class FlowDrive {
  readonly sessionId: SessionId
  readonly #options: FlowDriveOptions
  /** The page after the last action. When absent, it must be observed. */
  page: LoginPage | undefined
  /** The stored values for the login, after they were read. */
  storedLogin: Promise<StoredLogin | undefined> | undefined
  /** How often the page was observed since the last action. */
  looks = 0
  /** When to observe the page next while a person is asked. */
  noticeAt = 0
  /** The number of questions to a model. */
  questions = 0
  /** How often the page did not accept what was typed. */
  refusals = 0

  constructor(options: FlowDriveOptions) {
    this.#options = options
    this.sessionId = options.sessionId
  }

  async open(flow: StoredFlow): Promise<LoginPage> {
    const { connection, browsers, signal } = this.#options
    const { domain, login_url } = connection
    const body = {
      domain,
      ...(login_url && { login_url }),
      allowed_domains: this.#allowed(flow),
      timeout_ms: openMilliseconds,
    }
    this.page = await browsers.ask(this.sessionId, openLogin, body, signal)
    return this.page
  }

  /** Returns the page, or waits until it differs from `than`. */
  async observe(flow: StoredFlow, than?: string): Promise<LoginPage> {
    const { browsers, signal } = this.#options
    const body = {
      allowed_domains: this.#allowed(flow),
      ...(than !== undefined && { page_key: than, wait_ms: watchMilliseconds }),
      timeout_ms: observeMilliseconds,
    }
    return browsers.ask(this.sessionId, observeLogin, body, signal)
  }

  async type(
    flow: StoredFlow,
    page: LoginPage,
    values: readonly (readonly [field: Pick<LoginField, 'ref'>, value: string])[],
    isNewInput: boolean,
  ): Promise<LoginOutcome> {
    const { browsers, signal } = this.#options
    const body = {
      allowed_domains: this.#allowed(flow),
      page_key: page.page_key,
      values: values.map(([{ ref }, value]) => ({ ref, value })),
      is_new_input: isNewInput,
      timeout_ms: actMilliseconds,
    }
    return browsers.ask(this.sessionId, submitLogin, body, signal)
  }

  async choose(flow: StoredFlow, page: LoginPage, ref: string): Promise<LoginOutcome> {
    const { browsers, signal } = this.#options
    const body = { allowed_domains: this.#allowed(flow), page_key: page.page_key, ref, timeout_ms: actMilliseconds }
    return browsers.ask(this.sessionId, chooseLogin, body, signal)
  }

  #allowed(flow: StoredFlow): string[] {
    return allowedFor(this.#options.connection, flow.led_to)
  }
}
