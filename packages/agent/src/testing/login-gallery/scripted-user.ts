import type { LoginOutcome } from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type { loginRoutes } from '@berth/contract/agent/login/login-routes.ts'
import type { GalleryAgent } from './gallery-agent.ts'
import { code, password, type Site, user } from './site.ts'

const maxSteps = 12
const waitMilliseconds = 15_000

export interface LoginRun {
  readonly page: LoginPage
  /** All problems that occurred. */
  readonly problems: readonly string[]
  readonly steps: readonly string[]
}

/**
 * A user who logs in to a site of the gallery with the driver alone: without a model, and without knowledge of the
 * page.
 */
export async function logIn(started: GalleryAgent, site: Site): Promise<LoginRun> {
  const allowed_domains = [`${site.name}.test`, ...(site.allowed ?? [])]
  const ask = <Answer>(name: keyof typeof loginRoutes, body: object) =>
    started.ask<Answer>(name, { allowed_domains, ...body })
  const passwords = [...(site.passwords ?? [password])]
  const wishes = [...(site.choices ?? [])]
  const steps: string[] = []
  const problems: string[] = []
  let codes = 0
  let gate = site.gate
  const valueFor = ({ purpose, name }: LoginField): string | undefined => {
    if (gate) return gate[name]
    if (['username', 'email', 'phone'].includes(purpose)) return user
    if (purpose === 'password') return passwords.shift()
    if (purpose === 'other') return site.values?.other
    codes += 1
    return (codes > 1 ? site.values?.[`${purpose} again`] : undefined) ?? site.values?.[purpose] ?? code
  }
  let page = await ask<LoginPage>('openLogin', {
    domain: `${site.name}.test`,
    ...(site.loginUrl && { login_url: site.loginUrl }),
  })
  for (let step = 0; step < maxSteps; step++) {
    const { state, page_key, choices, fields } = page
    steps.push(
      `${state} ${page.url} [${fields.map(({ purpose }) => purpose)}] [${choices.map(({ kind, mfa_type, provider, label }) => `${kind}:${mfa_type ?? provider ?? ''} ${label}`)}] ${page.problem ?? ''} ${page.website_error ?? page.external_action_message ?? ''}`,
    )
    if (page.problem) problems.push(page.problem)
    if (state === 'external_action' && site.approve) {
      site.approve(started.gallery.memoryOf(site.name))
      page = await ask<LoginPage>('observeLogin', { page_key, wait_ms: waitMilliseconds })
      continue
    }
    const wish = choices.find((choice) => wishes[0] !== undefined && isWished(choice, wishes[0]))
    if (wish) {
      wishes.shift()
      page = (await ask<LoginOutcome>('chooseLogin', { page_key, ref: wish.ref })).page
      continue
    }
    if (state !== 'form') break
    const values = fields.flatMap((field) => {
      const value = valueFor(field)
      return value === undefined ? [] : [{ ref: field.ref, value }]
    })
    const hasPassword = fields.every(
      ({ purpose, ref }) => purpose !== 'password' || values.some((value) => value.ref === ref),
    )
    if (values.length === 0 || !hasPassword) break
    gate = undefined
    const outcome = await ask<LoginOutcome>('submitLogin', { page_key, values })
    if (outcome.outcome !== 'done') steps.push(outcome.outcome)
    page = outcome.page
    if (outcome.outcome !== 'done') {
      if (page.problem) problems.push(page.problem)
      break
    }
  }
  return { page, problems, steps }
}

function isWished({ kind, label, mfa_type, provider }: LoginChoice, wish: string): boolean {
  return [kind, `${kind}:${mfa_type}`, `${kind}:${provider}`].includes(wish) || label.includes(wish)
}
