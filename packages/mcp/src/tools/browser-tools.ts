import {
  createBrowser,
  deleteBrowser,
  getBrowser,
  listBrowsers,
  updateBrowser,
} from '@berth/contract/browsers/browser-endpoints.ts'
import { getLiveView } from '@berth/contract/browsers/live-view-endpoints.ts'
import { listTelemetryEvents } from '@berth/contract/telemetry/telemetry-endpoints.ts'
import { z } from 'zod'
import type { Api } from '../api.ts'
import { type Arguments, at, byId, pageInput, pick, type Tool, unlessEmpty } from '../tool.ts'

const bySession = byId('session_id')
const maxCompactLength = 8 * 1024
const maxRawBytes = 1024 ** 2
const maxRawEvents = 5

/** Settings that sessions and pools share. */
export const browserSettings = {
  start_url: z.string().optional(),
  chrome_policy: z.record(z.string(), z.unknown()).optional().describe('Chrome policies by name.'),
  headless: z.boolean().optional(),
  stealth: z.boolean().optional(),
  timeout_seconds: z.int().min(10).max(259_200).optional().describe('Seconds without activity until it is deleted.'),
  profile_name: z.string().optional(),
  profile_id: z.string().optional(),
  save_profile_changes: z.boolean().optional(),
  proxy_id: z.string().optional(),
  clear_proxy: z.boolean().optional().describe('Use no proxy.'),
  kiosk_mode: z.boolean().optional(),
  viewport_width: z.int().optional(),
  viewport_height: z.int().optional(),
  viewport_refresh_rate: z.int().optional(),
  extension_id: z.string().optional(),
  extension_name: z.string().optional(),
} as const

/** Converts these settings to fields of a request. */
export function browserFields(args: Arguments): Record<string, unknown> {
  const profile = unlessEmpty({ id: args.profile_id, name: args.profile_name, save_changes: args.save_profile_changes })
  const viewport = unlessEmpty({
    width: args.viewport_width,
    height: args.viewport_height,
    refresh_rate: args.viewport_refresh_rate,
    force: args.viewport_force,
  })
  const extension = unlessEmpty({ id: args.extension_id, name: args.extension_name })
  return {
    ...pick(args, 'name', 'start_url', 'chrome_policy', 'headless', 'gpu', 'stealth', 'region', 'timeout_seconds'),
    ...pick(args, 'kiosk_mode', 'disable_default_proxy'),
    ...(profile && { profile }),
    ...(viewport && { viewport }),
    ...(extension && { extensions: [extension] }),
    ...(args.clear_proxy ? { proxy_id: '' } : pick(args, 'proxy_id')),
  }
}

function telemetryOf(args: Arguments): Record<string, unknown> | undefined {
  const categories = unlessEmpty({
    console: switchOf(args.telemetry_console),
    network: switchOf(args.telemetry_network),
    page: switchOf(args.telemetry_page),
    interaction: switchOf(args.telemetry_interaction),
  })
  const enabled = args.telemetry_enabled ?? (categories ? true : undefined)
  return enabled === undefined ? undefined : { enabled, ...(categories && { browser: categories }) }
}

function switchOf(value: boolean | undefined): { enabled: boolean } | undefined {
  return value === undefined ? undefined : { enabled: value }
}

function sessionFields(args: Arguments): Record<string, unknown> {
  const telemetry = telemetryOf(args)
  return { ...browserFields(args), ...(telemetry && { telemetry }) }
}

