import { z } from 'zod'
import { Timestamp } from '../common/time.ts'

export const maxDeploymentBytes = 100 * 1024 ** 2
export const maxEnvironmentVariables = 256
export const maxPayloadBytes = 4_500_000
export const defaultVersion = 'latest'
/** The timeout of an invocation whose caller waits for the result. */
export const syncTimeoutSeconds = 100

export const AppRegion = z.literal('aws.us-east-1a').meta({ description: 'The only value.' })

const Schema = z.record(z.string(), z.unknown()).nullable()

export const AppAction = z
  .object({ name: z.string(), input_schema: Schema, output_schema: Schema })
  .meta({ id: 'AppAction' })

/** Names only: values are never returned. */
const EnvironmentVariables = z
  .record(z.string(), z.string())
  .meta({ description: 'The names that are set. Values are always empty.' })

export const AppVersion = z
  .object({
    id: z.string(),
    app_name: z.string(),
    version: z.string(),
    region: AppRegion,
    deployment: z.string().meta({ description: 'The deployment that serves this version.' }),
    actions: z.array(AppAction),
    env_vars: EnvironmentVariables,
  })
  .meta({ id: 'AppVersion' })
export type AppVersion = z.infer<typeof AppVersion>

export const DeploymentStatus = z.enum(['queued', 'in_progress', 'running', 'failed', 'stopped'])
export type DeploymentStatus = z.infer<typeof DeploymentStatus>

export const Deployment = z
  .object({
    id: z.string(),
    created_at: Timestamp,
    updated_at: Timestamp.nullable(),
    region: AppRegion,
    status: DeploymentStatus,
    status_reason: z.string().optional(),
    entrypoint_rel_path: z.string(),
    env_vars: EnvironmentVariables,
    source_type: z.enum(['file', 'github']),
    source_checksum: z.string().optional().meta({
      description: 'SHA-256 of the archive. For a repository, absent until it has been fetched.',
    }),
    source_url: z.string().optional(),
    source_ref: z.string().optional().meta({ description: 'As requested.' }),
    source_path: z.string().optional(),
  })
  .meta({ id: 'Deployment' })
export type Deployment = z.infer<typeof Deployment>

/** Only what git accepts as a name: no options, patterns or pairs of names. */
const RepositoryRef = z
  .string()
  .min(1)
  .max(255)
  .refine((ref) => !/\p{Cc}/u.test(ref) && !/^[-+/.]|[ ~^:?*[\\]|\.\.|@\{|\/\/|[/.]$|\.lock$/.test(ref), {
    error: 'must be a branch, a tag or a whole commit id',
  })

export const RepositorySource = z.strictObject({
  type: z.literal('github'),
  url: z.string().max(2048).meta({ description: 'For example https://github.com/owner/name.' }),
  ref: RepositoryRef.meta({ description: 'A branch, a tag or a whole commit id.' }),
  entrypoint: z.string().min(1).max(2048).meta({ description: 'The file that registers the apps, below `path`.' }),
  path: z.string().max(2048).optional().meta({ description: 'A folder of the repository. Default: its root.' }),
  auth: z
    .strictObject({
      method: z.literal('github_token'),
      token: z
        .string()
        .max(1024)
        .regex(/^[\u0021-\u007e]+$/, { error: 'must be a token' })
        .meta({ description: 'Used once, to fetch the repository.' }),
    })
    .optional(),
})
export type RepositorySource = z.infer<typeof RepositorySource>

export const InvocationStatus = z.enum(['queued', 'running', 'succeeded', 'failed'])
export type InvocationStatus = z.infer<typeof InvocationStatus>

export const Invocation = z
  .object({
    id: z.string(),
    app_name: z.string(),
    version: z.string(),
    action_name: z.string(),
    status: InvocationStatus,
    status_reason: z.string().optional(),
    payload: z.string().optional().meta({ description: 'JSON text.' }),
    output: z.string().optional().meta({ description: 'The result as JSON text.' }),
    started_at: Timestamp,
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'Invocation' })
export type Invocation = z.infer<typeof Invocation>

const logEvent = z.object({ event: z.literal('log'), message: z.string(), timestamp: Timestamp })
const heartbeat = z.object({ event: z.literal('sse_heartbeat'), timestamp: Timestamp })

export const DeploymentEvent = z
  .discriminatedUnion('event', [
    logEvent,
    z.object({ event: z.literal('deployment_state'), deployment: Deployment, timestamp: Timestamp }),
    AppVersion.omit({ deployment: true, env_vars: true }).extend({
      event: z.literal('app_version_summary'),
      timestamp: Timestamp,
    }),
    z.object({
      event: z.literal('error'),
      error: z.object({ code: z.string(), message: z.string() }),
      timestamp: Timestamp,
    }),
    heartbeat,
  ])
  .meta({ id: 'DeploymentEvent' })
export type DeploymentEvent = z.infer<typeof DeploymentEvent>

export const InvocationEvent = z
  .discriminatedUnion('event', [
    logEvent,
    z.object({ event: z.literal('invocation_state'), invocation: Invocation, timestamp: Timestamp }),
    heartbeat,
  ])
  .meta({ id: 'InvocationEvent' })
export type InvocationEvent = z.infer<typeof InvocationEvent>

/** JSON text. Clients send an empty text for no value. */
const JsonText = z
  .string()
  .refine((text) => text === '' || isJson(text), { error: 'must be JSON text' })
  .refine((text) => new TextEncoder().encode(text).length <= maxPayloadBytes, {
    error: `must have at most ${maxPayloadBytes} bytes`,
  })

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const Name = z.string().min(1).max(255)

export const InvocationRequest = z
  .object({
    app_name: Name,
    action_name: Name,
    version: Name.default(defaultVersion),
    payload: JsonText.optional().meta({ description: `JSON text of at most ${maxPayloadBytes} bytes.` }),
    async: z.boolean().default(false).meta({ description: 'Respond immediately, with the status `queued`.' }),
    async_timeout_seconds: z.int().min(10).max(3600).optional().meta({ description: 'Default: 900.' }),
  })
  .refine(({ async, async_timeout_seconds: seconds }) => async || seconds === undefined, {
    path: ['async_timeout_seconds'],
    error: 'needs async',
  })
export type InvocationRequest = z.output<typeof InvocationRequest>

export const InvocationChange = z.object({
  status: z.enum(['succeeded', 'failed']),
  output: JsonText.optional(),
})
