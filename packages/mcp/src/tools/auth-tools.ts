import { setTimeout as delay } from 'node:timers/promises'
import {
  createAuthConnection,
  deleteAuthConnection,
  getAuthConnection,
  listAuthConnections,
  loginAuthConnection,
  submitAuthConnection,
} from '@berth/contract/managed-auth/connection-endpoints.ts'
import { z } from 'zod'
import type { Api } from '../api.ts'
import { type Arguments, at, byId, pageInput, pick, type Tool, unlessEmpty } from '../tool.ts'

const text = z.string().optional()
const byConnection = byId('id', 'id')
const lookMilliseconds = 1_000
const defaultWaitSeconds = 25

export const manageAuthConnections: Tool = {
  name: 'manage_auth_connections',
  toolset: 'auth_connections',
  help:
    'Connections keep a profile logged in to a site. login begins a flow, wait returns when it needs input or has ended, ' +
    'submit sends that input. A person can finish it at hosted_url.',
  isOfProject: true,
  input: {
    ...pageInput,
    id: text,
    domain: text,
    profile_name: text,
    allowed_domains: z.array(z.string()).optional(),
    credential_name: text,
    credential_provider: text,
    credential_path: text,
    credential_auto: z.boolean().optional(),
    login_url: text,
    health_check_interval: z.int().optional(),
    save_credentials: z.boolean().optional(),
    record_session: z.boolean().optional(),
    browser_telemetry: z.boolean().optional(),
    proxy_id: text,
    proxy_name: text,
    domain_filter: text,
    fields: z.record(z.string(), z.string()).optional().describe('submit: values by field name.'),
    mfa_option_id: text,
    sso_button_selector: text,
    wait_seconds: z.int().min(1).max(30).optional(),
    required_flow_type: z.enum(['LOGIN', 'REAUTH']).optional(),
    flow_checkpoint: text.describe('wait: from the last response. It waits for a change.'),
  },
  actions: {
    create: {
      endpoint: at(createAuthConnection),
      needs: ['domain', 'profile_name'],
      request: (args) => ({ body: connectionFields(args) }),
    },
    list: {
      endpoint: at(listAuthConnections),
      request: (args) => ({ query: { ...pick(args, 'limit', 'offset', 'profile_name'), domain: args.domain_filter } }),
      hint: 'There is no connection. The action create adds one.',
    },
    get: { endpoint: at(getAuthConnection), needs: ['id'], request: byConnection },
    delete: { endpoint: at(deleteAuthConnection), needs: ['id'], request: byConnection },
    login: {
      endpoint: at(loginAuthConnection),
      needs: ['id'],
      request: (args) => ({ ...byConnection(args), body: pick(args, 'record_session') }),
    },
    submit: {
      endpoint: at(submitAuthConnection),
      needs: ['id', 'fields|mfa_option_id|sso_button_selector'],
      request: (args) => ({
        ...byConnection(args),
        body: pick(args, 'fields', 'mfa_option_id', 'sso_button_selector'),
      }),
    },
    wait: { endpoints: [at(getAuthConnection)], needs: ['id'], run: wait },
  },
}

function connectionFields(args: Arguments): Record<string, unknown> {
  const credential = unlessEmpty({
    name: args.credential_name,
    provider: args.credential_provider,
    path: args.credential_path,
    auto: args.credential_auto,
  })
  const proxy = unlessEmpty({ id: args.proxy_id, name: args.proxy_name })
  return {
    ...pick(args, 'domain', 'profile_name', 'allowed_domains', 'login_url', 'health_check_interval'),
    ...pick(args, 'save_credentials', 'record_session'),
    ...(credential && { credential }),
    ...(proxy && { proxy }),
    ...(args.browser_telemetry !== undefined && { browser_telemetry: { enabled: args.browser_telemetry } }),
  }
}

/** Returns when the flow waits for input, has ended, or has left the checkpoint. */
async function wait(args: Arguments, api: Api): Promise<unknown> {
  const end = performance.now() + (args.wait_seconds ?? defaultWaitSeconds) * 1_000
  for (;;) {
    const state = await api.call<Arguments>(at(getAuthConnection), byConnection(args))
    if (args.required_flow_type && state.flow_type && state.flow_type !== args.required_flow_type) {
      throw new Error(`the flow is a ${state.flow_type}, not a ${args.required_flow_type}`)
    }
    const checkpoint = [state.flow_status, state.flow_step, state.interaction_id].map((part) => part ?? '-').join('/')
    const isBusy = state.flow_status === 'IN_PROGRESS' && ['DISCOVERING', 'SUBMITTING'].includes(state.flow_step)
    const isNew = args.flow_checkpoint === undefined ? !isBusy : checkpoint !== args.flow_checkpoint
    const isLate = performance.now() + lookMilliseconds > end
    if (isNew || isLate) return { ...state, flow_checkpoint: checkpoint, timed_out: !isNew }
    await delay(lookMilliseconds)
  }
}
