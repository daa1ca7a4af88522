import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { CredentialCreateRequest, CredentialUpdateRequest } from '@berth/contract/credentials/credential.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import { type TotpCode, type TotpSettings, totpCode, usualTotp } from '../../secrets/totp.ts'
import type { CredentialFilter, CredentialStore, StoredCredential } from './credential-store.ts'

interface CredentialServiceOptions {
  readonly store: CredentialStore
  readonly secrets: ProjectSecrets
  readonly clock: Clock
}

/** The encrypted part of a credential. An array of pairs, because objects do not preserve every order. */
interface CredentialSecrets {
  readonly values: readonly (readonly [key: string, value: string])[]
  readonly totpSecret?: string
}

/** A credential, with the current code if its secret was just set. */
export interface WrittenCredential {
  readonly credential: StoredCredential
  readonly totp: TotpCode | undefined
}

/** The values for a login page. */
export interface CredentialValues {
  readonly credential: StoredCredential
  readonly values: ReadonlyMap<string, string>
  /** Absent without a TOTP secret. */
  readonly totp: ((at: Date) => TotpCode) | undefined
}

/** The rules of credentials. Secrets leave this class only as one-time codes, and values only for logins. */
export class CredentialService {
  readonly #store: CredentialStore
  readonly #secrets: ProjectSecrets
  readonly #clock: Clock

  constructor({ store, secrets, clock }: CredentialServiceOptions) {
    this.#store = store
    this.#secrets = secrets
    this.#clock = clock
  }

  async create(projectId: ProjectId, request: CredentialCreateRequest): Promise<WrittenCredential> {
    const now = this.#clock.now()
    const id = newId('credential', now)
    const totpSecret = request.totp_secret || undefined
    const settings = settingsOf(request, totpSecret ? usualTotp : undefined)
    const secrets = { values: Object.entries(request.values), ...(totpSecret && { totpSecret }) }
    const credential = await this.#store.insert({
      id,
      project_id: projectId,
      name: request.name,
      domain: request.domain,
      sso_provider: request.sso_provider || null,
      created_at: now,
      updated_at: now,
      ...(await this.#columns(projectId, id, secrets, settings)),
    })
    return { credential, totp: totpSecret && settings ? totpCode(totpSecret, settings, now) : undefined }
  }

  async list(filter: CredentialFilter, page: PageRequest): Promise<Page<StoredCredential>> {
    return this.#store.list(filter, page)
  }

  async get(projectId: ProjectId, idOrName: string): Promise<StoredCredential> {
    const credential = await this.#store.find(projectId, idOrName)
    if (!credential) throw new BerthError('credential_not_found', { credential: idOrName })
    return credential
  }

  /** Undefined if no credential has this name. Does not accept an id. */
  async findByName(projectId: ProjectId, name: string): Promise<StoredCredential | undefined> {
    const credential = await this.#store.find(projectId, name)
    return credential?.name === name ? credential : undefined
  }

  /** Merges the change into the stored credential. Concurrent changes are applied one after another. */
  async update(projectId: ProjectId, idOrName: string, change: CredentialUpdateRequest): Promise<WrittenCredential> {
    // Each retry means that another update succeeded, so the loop ends.
    for (let key = idOrName; ; ) {
      const before = await this.get(projectId, key)
      // Uses the id from now on, because the credential may be renamed meanwhile.
      key = before.id
      const written = await this.#tryUpdate(before, change)
      if (written) return written
    }
  }

  async #tryUpdate(before: StoredCredential, change: CredentialUpdateRequest): Promise<WrittenCredential | undefined> {
    const now = this.#clock.now()
    const secrets = merged(await this.#open(before), change)
    const settings = settingsOf(change, secrets.totpSecret ? (before.totp ?? usualTotp) : undefined)
    const credential = await this.#store.update(before, {
      ...(change.name !== undefined && { name: change.name }),
      ...(change.sso_provider !== undefined && { sso_provider: change.sso_provider || null }),
      updated_at: now,
      ...(await this.#columns(before.project_id, before.id, secrets, settings)),
    })
    const isSet = change.totp_secret && settings
    return credential && { credential, totp: isSet ? totpCode(change.totp_secret as string, settings, now) : undefined }
  }

  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { id } = await this.get(projectId, idOrName)
    if (!(await this.#store.delete(id))) throw new BerthError('credential_not_found', { credential: idOrName })
  }

  async totpCode(projectId: ProjectId, idOrName: string): Promise<TotpCode> {
    const credential = await this.get(projectId, idOrName)
    const { totpSecret } = await this.#open(credential)
    if (!totpSecret || !credential.totp) throw new BerthError('totp_secret_not_found')
    return totpCode(totpSecret, credential.totp, this.#clock.now())
  }

  /** The values for entering them in a page. Undefined if the credential is gone. */
  async openForLogin(projectId: ProjectId, id: string): Promise<CredentialValues | undefined> {
    const credential = await this.#store.find(projectId, id)
    if (!credential) return undefined
    const { values, totpSecret } = await this.#open(credential)
    const { totp: settings } = credential
    const totp = totpSecret && settings ? (at: Date) => totpCode(totpSecret, settings, at) : undefined
    return { credential, values: new Map(values), totp }
  }

  async #open({ id, project_id, sealed_secrets }: StoredCredential): Promise<CredentialSecrets> {
    return JSON.parse(await this.#secrets.unseal(project_id, sealed_secrets, contextOf(id)))
  }

  async #columns(projectId: ProjectId, id: string, secrets: CredentialSecrets, settings: TotpSettings | undefined) {
    return {
      value_keys: JSON.stringify(secrets.values.map(([key]) => key)),
      totp: settings ? JSON.stringify(settings) : null,
      sealed_secrets: await this.#secrets.seal(projectId, JSON.stringify(secrets), contextOf(id)),
    }
  }
}

function contextOf(id: string): string {
  return `credential ${id}`
}

/** Removals are applied first, so that a key in both lists keeps its new value. */
function merged(before: CredentialSecrets, change: CredentialUpdateRequest): CredentialSecrets {
  const values = new Map(before.values)
  for (const key of change.remove_value_keys ?? []) values.delete(key)
  for (const [key, value] of Object.entries(change.values ?? {})) values.set(key, value)
  if (values.size > maxValues) {
    throw new BerthError('invalid_input', {
      reason: `values: must have at most ${maxValues} values, including existing ones.`,
    })
  }
  const totpSecret = change.totp_secret === undefined ? before.totpSecret : change.totp_secret || undefined
  return { values: [...values], ...(totpSecret !== undefined && { totpSecret }) }
}

const maxValues = 100

type TotpFields = Pick<CredentialUpdateRequest, 'totp_algorithm' | 'totp_digits' | 'totp_period'>

function settingsOf(
  { totp_algorithm: algorithm, totp_digits: digits, totp_period: period }: TotpFields,
  before: TotpSettings | undefined,
): TotpSettings | undefined {
  const change = { ...(algorithm && { algorithm }), ...(digits && { digits }), ...(period && { period }) }
  if (before) return { ...before, ...change }
  const [name] = Object.keys(change)
  if (name === undefined) return undefined
  throw new BerthError('invalid_input', { reason: `totp_${name}: needs a totp_secret.` })
}
