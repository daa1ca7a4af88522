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
import { actions, columns, lists, values } from '../../strings/lists.ts'
import { age, toned, used } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'
import { newProviderConfigs } from './vault-provider-config.ts'

export const secretResources: readonly Resource[] = [
  defineResource({
    path: 'connections',
    ...lists.connections,
    guide: 'managed-auth',
    list: listAuthConnections,
    searchBy: 'query',
    columns: [
      { title: columns.site, value: ({ domain }) => domain },
      { title: columns.profile, value: ({ profile_name }) => profile_name },
      {
        title: columns.status,
        value: ({ status }) => toned(status === 'AUTHENTICATED' ? 'active' : values.needsLogin),
      },
      {
        title: columns.lastLogin,
        value: ({ flow_status }) => flow_status?.toLowerCase().replace('_', ' ') ?? values.never,
      },
      { title: columns.checked, value: ({ last_auth_check_at }) => used(last_auth_check_at) },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ domain, profile_name }) => `${domain} of ${profile_name}`,
    create: createAuthConnection,
    remove: deleteAuthConnection,
    actions: [
      {
        label: actions.logIn,
        endpoint: loginAuthConnection,
        messageOf: ({ hosted_url }: { readonly hosted_url: string }) => values.hostedLogin(hosted_url),
      },
    ],
  }),
  defineResource({
    path: 'credentials',
    ...lists.credentials,
    guide: 'credentials',
    list: listCredentials,
    columns: [
      { title: columns.name, value: ({ name }) => name },
      { title: columns.site, value: ({ domain }) => domain },
      { title: columns.oneTimeCodes, value: ({ has_totp_secret }) => (has_totp_secret ? values.yes : values.no) },
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
        label: actions.code,
        endpoint: getTotpCode,
        messageOf: ({ code }: { readonly code: string }) => code,
        isOffered: ({ has_totp_secret }) => has_totp_secret,
      },
    ],
  }),
  defineResource({
    path: 'providers',
    ...lists.providers,
    guide: 'credentials',
    list: listCredentialProviders,
    searchBy: 'query',
    columns: [
      { title: columns.name, value: ({ name }) => name },
      { title: columns.type, value: ({ provider_type }) => provider_type },
      { title: columns.enabled, value: ({ enabled }) => (enabled ? values.yes : values.no) },
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
        label: actions.test,
        endpoint: testCredentialProvider,
        messageOf: ({ success, error }: { readonly success: boolean; readonly error?: string }) =>
          success ? values.works : (error ?? values.worksNot),
      },
    ],
  }),
  defineResource({
    path: 'vaults',
    ...lists.vaults,
    guide: 'vaults',
    list: listVaults,
    searchBy: 'query',
    columns: [{ title: columns.name, value: ({ name }) => name }, age()],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: upsertVault,
    page: { label: actions.items, to: '/vaults/$vault' },
    remove: deleteVault,
  }),
  defineResource({
    path: 'vault-providers',
    ...lists['vault-providers'],
    guide: 'vaults',
    list: listVaultProviderConfigs,
    columns: [
      { title: columns.name, value: ({ name }) => name },
      { title: columns.provider, value: ({ provider }) => provider },
      { title: columns.client, value: ({ client_id }) => <code>{client_id}</code> },
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
