import {
  createApiKey,
  deleteApiKey,
  listApiKeys,
  rotateApiKey,
  updateApiKey,
} from '@berth/contract/api-keys/api-key-endpoints.ts'
import {
  createDeployment,
  createInvocation,
  deleteDeployment,
  followDeployment,
  followInvocation,
  listApps,
  listDeployments,
  listInvocations,
  updateInvocation,
} from '@berth/contract/apps/app-endpoints.ts'
import { listAuditLogs } from '@berth/contract/audit/audit-endpoints.ts'
import {
  createBrowserPool,
  deleteBrowserPool,
  flushBrowserPool,
  listBrowserPools,
  updateBrowserPool,
} from '@berth/contract/browser-pools/browser-pool-endpoints.ts'
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
  deleteExtension,
  downloadExtension,
  listExtensions,
  uploadExtension,
} from '@berth/contract/extensions/extension-endpoints.ts'
import {
  createAuthConnection,
  deleteAuthConnection,
  listAuthConnections,
  loginAuthConnection,
} from '@berth/contract/managed-auth/connection-endpoints.ts'
import {
  createProfile,
  deleteProfile,
  downloadProfile,
  listProfiles,
  updateProfile,
} from '@berth/contract/profiles/profile-endpoints.ts'
import {
  createProject,
  deleteProject,
  getProjectLimits,
  listProjects,
  updateProject,
  updateProjectLimits,
} from '@berth/contract/projects/project-endpoints.ts'
import {
  checkProxy,
  createProxy,
  deleteProxy,
  listProxies,
  updateProxy,
} from '@berth/contract/proxies/proxy-endpoints.ts'
import {
  createOtlpDestination,
  deleteOtlpDestination,
  listOtlpDestinations,
  updateOtlpDestination,
} from '@berth/contract/telemetry/otlp-destination-endpoints.ts'
import { deleteVault, listVaults, upsertVault } from '@berth/contract/vaults/vault-endpoints.ts'
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '@berth/contract/webhooks/webhook-endpoints.ts'
import { Badge } from '../../components/feedback.tsx'
import { Age, bytesText, timeText } from '../../components/format.tsx'
import { defineResource, type Resource } from './resource.ts'
import { addFromStore, StoreExtension } from './store-extension.ts'

const auditDays = 30
const dayMilliseconds = 24 * 60 * 60 * 1000

const age = <Item extends { readonly created_at: string }>(title = 'Age') => ({
  title,
  value: ({ created_at }: Item) => <Age since={created_at} />,
})
const used = (at: string | null | undefined) => (at ? <Age since={at} /> : 'never')
const toned = (text: string) => {
  const good = ['available', 'running', 'succeeded', 'active']
  const bad = ['unavailable', 'failed']
  return <Badge tone={good.includes(text) ? 'good' : bad.includes(text) ? 'bad' : 'plain'}>{text}</Badge>
}

