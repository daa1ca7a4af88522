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
import { actions, columns, lists, values } from '../../strings/lists.ts'
import { age, toned, used } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'
import { addFromStore, StoreExtension } from './store-extension.ts'

export const browserResources: readonly Resource[] = [
  defineResource({
    path: 'pools',
    ...lists.pools,
    guide: 'pools',
    list: listBrowserPools,
    columns: [
      { title: columns.name, value: ({ name, id }) => name ?? id },
      { title: columns.size, value: ({ browser_pool_config: { size } }) => size },
      { title: columns.ready, value: ({ available_count }) => available_count },
      { title: columns.leased, value: ({ acquired_count }) => acquired_count },
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
    actions: [{ label: actions.flush, endpoint: flushBrowserPool, messageOf: () => values.flushed }],
  }),
  defineResource({
    path: 'profiles',
    ...lists.profiles,
    guide: 'profiles',
    list: listProfiles,
    searchBy: 'query',
    columns: [
      { title: columns.name, value: ({ name, id }) => name ?? id },
      { title: columns.lastUsed, value: ({ last_used_at }) => used(last_used_at) },
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
    ...lists.proxies,
    guide: 'proxies',
    list: listProxies,
    searchBy: 'query',
    columns: [
      { title: columns.name, value: ({ name, id }) => name ?? id },
      { title: columns.type, value: ({ type, protocol }) => `${type}, ${protocol}` },
      {
        title: columns.exit,
        value: ({ config, ip_address }) =>
          ip_address ?? (config.host ? `${config.host}:${config.port}` : config.country),
      },
      { title: columns.status, value: ({ status }) => status && toned(status) },
      { title: columns.checked, value: ({ last_checked }) => used(last_checked) },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name, id }) => name ?? id,
    create: createProxy,
    update: updateProxy,
    initial: ({ name }) => ({ name: name ?? '' }),
    remove: deleteProxy,
    actions: [
      {
        label: actions.check,
        endpoint: checkProxy,
        body: () => ({}),
        messageOf: ({ status, ip_address, latency_ms }: Record<string, string>) =>
          [status, ip_address, latency_ms && `${latency_ms} ms`].filter(Boolean).join(', '),
      },
    ],
  }),
  defineResource({
    path: 'extensions',
    ...lists.extensions,
    guide: 'extensions',
    list: listExtensions,
    searchBy: 'query',
    columns: [
      { title: columns.name, value: ({ name, id }) => name ?? id },
      { title: columns.size, value: ({ size_bytes }) => bytesText(size_bytes) },
      { title: columns.lastUsed, value: ({ last_used_at }) => used(last_used_at) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name, id }) => name ?? id,
    create: uploadExtension,
    otherCreates: [{ label: actions.addFromTheStore, schema: StoreExtension, make: addFromStore }],
    remove: deleteExtension,
    file: { endpoint: downloadExtension, name: ({ name, id }) => `${name ?? id}.zip` },
  }),
]
