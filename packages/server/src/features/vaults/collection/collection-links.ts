import { createHash, randomBytes } from 'node:crypto'
import type { ProjectId, VaultItemId } from '@berth/contract/common/ids.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import type { NewCollection, StoredCollection } from '../items/item-store.ts'

const lifeMilliseconds = 30 * 60 * 1000
const tokenBytes = 32

/** The path of the form. Its last segment is the secret that grants access. */
export const collectionPath = '/collect'

export function hashCollectionToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** Creates the links with which people enter values. The database stores their tokens only as hashes and encrypted. */
export class CollectionLinks {
  readonly #secrets: ProjectSecrets

  constructor(secrets: ProjectSecrets) {
    this.#secrets = secrets
  }

  async make(projectId: ProjectId, itemId: VaultItemId, now: Date): Promise<NewCollection> {
    const token = randomBytes(tokenBytes).toString('base64url')
    return {
      token_hash: hashCollectionToken(token),
      sealed_token: await this.#secrets.seal(projectId, token, contextOf(itemId)),
      expires_at: new Date(now.getTime() + lifeMilliseconds),
    }
  }

  async tokenOf(projectId: ProjectId, { item_id, sealed_token }: StoredCollection): Promise<string> {
    return this.#secrets.unseal(projectId, sealed_token, contextOf(item_id))
  }
}

function contextOf(itemId: VaultItemId): string {
  return `collection of vault item ${itemId}`
}
