import {
  createAuthConnection,
  deleteAuthConnection,
  getAuthConnection,
  listAuthConnections,
  listAuthTimeline,
  loginAuthConnection,
  submitAuthConnection,
  updateAuthConnection,
} from '@berth/contract/managed-auth/connection-endpoints.ts'
import { z } from 'zod'
import { type Arguments, at, byId, pageInput, pick, type Tool } from '../tool.ts'

const text = z.string().optional()
const flag = z.boolean().optional()
const one = byId('connection_id', 'id')
const settings = [
  ...['login_url', 'credential', 'allowed_domains', 'health_check_interval'],
  ...['health_checks', 'auto_reauth', 'save_credentials', 'record_session'],
]

export const manageAuthConnections: Tool = {
  name: 'manage_auth_connections',
  toolset: 'auth_connections',
  help:
    'Connections keep a profile logged in to a site. login answers with hosted_url, where a person finishes the login; ' +
    'get tells what it asks for, and submit answers that.',
  isOfProject: true,
  input: {
    ...pageInput,
    connection_id: text,
    domain: text,
    profile_name: text,
    query: text,
    login_url: text,
    credential: z
      .object({ name: text, provider: text, path: text, auto: flag })
      .optional()
      .describe('A stored credential by its name, or an item of a credential provider.'),
    allowed_domains: z.array(z.string()).optional(),
    health_check_interval: z.int().optional(),
    health_checks: flag,
    auto_reauth: flag,
    save_credentials: flag,
    record_session: flag,
    interaction_id: text,
    selected_choice_id: text,
    field_values: z.record(z.string(), z.string()).optional().describe('Values by the id of a field.'),
    type: z.enum(['login', 'reauth', 'health_check']).optional(),
  },
  actions: {
    create: {
      endpoint: at(createAuthConnection),
      needs: ['domain', 'profile_name'],
      request: (args) => ({ body: pick(args, 'domain', 'profile_name', ...settings) }),
    },
    list: {
      endpoint: at(listAuthConnections),
      request: (args) => ({ query: pick(args, 'limit', 'offset', 'domain', 'profile_name', 'query') }),
    },
    get: { endpoint: at(getAuthConnection), needs: ['connection_id'], request: one },
    update: {
      endpoint: at(updateAuthConnection),
      needs: ['connection_id'],
      request: (args: Arguments) => ({ ...one(args), body: pick(args, ...settings) }),
    },
    delete: { endpoint: at(deleteAuthConnection), needs: ['connection_id'], request: one },
    login: {
      endpoint: at(loginAuthConnection),
      needs: ['connection_id'],
      request: (args: Arguments) => ({ ...one(args), body: pick(args, 'record_session') }),
    },
    submit: {
      endpoint: at(submitAuthConnection),
      needs: ['connection_id', 'field_values|selected_choice_id'],
      request: (args: Arguments) => ({
        ...one(args),
        body: pick(args, 'interaction_id', 'selected_choice_id', 'field_values'),
      }),
    },
    timeline: {
      endpoint: at(listAuthTimeline),
      needs: ['connection_id'],
      request: (args: Arguments) => ({ ...one(args), query: pick(args, 'limit', 'offset', 'type') }),
    },
  },
}
