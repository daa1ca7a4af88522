import {
  createBrowserPool,
  deleteBrowserPool,
  flushBrowserPool,
  listBrowserPools,
  updateBrowserPool,
} from '@berth/contract/browser-pools/browser-pool-endpoints.ts'
import {
  deleteExtension,
  downloadExtension,
  listExtensions,
  uploadExtension,
} from '@berth/contract/extensions/extension-endpoints.ts'
import {
  createProfile,
  deleteProfile,
  downloadProfile,
  listProfiles,
  updateProfile,
} from '@berth/contract/profiles/profile-endpoints.ts'
import {
  checkProxy,
  createProxy,
  deleteProxy,
  listProxies,
  updateProxy,
} from '@berth/contract/proxies/proxy-endpoints.ts'
import { bytesText } from '../../components/format.tsx'
import { age, toned, used } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'
import { addFromStore, StoreExtension } from './store-extension.ts'

export const browserResources: readonly Resource[] = [
  defineResource({
    path: 'pools',
    title: 'Pools',
    one: 'pool',
    empty: 'No pool. A pool keeps browsers ready.',
    guide: 'pools',
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
    actions: [
      { label: 'Flush', endpoint: flushBrowserPool, messageOf: () => 'Its ready browsers are being replaced.' },
    ],
  }),
  defineResource({
    path: 'profiles',
    title: 'Profiles',
    one: 'profile',
    empty: 'No profile. A profile keeps cookies and logins from one session to the next.',
    guide: 'profiles',
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
    guide: 'proxies',
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
        messageOf: ({ status, ip_address, latency_ms }: Record<string, string>) =>
          [status, ip_address, latency_ms && `${latency_ms} ms`].filter(Boolean).join(', '),
      },
    ],
  }),
  defineResource({
    path: 'extensions',
    title: 'Extensions',
    one: 'extension',
    empty: 'No extension. Upload a zip archive with a manifest.json, or add one by its page in the Chrome Web Store.',
    guide: 'extensions',
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
]
