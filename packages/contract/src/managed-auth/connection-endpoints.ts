import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { SearchText } from '../common/text.ts'
import { defineEndpoint } from '../endpoint.ts'
import { defineStream } from '../stream.ts'
import {
  ConnectionCreateRequest,
  ConnectionEvent,
  ConnectionUpdateRequest,
  LoginRequest,
  LoginResponse,
  ManagedAuth,
  TimelineEvent,
  TimelineType,
} from './connection.ts'
import { SubmitRequest } from './interaction.ts'

const tag = 'Managed auth'
/** Errors of the resources that the browser settings of a connection refer to. */
const errorsOfSettings = ['proxy_not_found', 'otlp_destination_not_found', 'field_not_supported'] as const
const OneConnection = z.object({ id: z.string().min(1).max(255) })

export const createAuthConnection = defineEndpoint({
  operationId: 'createAuthConnection',
  method: 'POST',
  path: '/auth/connections',
  summary: 'Create a connection that keeps a profile logged in to a site',
  description: 'Logs in only when you ask for it.',
  tag,
  access: 'project',
  body: ConnectionCreateRequest,
  reply: ManagedAuth,
  status: 201,
  errors: ['auth_connection_exists', 'insufficient_plan', ...errorsOfSettings],
})

export const listAuthConnections = defineEndpoint({
  operationId: 'listAuthConnections',
  method: 'GET',
  path: '/auth/connections',
  summary: 'List connections',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    profile_name: SearchText.optional().meta({ description: 'The whole name.' }),
    domain: SearchText.optional().meta({ description: 'The whole domain.' }),
    query: SearchText.optional().meta({
      description: 'Text to find in the domain or the name of the profile, or a whole id.',
    }),
  }),
  reply: z.array(ManagedAuth),
  paged: true,
  status: 200,
  errors: [],
})

export const getAuthConnection = defineEndpoint({
  operationId: 'getAuthConnection',
  method: 'GET',
  path: '/auth/connections/{id}',
  summary: 'Get a connection and the state of its newest flow',
  description: 'Also accepts the token of a hosted login.',
  tag,
  access: 'project',
  params: OneConnection,
  reply: ManagedAuth,
  status: 200,
  errors: ['auth_connection_not_found'],
})

export const updateAuthConnection = defineEndpoint({
  operationId: 'updateAuthConnection',
  method: 'PATCH',
  path: '/auth/connections/{id}',
  summary: 'Change a connection',
  description: 'Absent fields stay unchanged. A running flow keeps its settings.',
  tag,
  access: 'project',
  params: OneConnection,
  body: ConnectionUpdateRequest,
  reply: ManagedAuth,
  status: 200,
  errors: ['auth_connection_not_found', ...errorsOfSettings],
})

export const deleteAuthConnection = defineEndpoint({
  operationId: 'deleteAuthConnection',
  method: 'DELETE',
  path: '/auth/connections/{id}',
  summary: 'Delete a connection',
  description: 'Cancels its flow. The profile stays.',
  tag,
  access: 'project',
  params: OneConnection,
  status: 204,
  errors: ['auth_connection_not_found'],
})

export const loginAuthConnection = defineEndpoint({
  operationId: 'loginAuthConnection',
  method: 'POST',
  path: '/auth/connections/{id}/login',
  summary: 'Start a login',
  description: 'Responds immediately. Cancels a running flow.',
  tag,
  access: 'project',
  params: OneConnection,
  body: LoginRequest,
  reply: LoginResponse,
  status: 200,
  errors: ['auth_connection_not_found', ...errorsOfSettings],
  reservedStatuses: { 409: 'A new login cancels the one before instead of being refused.' },
})

export const submitAuthConnection = defineEndpoint({
  operationId: 'submitAuthConnection',
  method: 'POST',
  path: '/auth/connections/{id}/submit',
  summary: 'Answer what a flow asks for',
  description:
    'Accepts values or one choice. The state of the flow shows the outcome. Also accepts the token of a hosted login.',
  tag,
  access: 'project',
  params: OneConnection,
  body: SubmitRequest,
  reply: z.object({ accepted: z.boolean() }).meta({ id: 'SubmitFieldsResponse' }),
  status: 202,
  errors: ['auth_connection_not_found', 'no_active_flow', 'stale_interaction', 'submission_refused'],
})

export const followAuthConnection = defineEndpoint(
  defineStream({
    operationId: 'followAuthConnection',
    path: '/auth/connections/{id}/events',
    summary: 'Follow the newest flow',
    description:
      'Starts with the current state and ends with the final one. Waits for a flow if there is none. Also accepts the ' +
      'token of a hosted login.',
    tag,
    access: 'project',
    params: OneConnection,
    event: ConnectionEvent,
    errors: ['auth_connection_not_found'],
  }),
)

export const listAuthTimeline = defineEndpoint({
  operationId: 'listAuthTimeline',
  method: 'GET',
  path: '/auth/connections/{id}/timeline',
  summary: 'List the flows and checks of a connection',
  description: 'Newest first.',
  tag,
  access: 'project',
  params: OneConnection,
  query: PageQuery.extend({ type: TimelineType.optional() }),
  reply: z.array(TimelineEvent),
  paged: true,
  status: 200,
  errors: ['auth_connection_not_found'],
})

export const exchangeHandoffCode = defineEndpoint({
  operationId: 'exchangeHandoffCode',
  method: 'POST',
  path: '/auth/connections/{id}/exchange',
  summary: 'Exchange the code of a hosted login for its token',
  description: 'A code works once. The token can read, follow and answer this flow for 30 minutes.',
  tag,
  access: 'public',
  params: OneConnection,
  body: z.strictObject({ code: z.string().min(1).max(255) }).meta({ id: 'ManagedAuthExchangeRequest' }),
  reply: z.object({ invocation_id: z.string(), jwt: z.string() }).meta({ id: 'ManagedAuthExchangeResponse' }),
  status: 200,
  errors: [
    'auth_connection_not_found',
    'handoff_code_invalid',
    'handoff_code_used',
    'database_unavailable',
    'database_busy',
  ],
})
