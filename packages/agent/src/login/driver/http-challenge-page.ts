import type { LoginField } from '@berth/contract/agent/login/login-page.ts'
import type { AllowedHosts } from '../allowed-hosts.ts'
import type { Judgement } from '../analysis/judge-page.ts'
import { type PageReading, pageReading } from '../analysis/reading.ts'
import type { HttpChallenge } from './http-auth.ts'

/** An empty reading: there is no document yet. */
export function challengeReading({ id, url }: HttpChallenge): PageReading {
  return { ...pageReading(id, []), url }
}

/** The challenge as a form with two fields. */
export function challengePage({ url, origin, realm, isRepeated }: HttpChallenge, allowed: AllowedHosts): Judgement {
  const denied = allowed.outside(origin)
  const common = { url: url.slice(0, 2_000), title: realm, choices: [] }
  const form = { fields: [], submit: undefined, toggles: [], score: 10 }
  const rest = { form, fields: [], choices: [], signs: ['login_form'] as const }
  if (denied !== undefined) {
    const page = { ...common, fields: [], state: 'error' as const, problem: 'domain_not_allowed' as const }
    return { ...rest, page: { ...page, denied_hosts: [denied] } }
  }
  const fields = [
    fieldOf('f1', { name: 'username', label: 'User name', purpose: 'username' }, isRepeated),
    fieldOf('f2', { name: 'password', label: 'Password', purpose: 'password' }, isRepeated),
  ]
  const problem = isRepeated && { problem: 'credentials_invalid' as const }
  return { ...rest, page: { ...common, fields, state: 'form', ...problem } }
}

function fieldOf(ref: string, named: Pick<LoginField, 'name' | 'label' | 'purpose'>, is_rejected: boolean): LoginField {
  return { ref, ...named, input_mode: 'text', required: true, is_rejected, selector: '' }
}
