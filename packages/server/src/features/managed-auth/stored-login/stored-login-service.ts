import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { mayPass } from '../../../database/database.ts'
import { readTotp } from '../../../secrets/totp.ts'
import type { CredentialProviderService } from '../../credential-providers/credential-provider-service.ts'
import type { CredentialService } from '../../credentials/credential-service.ts'
import type { ConnectionStore, StoredConnection } from '../connection-store.ts'
import type { Inputs } from '../flows/flow-secrets.ts'
import type { StoredLogin } from './stored-login.ts'

const maxNameTries = 5

interface StoredLoginServiceOptions {
  readonly connections: ConnectionStore
  readonly credentials: CredentialService
  readonly providers: CredentialProviderService
  readonly clock: Clock
}

/** Reads the stored values for the login of a connection, and stores the values of a successful login. */
export class StoredLoginService {
  readonly #options: StoredLoginServiceOptions

  constructor(options: StoredLoginServiceOptions) {
    this.#options = options
  }

  /** Undefined when nothing is stored. */
  async open(connection: StoredConnection): Promise<StoredLogin | undefined> {
    if (connection.credential_id) return this.#openCredential(connection, connection.credential_id)
    return this.#openProvider(connection)
  }

  async #openCredential({ project_id }: StoredConnection, id: string): Promise<StoredLogin | undefined> {
    const open = await this.#options.credentials.openForLogin(project_id, id)
    if (!open) return undefined
    const { credential, values, totp } = open
    return { version: versionOf(id, credential.version), values, ssoProvider: credential.sso_provider, totp }
  }

  async #openProvider(connection: StoredConnection): Promise<StoredLogin | undefined> {
    const { credential_provider_id: id, credential_path: path, credential_auto: isAuto } = connection
    if (!id || (path === null && !isAuto)) return undefined
    const wanted = path === null ? { domain: connection.domain } : { path }
    const login = await this.#options.providers.readLogin(connection.organization_id, id, wanted)
    if (!login) return undefined
    const totp = login.totpSecret === undefined ? undefined : readTotp(login.totpSecret)
    return { version: id, values: login.values, ssoProvider: null, totp }
  }

  /** Used for logins that a person can complete without the provider. */
  readonly ignoreProvider = (error: unknown): undefined => {
    if (!(error instanceof BerthError) || mayPass(error)) throw error
  }

  /** Records that the site has rejected the stored values: they are not tried again until they change. */
  async noteRefusal({ id }: StoredConnection, { version }: StoredLogin): Promise<void> {
    await this.#options.connections.note(id, { refused_credential: version })
  }

  /**
   * Stores the entered values in the credential of the connection or in a new one. Returns whether all are stored.
   * Values of a provider are not stored here.
   */
  async keep(connection: StoredConnection, inputs: Inputs): Promise<boolean> {
    const { credentials, connections } = this.#options
    const { id, project_id, domain, credential_id, credential_provider_id, save_credentials } = connection
    if (inputs.size === 0) return true
    if (!save_credentials || credential_provider_id) return false
    const values = Object.fromEntries(inputs)
    if (credential_id) {
      await credentials.update(project_id, credential_id, { values })
      return true
    }
    for (let index = 1; ; index += 1) {
      const name = [connection.profile_name, domain, ...(index > 1 ? [index] : [])].join(' ').slice(0, 255)
      try {
        const { credential } = await credentials.create(project_id, { name, domain, values })
        await connections.note(id, { credential_id: credential.id })
        return true
      } catch (error) {
        const isTaken = error instanceof BerthError && error.code === 'credential_name_taken'
        if (!isTaken || index >= maxNameTries) throw error
      }
    }
  }
}

export function versionOf(credentialId: string, version: number): string {
  return `${credentialId} ${version}`
}
