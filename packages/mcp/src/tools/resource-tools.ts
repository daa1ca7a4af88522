import {
  createApiKey,
  deleteApiKey,
  getApiKey,
  listApiKeys,
  updateApiKey,
} from '@berth/contract/api-keys/api-key-endpoints.ts'
import {
  acquireBrowser,
  createBrowserPool,
  deleteBrowserPool,
  flushBrowserPool,
  getBrowserPool,
  listBrowserPools,
  releaseBrowser,
  updateBrowserPool,
} from '@berth/contract/browser-pools/browser-pool-endpoints.ts'
import { createBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { getLiveView } from '@berth/contract/browsers/live-view-endpoints.ts'
import {
  createCredentialProvider,
  deleteCredentialProvider,
  getCredentialProvider,
  listCredentialProviderItems,
  listCredentialProviders,
  testCredentialProvider,
  updateCredentialProvider,
} from '@berth/contract/credential-providers/credential-provider-endpoints.ts'
import {
  createCredential,
  deleteCredential,
  getCredential,
  getTotpCode,
  listCredentials,
  updateCredential,
} from '@berth/contract/credentials/credential-endpoints.ts'
import { deleteExtension, listExtensions } from '@berth/contract/extensions/extension-endpoints.ts'
import {
  createProfile,
  deleteProfile,
  getProfile,
  listProfiles,
  updateProfile,
} from '@berth/contract/profiles/profile-endpoints.ts'
import {
  createProject,
  deleteProject,
  getProject,
  getProjectLimits,
  listProjects,
  updateProject,
  updateProjectLimits,
} from '@berth/contract/projects/project-endpoints.ts'
import {
  checkProxy,
  createProxy,
  deleteProxy,
  getProxy,
  listProxies,
  updateProxy,
} from '@berth/contract/proxies/proxy-endpoints.ts'
import { z } from 'zod'
import { type Api, ApiError } from '../api.ts'
import { type Arguments, at, byId, pageInput, pick, type Tool, unlessEmpty } from '../tool.ts'
import { browserFields, browserSettings } from './browser-tools.ts'

const text = z.string().optional()
const number = z.number().optional()
const page = (args: Arguments) => pick(args, 'limit', 'offset')

const profileOf = (args: Arguments) => ({ params: { id_or_name: args.profile_id ?? args.profile_name } })

async function setUpProfile(args: Arguments, api: Api): Promise<unknown> {
  const existing = await api.call<Arguments>(at(getProfile), profileOf(args)).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404 && args.profile_id === undefined) return undefined
    throw error
  })
  if (existing && !args.update_existing) throw new Error('the profile exists already: set update_existing to change it')
  const profile = existing ?? (await api.call<Arguments>(at(createProfile), { body: { name: args.profile_name } }))
  const browser = await api.call<Arguments>(at(createBrowser), {
    body: { headless: false, timeout_seconds: 600, profile: { id: profile.id, save_changes: true } },
  })
  const { url } = await api.call<{ url: string }>(at(getLiveView), { params: { id_or_name: browser.session_id } })
  return {
    profile,
    session_id: browser.session_id,
    live_view_url: url,
    note: 'A person logs in at live_view_url. Then delete the session: that saves the profile.',
  }
}

