import {
  createCredentialProvider,
  deleteCredentialProvider,
  listCredentialProviders,
  testCredentialProvider,
  updateCredentialProvider,
} from '@berth/contract/credential-providers/credential-provider-endpoints.ts'
import {
  createCredential,
  deleteCredential,
  getTotpCode,
  listCredentials,
  updateCredential,
} from '@berth/contract/credentials/credential-endpoints.ts'
import {
  createAuthConnection,
  deleteAuthConnection,
  listAuthConnections,
  loginAuthConnection,
} from '@berth/contract/managed-auth/connection-endpoints.ts'
import {
  deleteVaultProviderConfig,
  listVaultProviderConfigs,
  updateVaultProviderConfig,
} from '@berth/contract/vaults/provider-config-endpoints.ts'
import { deleteVault, listVaults, upsertVault } from '@berth/contract/vaults/vault-endpoints.ts'
import { age, toned, used } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'
import { newProviderConfigs } from './vault-provider-config.ts'

export const secretResources: readonly Resource[] = [
  defineResource({
    path: 'connections',
    title: 'Logins',
    one: 'connection',
    empty: 'No connection. A connection keeps a profile logged in to a site.',
    guide: 'managed-auth',
    list: listAuthConnections,
    searchBy: 'query',
    columns: [
      { title: 'Site', value: ({ domain }) => domain },
      { title: 'Profile', value: ({ profile_name }) => profile_name },
      { title: 'Status', value: ({ status }) => toned(status === 'AUTHENTICATED' ? 'active' : 'needs a login') },
      { title: 'Last login', value: ({ flow_status }) => flow_status?.toLowerCase().replace('_', ' ') ?? 'never' },
      { title: 'Checked', value: ({ last_auth_check_at }) => used(last_auth_check_at) },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ domain, profile_name }) => `${domain} of ${profile_name}`,
    create: createAuthConnection,
    remove: deleteAuthConnection,
    actions: [
      {
        label: 'Log in',
        endpoint: loginAuthConnection,
        messageOf: ({ hosted_url }: { readonly hosted_url: string }) =>
          `${hosted_url}\n\nA person finishes the login there.`,
      },
    ],
  }),
  defineResource({
    path: 'credentials',
    title: 'Credentials',
    one: 'credential',
    empty: 'No credential.',
    guide: 'credentials',
    list: listCredentials,
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Site', value: ({ domain }) => domain },
      { title: 'One-time codes', value: ({ has_totp_secret }) => (has_totp_secret ? 'yes' : 'no') },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createCredential,
    update: updateCredential,
    initial: ({ name }) => ({ name }),
    remove: deleteCredential,
    actions: [
      {
        label: 'Code',
        endpoint: getTotpCode,
        messageOf: ({ code }: { readonly code: string }) => code,
        isOffered: ({ has_totp_secret }) => has_totp_secret,
      },
    ],
  }),
  defineResource({
    path: 'providers',
    title: 'Credential providers',
    one: 'provider',
    empty: 'No provider.',
    guide: 'credentials',
    list: listCredentialProviders,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Type', value: ({ provider_type }) => provider_type },
      { title: 'Enabled', value: ({ enabled }) => (enabled ? 'yes' : 'no') },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createCredentialProvider,
    update: updateCredentialProvider,
    initial: ({ name, enabled, priority }) => ({ name, enabled, priority }),
    remove: deleteCredentialProvider,
    actions: [
      {
        label: 'Test',
        endpoint: testCredentialProvider,
        messageOf: ({ success, error }: { readonly success: boolean; readonly error?: string }) =>
          success ? 'It works.' : (error ?? 'It does not work.'),
      },
    ],
  }),
  defineResource({
    path: 'vaults',
    title: 'Vaults',
    one: 'vault',
    empty: 'No vault.',
    guide: 'vaults',
    list: listVaults,
    searchBy: 'query',
    columns: [{ title: 'Name', value: ({ name }) => name }, age()],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: upsertVault,
    page: { label: 'Items', to: '/vaults/$vault' },
    remove: deleteVault,
  }),
  defineResource({
    path: 'vault-providers',
    title: 'Vault provider configs',
    one: 'vault provider config',
    empty: 'No config of a payment provider.',
    guide: 'vaults',
    list: listVaultProviderConfigs,
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Provider', value: ({ provider }) => provider },
      { title: 'Client', value: ({ client_id }) => <code>{client_id}</code> },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    otherCreates: newProviderConfigs,
    update: updateVaultProviderConfig,
    initial: ({ name }) => ({ name }),
    remove: deleteVaultProviderConfig,
  }),
]
