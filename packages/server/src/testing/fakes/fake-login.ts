import type { CheckLoginReply, LoginOutcome, SubmitLoginRequest } from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'

/** A page of the site, and its reactions. */
export interface FakeLoginPage {
  readonly state: LoginPage['state']
  readonly fields?: readonly (Pick<LoginField, 'name' | 'purpose'> & Partial<LoginField>)[]
  readonly choices?: readonly (Pick<LoginChoice, 'kind' | 'label'> & Partial<LoginChoice>)[]
  readonly about?: Partial<LoginPage>
  /** The name of the page that follows when these values are submitted. */
  readonly submit?: (values: Readonly<Record<string, string>>) => string
  readonly choose?: (label: string) => string
}

export interface FakeLoginSite {
  readonly first: string
  readonly pages: Readonly<Record<string, FakeLoginPage>>
  readonly check?: () => CheckLoginReply['logged_in']
}

/** Simulates a browser on a login page. It behaves like the agent and records what is typed. */
export class FakeLogin {
  readonly #site: FakeLoginSite
  #at: string
  #serial = 0
  #used = false
  /** The typed values, in order. */
  readonly typed: { readonly name: string; readonly value: string }[] = []
  readonly chosen: string[] = []
  /** Runs before something is typed or chosen. */
  beforeAct: () => Promise<void> = async () => {}

  constructor(site: FakeLoginSite) {
    this.#site = site
    this.#at = site.first
  }

  /** Changes the page without an action, as when a person has confirmed elsewhere. */
  goTo(name: string): void {
    this.#at = name
    this.#serial += 1
    this.#used = false
  }

  page(): LoginPage {
    const { state, fields = [], choices = [], about } = this.#known
    return {
      page_key: this.#key,
      url: `https://site.test/${this.#at}`,
      title: this.#at,
      state,
      fields: fields.map((field, index) => ({
        ref: `f${index}`,
        label: field.name,
        input_mode: 'text',
        required: true,
        is_rejected: false,
        selector: `#${field.name}`,
        ...field,
      })),
      choices: choices.map((choice, index) => ({ ref: `c${index}`, selector: `//button[${index + 1}]`, ...choice })),
      ...(state === 'logged_in' && {
        evidence: { url: `https://site.test/${this.#at}`, signs: ['log out'], cookies: ['session'] },
      }),
      ...about,
    }
  }

  async submit({ page_key, values }: SubmitLoginRequest): Promise<LoginOutcome> {
    await this.beforeAct()
    if (page_key !== this.#key || this.#used) return { outcome: 'stale', typed: false, page: this.page() }
    this.#used = true
    const page = this.page()
    const named: Record<string, string> = {}
    for (const { ref, value } of values) {
      const field = page.fields.find((known) => known.ref === ref)
      if (!field) return { outcome: 'unknown_ref', typed: false, page }
      named[field.name] = value
      this.typed.push({ name: field.name, value })
    }
    this.goTo(this.#known.submit?.(named) ?? this.#at)
    return { outcome: 'done', typed: true, page: this.page() }
  }

  async choose(pageKey: string, ref: string): Promise<LoginOutcome> {
    await this.beforeAct()
    if (pageKey !== this.#key) return { outcome: 'stale', typed: false, page: this.page() }
    const choice = this.page().choices.find((known) => known.ref === ref)
    if (!choice) return { outcome: 'unknown_ref', typed: false, page: this.page() }
    this.chosen.push(choice.label)
    this.goTo(this.#known.choose?.(choice.label) ?? this.#at)
    return { outcome: 'done', typed: false, page: this.page() }
  }

  check(): CheckLoginReply {
    const evidence = { url: 'https://site.test/', signs: [], cookies: [] }
    return { logged_in: this.#site.check?.() ?? 'unknown', evidence }
  }

  get #known(): FakeLoginPage {
    const page = this.#site.pages[this.#at]
    if (!page) throw new Error(`the fake site has no page ${this.#at}`)
    return page
  }

  get #key(): string {
    return `${this.#at} ${this.#serial}`
  }
}
