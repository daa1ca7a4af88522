import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'
import { defineStream } from '../stream.ts'

/*
 * What only the dashboard calls. It is not part of the API document: programs use API keys.
 */

const tag = 'Dashboard'

/** The dashboard calls every endpoint below this path, where its cookie takes the place of an API key. */
export const dashboardApiPath = '/dashboard/api'

/** The dashboard sends it with every call. A page of another origin cannot: berth allows none to send credentials. */
export const dashboardHeader = 'x-berth-dashboard'

export const SignInRequest = z
  .strictObject({
    api_key: z.string().trim().min(1, { error: 'must not be empty' }).max(1024).optional(),
    code: z.string().min(1).max(255).optional().meta({ description: 'Of a sign-in link. It is valid once.' }),
  })
  .refine(({ api_key, code }) => (api_key === undefined) !== (code === undefined), {
    path: ['api_key'],
    error: 'must be given, or else code',
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

/** The lists of the dashboard besides that of sessions, by the addresses of their pages. */
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
 * Ids of sessions, and names of other lists, that have changed since the event before. `more`: anything may have
 * changed, so read everything again.
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
  summary: 'Get a small picture of a session, a few seconds old at most while it runs',
  description: 'It is no activity of the session: it neither wakes it nor keeps it alive.',
  tag,
  access: 'project',
  params: z.object({ id_or_name: IdOrName }),
  replyType: 'image/jpeg',
  status: 200,
  otherSuccesses: { 202: 'There is no picture yet; without a body.' },
  errors: ['session_not_found'],
})

export const Overview = z.object({
  /** By hours of the last day, oldest first. */
  hours: z.array(
    z.object({
      at: Timestamp,
      started: z.int().meta({ description: 'Sessions that were created in this hour.' }),
      sessions: z.int().meta({ description: 'Sessions that existed at any time of this hour.' }),
      browser_seconds: z.int().meta({ description: 'How long they existed in this hour, together.' }),
      reserve_hits: z.int().meta({ description: 'Creates that took a machine that was started before.' }),
      errors: z.int().meta({ description: 'Creates that failed, but for those that were refused.' }),
      create_p50_ms: z.number().nullable().meta({ description: 'Half of the creates took so long, or less.' }),
      create_p99_ms: z.number().nullable(),
    }),
  ),
  /** What this host has left. Null for callers other than the operator: those of the first organization. */
  room: z.object({ sessions: z.int().nullable(), memory_bytes: z.int().nullable() }).nullable(),
  /** What `./berth doctor` finds on this host. Null for callers other than the operator. */
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
  summary: 'Get the use of a project in the last day, and what the host has left',
  tag,
  access: 'project',
  reply: Overview,
  status: 200,
  errors: [],
})
