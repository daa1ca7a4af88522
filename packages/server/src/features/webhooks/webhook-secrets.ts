import { randomBytes } from 'node:crypto'
import type { ProjectId, WebhookId } from '@berth/contract/common/ids.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { ClaimedDelivery } from './delivery-store.ts'

/** Standard Webhooks requires 24 to 64 bytes. */
const secretBytes = 32

/** A new secret in the form for its holder, and as it is stored. */
interface NewSecret {
  readonly secret: string
  readonly sealed: Buffer
}

/**
 * The secrets that sign deliveries. They are encrypted in the database, because their holder receives them only once.
 */
export class WebhookSecrets {
  readonly #secrets: ProjectSecrets

  constructor(secrets: ProjectSecrets) {
    this.#secrets = secrets
  }

  async create(projectId: ProjectId, id: WebhookId): Promise<NewSecret> {
    const secret = `whsec_${randomBytes(secretBytes).toString('base64')}`
    return { secret, sealed: await this.#secrets.seal(projectId, secret, contextOf(id)) }
  }

  /** The secret and, for a while after a rotation, the previous one. */
  async validAt(
    {
      project_id: projectId,
      webhook_id: id,
      sealed_secret,
      sealed_previous_secret,
      previous_secret_expires_at,
    }: ClaimedDelivery,
    now: Date,
  ): Promise<readonly string[]> {
    const isValid = previous_secret_expires_at && previous_secret_expires_at > now
    const sealed = [sealed_secret, ...(isValid && sealed_previous_secret ? [sealed_previous_secret] : [])]
    return Promise.all(sealed.map((one) => this.#secrets.unseal(projectId, one, contextOf(id))))
  }
}

const contextOf = (id: WebhookId) => `webhook ${id}`
