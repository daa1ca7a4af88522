import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'
import { defineStream } from '../stream.ts'

/* Only the dashboard calls these endpoints. The API document omits them: programs use API keys. */

const tag = 'Dashboard'

/** The dashboard calls every endpoint below this path, where its cookie replaces the API key. */
export const dashboardApiPath = '/dashboard/api'

/** The dashboard sends it with every call. A page of another origin cannot, because CORS permits none. */
export const dashboardHeader = 'x-berth-dashboard'

export const SignInRequest = z
  .strictObject({
    api_key: z.string().trim().min(1, { error: 'must not be empty' }).max(1024).optional(),
    code: z.string().min(1).max(255).optional().meta({ description: 'The code of a sign-in link. It works once.' }),
  })
  .refine(({ api_key, code }) => (api_key === undefined) !== (code === undefined), {
    path: ['api_key'],
    error: 'must be set unless code is',
  })

export type SignInRequest = z.infer<typeof SignInRequest>

export const signIn = defineEndpoint({
  operationId: 'signIn',
  method: 'POST',
  path: '/dashboard/session',
  summary: 'Exchange an API key, or the code of a link, for a session cookie of the dashboard',
  tag,
  access: 'public',
  body: SignInRequest,
  bodyLimitBytes: 4096,
  status: 204,
  errors: ['unauthorized', 'too_many_sign_ins'],
})

export const signOut = defineEndpoint({
  operationId: 'signOut',
  method: 'DELETE',
  path: '/dashboard/session',
  summary: 'End the session of the dashboard',
  tag,
  access: 'organization',
  status: 204,
  errors: [],
})

/** The lists of the dashboard except sessions, named like the addresses of their pages. */
export const ListName = z.enum([
  'pools',
  'profiles',
  'proxies',
  'extensions',
  'apps',
  'deployments',
  'invocations',
  'connections',
  'credentials',
  'providers',
  'vaults',
  'vault-items',
  'vault-providers',
  'projects',
  'api-keys',
  'webhooks',
  'deliveries',
  'otlp',
  'audit',
  'audit-exports',
])
export type ListName = z.infer<typeof ListName>

/**
 * Ids of sessions and names of other lists that have changed since the event before. `more`: anything may have changed,
 * so the reader should load everything again.
 */
export const ProjectChange = z.object({
  sessions: z.array(z.string()),
  lists: z.array(ListName),
  more: z.boolean(),
})
export type ProjectChange = z.infer<typeof ProjectChange>

export const followProject = defineEndpoint(
  defineStream({
    operationId: 'followProject',
    path: '/dashboard/changes',
    summary: 'Follow the changes of the sessions and lists of a project and its organization',
    tag,
    access: 'project',
    event: ProjectChange,
    errors: ['too_many_viewers'],
  }),
)

export const getThumbnail = defineEndpoint({
  operationId: 'getThumbnail',
  method: 'GET',
  path: '/browsers/{id_or_name}/thumbnail',
  summary: 'Get a small picture of a session, at most a few seconds old while the session runs',
  description: 'Does not count as activity: it neither wakes the session nor keeps it alive.',
  tag,
  access: 'project',
  params: z.object({ id_or_name: IdOrName }),
  replyType: 'image/jpeg',
  status: 200,
  otherSuccesses: { 202: 'There is no picture yet; without a body.' },
  errors: ['session_not_found'],
})

export const Overview = z.object({
  /** The hours of the last day, oldest first. */
  hours: z.array(
    z.object({
      at: Timestamp,
      started: z.int().meta({ description: 'Sessions that were created in this hour.' }),
      sessions: z.int().meta({ description: 'Sessions that existed at any time of this hour.' }),
      browser_seconds: z.int().meta({ description: 'The total time for which sessions existed in this hour.' }),
      reserve_hits: z.int().meta({ description: 'Creates that claimed a machine of the reserve.' }),
      errors: z.int().meta({ description: 'Creates that failed, except rejected ones.' }),
      create_p50_ms: z.number().nullable().meta({ description: 'The median duration of a create.' }),
      create_p99_ms: z.number().nullable(),
    }),
  ),
  /** The free resources of this host. Null for callers outside the first organization, which is the operator's. */
  room: z.object({ sessions: z.int().nullable(), memory_bytes: z.int().nullable() }).nullable(),
  /** The findings of `./berth doctor` on this host. Null for callers outside the first organization. */
  findings: z
    .array(
      z.object({
        name: z.string(),
        state: z.enum(['ok', 'warning', 'failure']),
        fact: z.string(),
        cure: z.string().nullable(),
      }),
    )
    .nullable(),
})
export type Overview = z.infer<typeof Overview>

export const getOverview = defineEndpoint({
  operationId: 'getOverview',
  method: 'GET',
  path: '/dashboard/overview',
  summary: 'Get the usage of a project in the last day and the free resources of the host',
  tag,
  access: 'project',
  reply: Overview,
  status: 200,
  errors: [],
})
