import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { TotpCode } from '../../../secrets/totp.ts'
import type { CredentialService } from '../../credentials/credential-service.ts'
import type { ConnectionStore } from '../connection-store.ts'
import { isRestricted } from '../flows/allowed-domains.ts'

type SavedLogin =
  | {
      readonly status: 'ready'
      readonly values: ReadonlyMap<string, string>
      readonly totp: ((at: Date) => TotpCode) | undefined
      readonly allowedDomains: readonly string[] | null
    }
  | {
      readonly status: 'unavailable'
      readonly reason: 'connection_not_found' | 'no_credential' | 'external_credential'
    }

/** The credential of a connection, for vaults that fill it in, whether or not the connection is logged in. */
export class SavedLogins {
  readonly #connections: ConnectionStore
  readonly #credentials: CredentialService

  constructor(connections: ConnectionStore, credentials: CredentialService) {
    this.#connections = connections
    this.#credentials = credentials
  }

  async find(projectId: ProjectId, connectionId: string): Promise<SavedLogin> {
    const connection = await this.#connections.find(projectId, connectionId)
    if (!connection) return { status: 'unavailable', reason: 'connection_not_found' }
    if (connection.credential_provider_id) return { status: 'unavailable', reason: 'external_credential' }
    const { credential_id: id, domain, allowed_domains: allowed } = connection
    const open = id === null ? undefined : await this.#credentials.openForLogin(projectId, id)
    if (!open) return { status: 'unavailable', reason: 'no_credential' }
    const allowedDomains = isRestricted(connection) ? [domain, ...(allowed ?? [])] : null
    return { status: 'ready', values: open.values, totp: open.totp, allowedDomains }
  }
}