export const resourceTools: readonly Tool[] = [
  {
    name: 'manage_profiles',
    toolset: 'profiles',
    help: 'Profiles keep cookies and storage of a browser between sessions. setup opens a browser in which a person logs in.',
    isOfProject: true,
    input: {
      ...pageInput,
      profile_name: text,
      profile_id: text,
      new_name: text,
      update_existing: z.boolean().optional(),
      query: text,
    },
    actions: {
      setup: {
        endpoints: [at(getProfile), at(createProfile), at(createBrowser), at(getLiveView)],
        needs: ['profile_name|profile_id'],
        run: setUpProfile,
      },
      list: {
        endpoint: at(listProfiles),
        request: (args) => ({ query: { ...page(args), ...pick(args, 'query') } }),
        hint: 'There is no profile. The action setup creates one.',
      },
      get: { endpoint: at(getProfile), needs: ['profile_name|profile_id'], request: profileOf },
      rename: {
        endpoint: at(updateProfile),
        needs: ['profile_name|profile_id', 'new_name'],
        request: (args) => ({ ...profileOf(args), body: { name: args.new_name } }),
      },
      delete: { endpoint: at(deleteProfile), needs: ['profile_name|profile_id'], request: profileOf },
    },
  },
  {
    name: 'manage_projects',
    toolset: 'projects',
    help: 'Projects separate the sessions and resources of an organization. Each has its own limits.',
    isOfProject: false,
    input: {
      ...pageInput,
      id_or_name: text,
      name: text,
      status: z.enum(['active', 'archived']).optional(),
      query: text,
      max_concurrent_sessions: number,
      max_concurrent_invocations: number,
      max_pooled_sessions: number,
      project: text.describe('Name or id of the project.'),
      project_id: text.describe('Deprecated: use project.'),
    },
    actions: {
      create: { endpoint: at(createProject), needs: ['name'], request: (args) => ({ body: pick(args, 'name') }) },
      list: {
        endpoint: at(listProjects),
        request: (args) => ({ query: { ...page(args), ...pick(args, 'query', 'name') } }),
      },
      get: { endpoint: at(getProject), needs: ['project|project_id|id_or_name'], request: projectOf },
      update: {
        endpoint: at(updateProject),
        needs: ['project|project_id|id_or_name'],
        request: (args) => ({ ...projectOf(args), body: pick(args, 'name', 'status') }),
      },
      delete: { endpoint: at(deleteProject), needs: ['project|project_id|id_or_name'], request: projectOf },
      get_limits: { endpoint: at(getProjectLimits), needs: ['project|project_id|id_or_name'], request: projectOf },
      update_limits: {
        endpoint: at(updateProjectLimits),
        needs: ['project|project_id|id_or_name'],
        request: (args) => ({
          ...projectOf(args),
          body: pick(args, 'max_concurrent_sessions', 'max_concurrent_invocations', 'max_pooled_sessions'),
        }),
      },
    },
  },
  {
    name: 'manage_api_keys',
    toolset: 'api_keys',
    help: 'API keys of the organization. Only the response of create contains the key itself.',
    isOfProject: false,
    input: { ...pageInput, api_key_id: text, name: text, project_id: text, days_to_expire: z.int().optional() },
    actions: {
      create: {
        endpoint: at(createApiKey),
        needs: ['name'],
        request: (args) => ({ body: pick(args, 'name', 'project_id', 'days_to_expire') }),
      },
      list: { endpoint: at(listApiKeys), request: (args) => ({ query: page(args) }) },
      get: { endpoint: at(getApiKey), needs: ['api_key_id'], request: byId('api_key_id', 'id') },
      update: {
        endpoint: at(updateApiKey),
        needs: ['api_key_id', 'name'],
        request: (args) => ({ ...byId('api_key_id', 'id')(args), body: pick(args, 'name') }),
      },
      delete: { endpoint: at(deleteApiKey), needs: ['api_key_id'], request: byId('api_key_id', 'id') },
    },
  },
  {
    name: 'manage_browser_pools',
    toolset: 'browser_pools',
    help: 'Pools keep browsers ready. acquire takes one as a session; release gives it back.',
    isOfProject: true,
    input: {
      ...pageInput,
      ...browserSettings,
      id_or_name: text,
      name: text,
      size: z.int().optional(),
      fill_rate_per_minute: z.number().min(0).optional(),
      clear_profile: z.boolean().optional(),
      clear_extensions: z.boolean().optional(),
      discard_all_idle: z.boolean().optional(),
      force: z.boolean().optional(),
      acquire_timeout_seconds: z.int().optional(),
      session_id: text,
      reuse: z.boolean().optional(),
    },
    actions: {
      create: { endpoint: at(createBrowserPool), needs: ['size'], request: (args) => ({ body: poolFields(args) }) },
      update: {
        endpoint: at(updateBrowserPool),
        needs: ['id_or_name'],
        request: (args) => ({ ...byId('id_or_name')(args), body: poolFields(args) }),
      },
      list: { endpoint: at(listBrowserPools), request: (args) => ({ query: page(args) }), hint: 'There is no pool.' },
      get: { endpoint: at(getBrowserPool), needs: ['id_or_name'], request: byId('id_or_name') },
      delete: {
        endpoint: at(deleteBrowserPool),
        needs: ['id_or_name'],
        request: (args) => ({ ...byId('id_or_name')(args), body: pick(args, 'force') }),
      },
      flush: { endpoint: at(flushBrowserPool), needs: ['id_or_name'], request: byId('id_or_name') },
      acquire: {
        endpoint: at(acquireBrowser),
        needs: ['id_or_name'],
        request: (args) => ({
          ...byId('id_or_name')(args),
          body: pick(args, 'acquire_timeout_seconds', 'name', 'start_url'),
        }),
        reply: (reply) => reply ?? { acquired: false, note: 'No browser was free in time.' },
      },
      release: {
        endpoint: at(releaseBrowser),
        needs: ['id_or_name', 'session_id'],
        request: (args) => ({ ...byId('id_or_name')(args), body: pick(args, 'session_id', 'reuse') }),
      },
    },
  },
  {
    name: 'manage_proxies',
    toolset: 'proxies',
    help: 'Proxies that sessions can use.',
    isOfProject: true,
    input: {
      ...pageInput,
      proxy_id: text.describe('Id or name of the proxy.'),
      name: text,
      check_url: text,
      type: z.enum(['datacenter', 'isp', 'residential', 'mobile', 'custom']).optional(),
      country: text,
      city: text,
      state: text,
      custom_host: text,
      custom_port: z.int().optional(),
      custom_username: text,
      custom_password: text,
      query: text,
    },
    actions: {
      create: { endpoint: at(createProxy), needs: ['type'], request: (args) => ({ body: proxyFields(args) }) },
      list: { endpoint: at(listProxies), request: (args) => ({ query: { ...page(args), ...pick(args, 'query') } }) },
      get: { endpoint: at(getProxy), needs: ['proxy_id'], request: byId('proxy_id') },
      rename: {
        endpoint: at(updateProxy),
        needs: ['proxy_id', 'name'],
        request: (args) => ({ ...byId('proxy_id')(args), body: pick(args, 'name') }),
      },
      check: {
        endpoint: at(checkProxy),
        needs: ['proxy_id'],
        request: (args) => ({
          ...byId('proxy_id')(args),
          ...(args.check_url !== undefined && { body: { url: args.check_url } }),
        }),
      },
      delete: { endpoint: at(deleteProxy), needs: ['proxy_id'], request: byId('proxy_id') },
    },
  },
  {
    name: 'manage_extensions',
    toolset: 'extensions',
    help: 'Stored extensions, which sessions and pools can start with.',
    isOfProject: true,
    input: { ...pageInput, id_or_name: text, query: text },
    actions: {
      list: { endpoint: at(listExtensions), request: (args) => ({ query: { ...page(args), ...pick(args, 'query') } }) },
      delete: { endpoint: at(deleteExtension), needs: ['id_or_name'], request: byId('id_or_name') },
    },
  },
  {
    name: 'manage_credentials',
    toolset: 'credentials',
    help: 'Credentials for logins. Responses never contain their values.',
    isOfProject: true,
    input: {
      ...pageInput,
      id_or_name: text,
      domain: text,
      name: text,
      values: z.record(z.string(), z.string()).optional(),
      sso_provider: text,
      totp_secret: text,
      query: text,
    },
    actions: {
      list: {
        endpoint: at(listCredentials),
        request: (args) => ({ query: { ...page(args), ...pick(args, 'domain', 'query') } }),
      },
      get: { endpoint: at(getCredential), needs: ['id_or_name'], request: byId('id_or_name') },
      totp_code: { endpoint: at(getTotpCode), needs: ['id_or_name'], request: byId('id_or_name') },
      create: {
        endpoint: at(createCredential),
        needs: ['name', 'domain'],
        request: (args) => ({ body: credentialFields(args) }),
      },
      update: {
        endpoint: at(updateCredential),
        needs: ['id_or_name'],
        request: (args) => ({ ...byId('id_or_name')(args), body: credentialFields(args) }),
      },
      delete: { endpoint: at(deleteCredential), needs: ['id_or_name'], request: byId('id_or_name') },
    },
  },
  {
    name: 'manage_credential_providers',
    toolset: 'credential_providers',
    help: 'Password managers that logins may take credentials from.',
    isOfProject: false,
    input: {
      ...pageInput,
      id: text,
      name: text,
      token: text,
      provider_type: z.enum(['onepassword']).optional(),
      cache_ttl_seconds: z.int().optional(),
      enabled: z.boolean().optional(),
      priority: z.int().optional(),
    },
    actions: {
      list: { endpoint: at(listCredentialProviders), request: (args) => ({ query: page(args) }) },
      get: { endpoint: at(getCredentialProvider), needs: ['id'], request: byId('id', 'id') },
      create: {
        endpoint: at(createCredentialProvider),
        needs: ['name', 'token'],
        request: (args) => ({ body: { provider_type: 'onepassword', ...providerFields(args) } }),
      },
      update: {
        endpoint: at(updateCredentialProvider),
        needs: ['id'],
        request: (args) => ({
          ...byId('id', 'id')(args),
          body: { ...providerFields(args), ...pick(args, 'enabled', 'priority') },
        }),
      },
      delete: { endpoint: at(deleteCredentialProvider), needs: ['id'], request: byId('id', 'id') },
      list_items: { endpoint: at(listCredentialProviderItems), needs: ['id'], request: byId('id', 'id') },
      test: { endpoint: at(testCredentialProvider), needs: ['id'], request: byId('id', 'id') },
    },
  },
]

function projectOf(args: Arguments) {
  return { params: { id_or_name: args.project ?? args.project_id ?? args.id_or_name } }
}

function poolFields(args: Arguments): Record<string, unknown> {
  return {
    ...browserFields(args),
    ...pick(args, 'size', 'fill_rate_per_minute', 'discard_all_idle'),
    ...(args.clear_profile && { profile: null }),
    ...(args.clear_extensions && { extensions: [] }),
  }
}

function proxyFields(args: Arguments): Record<string, unknown> {
  const isCustom = args.type === 'custom'
  const config = isCustom
    ? { host: args.custom_host, port: args.custom_port, username: args.custom_username, password: args.custom_password }
    : { country: args.country, city: args.city, state: args.state }
  const given = unlessEmpty(config)
  return { ...pick(args, 'type', 'name'), ...(given && { config: given }) }
}

function credentialFields(args: Arguments): Record<string, unknown> {
  return pick(args, 'name', 'domain', 'values', 'sso_provider', 'totp_secret')
}

function providerFields(args: Arguments): Record<string, unknown> {
  return pick(args, 'name', 'token', 'provider_type', 'cache_ttl_seconds')
}