export const manageBrowsers: Tool = {
  name: 'manage_browsers',
  toolset: 'browsers',
  help:
    'Creates, finds, changes and deletes browser sessions, and reads their telemetry. A session is a real Chromium in a ' +
    'machine of its own. Delete it when the task is done.',
  isOfProject: true,
  input: {
    ...pageInput,
    ...browserSettings,
    session_id: z.string().optional().describe('Id or name of the session.'),
    name: z.string().optional(),
    gpu: z.boolean().optional(),
    region: z.string().optional(),
    disable_default_proxy: z.boolean().optional(),
    viewport_force: z.boolean().optional(),
    local_forward: z.string().optional().describe('Port forwarding, for the hint in the answer.'),
    remote_forward: z.string().optional().describe('Port forwarding, for the hint in the answer.'),
    status: z.enum(['active', 'deleted', 'all']).optional(),
    query: z.string().optional(),
    telemetry_enabled: z.boolean().optional(),
    telemetry_console: z.boolean().optional(),
    telemetry_network: z.boolean().optional(),
    telemetry_page: z.boolean().optional(),
    telemetry_interaction: z.boolean().optional(),
    categories: z.array(z.string()).optional().describe('get_telemetry: only these categories.'),
    since: z.string().optional().describe('get_telemetry: a time, or a duration such as 5m.'),
    until: z.string().optional(),
    order: z.enum(['asc', 'desc']).optional(),
    compact: z.boolean().optional().describe('get_telemetry: without bodies, headers and pictures (default: true).'),
  },
  actions: {
    create: {
      endpoints: [at(createBrowser), at(getLiveView)],
      run: async (args, api) => {
        const browser = await api.call<Arguments>(at(createBrowser), { body: sessionFields(args) })
        return withHint(browser, args, api)
      },
    },
    update: {
      endpoint: at(updateBrowser),
      needs: ['session_id'],
      request: (args) => ({ ...bySession(args), body: sessionFields(args) }),
    },
    list: {
      endpoint: at(listBrowsers),
      request: (args) => ({ query: pick(args, 'limit', 'offset', 'status', 'query', 'region') }),
      hint: 'There is no session. The action create starts one.',
    },
    get: { endpoint: at(getBrowser), needs: ['session_id'], request: bySession },
    get_telemetry: { endpoints: [at(listTelemetryEvents)], needs: ['session_id'], run: readTelemetry },
    delete: { endpoint: at(deleteBrowser), needs: ['session_id'], request: bySession },
  },
}

async function withHint(browser: Arguments, args: Arguments, api: Api): Promise<unknown> {
  const request = { params: { id_or_name: browser.session_id } }
  const { url } = await api.call<{ url: string }>(at(getLiveView), request)
  const forwards = [
    args.local_forward && `-L ${args.local_forward}`,
    args.remote_forward && `-R ${args.remote_forward}`,
  ]
  const given = forwards.filter(Boolean)
  return {
    ...browser,
    live_view_url: url,
    ...(given.length > 0 && {
      note: `Sessions have no SSH server, so ${given.join(' ')} cannot be forwarded. A shell: berth browsers shell ${browser.session_id}`,
    }),
  }
}

async function readTelemetry(args: Arguments, api: Api): Promise<unknown> {
  const isCompact = args.compact ?? true
  if (args.since !== undefined && args.order === 'desc') throw new Error('since cannot be used with the order desc')
  if (!isCompact && !(args.categories?.length > 0)) throw new Error('compact: false needs categories')
  if (!isCompact && (args.limit ?? Number.POSITIVE_INFINITY) > maxRawEvents) {
    throw new Error(`compact: false needs a limit of at most ${maxRawEvents}`)
  }
  const list = await api.list(at(listTelemetryEvents), {
    ...bySession(args),
    query: {
      limit: args.limit ?? 100,
      category: args.categories,
      ...pick(args, 'offset', 'until', 'order'),
      ...(args.order !== 'desc' && { since: args.since ?? new Date(0).toISOString() }),
    },
  })
  if (isCompact) return { ...list, items: list.items.map(withoutBulk) }
  if (JSON.stringify(list).length > maxRawBytes) throw new Error('the events exceed 1 MiB: request fewer')
  return list
}

const bulk = new Set(['body', 'headers', 'post_data', 'png'])

function withoutBulk(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutBulk)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, field]) => !bulk.has(name) && !(typeof field === 'string' && field.length > maxCompactLength))
      .map(([name, field]) => [name, withoutBulk(field)]),
  )
}