/** Each page of the menu behind the sessions, but for those with pages of their own. A new resource is one more entry. */
export const resources: readonly Resource[] = [
  defineResource({
    path: 'profiles',
    title: 'Profiles',
    one: 'profile',
    empty: 'No profile. A profile keeps cookies and logins from one session to the next.',
    list: listProfiles,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name, id }) => name ?? id },
      { title: 'Last used', value: ({ last_used_at }) => used(last_used_at) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name, id }) => name ?? id,
    create: createProfile,
    update: updateProfile,
    initial: ({ name }) => ({ name: name ?? '' }),
    remove: deleteProfile,
    file: { endpoint: downloadProfile, name: ({ id }) => `${id}.tar.zst` },
  }),
  defineResource({
    path: 'proxies',
    title: 'Proxies',
    one: 'proxy',
    empty: 'No proxy. Sessions reach the network directly.',
    list: listProxies,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name, id }) => name ?? id },
      { title: 'Type', value: ({ type, protocol }) => `${type}, ${protocol}` },
      {
        title: 'Exit',
        value: ({ config, ip_address }) =>
          ip_address ?? (config.host ? `${config.host}:${config.port}` : config.country),
      },
      { title: 'Status', value: ({ status }) => status && toned(status) },
      { title: 'Checked', value: ({ last_checked }) => used(last_checked) },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name, id }) => name ?? id,
    create: createProxy,
    update: updateProxy,
    initial: ({ name }) => ({ name: name ?? '' }),
    remove: deleteProxy,
    actions: [
      {
        label: 'Check',
        endpoint: checkProxy,
        body: () => ({}),
        told: ({ status, ip_address, latency_ms }: Record<string, string>) =>
          [status, ip_address, latency_ms && `${latency_ms} ms`].filter(Boolean).join(', '),
      },
    ],
  }),
  defineResource({
    path: 'extensions',
    title: 'Extensions',
    one: 'extension',
    empty: 'No extension. Upload a zip archive with a manifest.json, or add one by its page in the Chrome Web Store.',
    list: listExtensions,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name, id }) => name ?? id },
      { title: 'Size', value: ({ size_bytes }) => bytesText(size_bytes) },
      { title: 'Last used', value: ({ last_used_at }) => used(last_used_at) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name, id }) => name ?? id,
    create: uploadExtension,
    otherCreates: [{ label: 'Add from the store', schema: StoreExtension, make: addFromStore }],
    remove: deleteExtension,
    file: { endpoint: downloadExtension, name: ({ name, id }) => `${name ?? id}.zip` },
  }),
  defineResource({
    path: 'pools',
    title: 'Pools',
    one: 'pool',
    empty: 'No pool. A pool keeps browsers ready.',
    list: listBrowserPools,
    columns: [
      { title: 'Name', value: ({ name, id }) => name ?? id },
      { title: 'Size', value: ({ browser_pool_config: { size } }) => size },
      { title: 'Ready', value: ({ available_count }) => available_count },
      { title: 'Leased', value: ({ acquired_count }) => acquired_count },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name, id }) => name ?? id,
    create: createBrowserPool,
    update: updateBrowserPool,
    initial: ({ browser_pool_config: { size, fill_rate_per_minute, timeout_seconds } }) => ({
      size,
      fill_rate_per_minute,
      timeout_seconds,
    }),
    remove: deleteBrowserPool,
    actions: [{ label: 'Flush', endpoint: flushBrowserPool, told: () => 'Its ready browsers are being replaced.' }],
  }),
  defineResource({
    path: 'apps',
    title: 'Apps',
    one: 'app',
    empty: 'No app is deployed.',
    list: listApps,
    searchBy: 'query',
    columns: [
      { title: 'App', value: ({ app_name }) => app_name },
      { title: 'Version', value: ({ version }) => version },
      { title: 'Actions', value: ({ actions }) => actions.map(({ name }) => name).join(', ') },
      { title: 'Deployment', value: ({ deployment }) => deployment },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ app_name }) => app_name,
  }),
  defineResource({
    path: 'deployments',
    title: 'Deployments',
    one: 'deployment',
    empty: 'No deployment.',
    list: listDeployments,
    searchBy: 'query',
    columns: [
      { title: 'Deployment', value: ({ id }) => id },
      { title: 'Status', value: ({ status }) => toned(status) },
      { title: 'Reason', value: ({ status_reason }) => status_reason },
      { title: 'Entrypoint', value: ({ entrypoint_rel_path }) => entrypoint_rel_path },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ id }) => id,
    create: createDeployment,
    remove: deleteDeployment,
    log: followDeployment,
  }),
  defineResource({
    path: 'invocations',
    title: 'Invocations',
    one: 'invocation',
    empty: 'No invocation.',
    list: listInvocations,
    searchBy: 'query',
    columns: [
      { title: 'Action', value: ({ app_name, action_name }) => `${app_name}: ${action_name}` },
      { title: 'Status', value: ({ status }) => toned(status) },
      { title: 'Result', value: ({ output, status_reason }) => (output ?? status_reason)?.slice(0, 200) },
      { title: 'Started', value: ({ started_at }) => <Age since={started_at} /> },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ id }) => id,
    create: createInvocation,
    log: followInvocation,
    actions: [
      {
        label: 'Cancel',
        endpoint: updateInvocation,
        body: () => ({ status: 'failed' }),
        told: () => 'It is cancelled, and its sessions end.',
        isOffered: ({ finished_at }) => finished_at === null,
      },
    ],
  }),
  defineResource({
    path: 'credentials',
    title: 'Credentials',
    one: 'credential',
    empty: 'No credential.',
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
        told: ({ code }: { readonly code: string }) => code,
        isOffered: ({ has_totp_secret }) => has_totp_secret,
      },
    ],
  }),
  defineResource({
    path: 'connections',
    title: 'Logins',
    one: 'connection',
    empty: 'No connection. A connection keeps a profile logged in to a site.',
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
        told: ({ hosted_url }: { readonly hosted_url: string }) =>
          `${hosted_url}\n\nA person finishes the login there.`,
      },
    ],
  }),
  defineResource({
    path: 'providers',
    title: 'Credential providers',
    one: 'provider',
    empty: 'No provider.',
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
        told: ({ success, error }: { readonly success: boolean; readonly error?: string }) =>
          success ? 'It works.' : (error ?? 'It does not work.'),
      },
    ],
  }),
  defineResource({
    path: 'vaults',
    title: 'Vaults',
    one: 'vault',
    empty: 'No vault.',
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
    path: 'projects',
    title: 'Projects',
    one: 'project',
    empty: 'No project.',
    list: listProjects,
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Id', value: ({ id }) => <code>{id}</code> },
      { title: 'Status', value: ({ status }) => toned(status) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createProject,
    update: updateProject,
    initial: ({ name, status }) => ({ name, status }),
    settings: { label: 'Limits', get: getProjectLimits, update: updateProjectLimits },
    remove: deleteProject,
  }),
  defineResource({
    path: 'api-keys',
    title: 'API keys',
    one: 'API key',
    empty: 'No key.',
    list: listApiKeys,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Key', value: ({ masked_key }) => <code>{masked_key}</code> },
      { title: 'Project', value: ({ project_name }) => project_name ?? 'all' },
      { title: 'Expires', value: ({ expires_at }) => (expires_at ? timeText(expires_at) : 'never') },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createApiKey,
    createdText: ({ key }: { readonly key: string }) => key,
    update: updateApiKey,
    initial: ({ name }) => ({ name }),
    remove: deleteApiKey,
    actions: [
      {
        label: 'Rotate',
        endpoint: rotateApiKey,
        body: () => ({}),
        told: ({ key }: { readonly key: string }) => `${key}\n\nCopy it now: it is not shown again.`,
      },
    ],
  }),
  defineResource({
    path: 'otlp',
    title: 'OTLP destinations',
    one: 'destination',
    empty: 'No destination. Telemetry stays in berth.',
    list: listOtlpDestinations,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Endpoint', value: ({ endpoint }) => endpoint },
      { title: 'Headers', value: ({ headers }) => Object.keys(headers).join(', ') },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createOtlpDestination,
    update: updateOtlpDestination,
    initial: ({ name, endpoint, description }) => ({ name, endpoint, description }),
    remove: deleteOtlpDestination,
  }),
  defineResource({
    path: 'webhooks',
    title: 'Webhooks',
    one: 'webhook',
    empty: 'No webhook. Nobody is told of events.',
    list: listWebhooks,
    columns: [
      { title: 'URL', value: ({ url }) => url },
      { title: 'Events', value: ({ event_types }) => event_types?.join(', ') ?? 'all' },
      {
        title: 'Status',
        value: ({ enabled, disabled_reason }) => toned(enabled ? 'active' : (disabled_reason ?? 'off')),
      },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ url }) => url,
    create: createWebhook,
    createdText: ({ secret }: { readonly secret: string }) => `${secret}\n\nCopy it now: it is not shown again.`,
    update: updateWebhook,
    initial: ({ url, description, event_types, enabled }) => ({ url, description, event_types, enabled }),
    remove: deleteWebhook,
    actions: [
      {
        label: 'Send a test',
        endpoint: testWebhook,
        told: () => 'A test event is on its way.',
      },
      {
        label: 'Rotate',
        endpoint: rotateWebhookSecret,
        body: () => ({}),
        told: ({ secret }: { readonly secret: string }) => `${secret}\n\nCopy it now: it is not shown again.`,
      },
    ],
  }),
  defineResource({
    path: 'audit',
    title: 'Audit log',
    one: 'entry',
    empty: 'No entry in the last 30 days.',
    list: listAuditLogs,
    searchBy: 'search',
    query: () => ({
      start: new Date(Date.now() - auditDays * dayMilliseconds + 60_000).toISOString(),
      end: new Date(Date.now() + 60_000).toISOString(),
    }),
    columns: [
      { title: 'Time', value: ({ timestamp }) => timeText(timestamp) },
      { title: 'Who', value: ({ user_id }) => <code>{user_id}</code> },
      { title: 'Request', value: ({ method, path }) => `${method} ${path}` },
      { title: 'Status', value: ({ status }) => <Badge tone={status < 400 ? 'good' : 'bad'}>{status}</Badge> },
      { title: 'From', value: ({ client_ip }) => client_ip },
    ],
    keyOf: ({ timestamp, path, method, duration_ms }) => `${timestamp} ${method} ${path} ${duration_ms}`,
    nameOf: ({ path }) => path,
  }),
]
