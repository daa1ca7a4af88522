import { randomBytes } from 'node:crypto'
import type { Transform } from 'node:stream'
import type { OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { deriveKey } from '../access/secrets.ts'
import type { Database } from '../database/database.ts'
import { seal, sealing, unseal, unsealing } from './seal.ts'

const keyBytes = 32
const maxRememberedKeys = 1_000

/**
 * Encrypts what must not be readable in the database or in blobs, with a separate key for each organization. `context`
 * states what is encrypted and for which row: `proxy prx…`.
 */
export class ProjectSecrets {
  readonly #database: Database
  readonly #masterKey: Uint8Array
  readonly #keys = new LoadingCache<ProjectId, Uint8Array>({ maxEntries: maxRememberedKeys })

  constructor(database: Database, masterKey: string) {
    this.#database = database
    this.#masterKey = deriveKey(masterKey, 'organization keys')
  }

  async seal(projectId: ProjectId, text: string, context: string): Promise<Buffer> {
    return seal(await this.#keyOf(projectId), Buffer.from(text), context)
  }

  async unseal(projectId: ProjectId, sealed: Uint8Array, context: string): Promise<string> {
    return unseal(await this.#keyOf(projectId), sealed, context).toString()
  }

  /** Like `seal`, for values that belong to no project. */
  async sealForOrganization(organizationId: OrganizationId, text: string, context: string): Promise<Buffer> {
    return seal(await this.#organizationKey(organizationId), Buffer.from(text), context)
  }

  async unsealForOrganization(organizationId: OrganizationId, sealed: Uint8Array, context: string): Promise<string> {
    return unseal(await this.#organizationKey(organizationId), sealed, context).toString()
  }

  async sealing(projectId: ProjectId, context: string): Promise<Transform> {
    return sealing(await this.#keyOf(projectId), context)
  }

  /** Discard its output unless it ends without an error. */
  async unsealing(projectId: ProjectId, context: string): Promise<Transform> {
    return unsealing(await this.#keyOf(projectId), context)
  }

  #keyOf(projectId: ProjectId): Promise<Uint8Array> {
    return this.#keys.get(projectId, () => this.#readKey(projectId))
  }

  async #readKey(projectId: ProjectId): Promise<Uint8Array> {
    const { organization_id: organizationId } = await this.#database
      .selectFrom('projects')
      .select('organization_id')
      .where('id', '=', projectId)
      .executeTakeFirstOrThrow()
    return this.#organizationKey(organizationId)
  }

  async #organizationKey(organizationId: OrganizationId): Promise<Uint8Array> {
    const context = `organization ${organizationId}`
    const sealed = await this.#sealedKey(organizationId, seal(this.#masterKey, randomBytes(keyBytes), context))
    return unseal(this.#masterKey, sealed, context)
  }

  /** One statement: if two processes create the first key, both get the one that was stored. */
  async #sealedKey(organizationId: OrganizationId, made: Buffer): Promise<Buffer> {
    const { sealed_key } = await this.#database
      .updateTable('organizations')
      .set(({ fn, ref, val }) => ({ sealed_key: fn.coalesce(ref('sealed_key'), val(made)) }))
      .where('id', '=', organizationId)
      .returning('sealed_key')
      .executeTakeFirstOrThrow()
    return sealed_key as Buffer
  }
}
