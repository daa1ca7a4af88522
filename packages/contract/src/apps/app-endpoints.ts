import { z } from 'zod'
import { Browser } from '../browsers/browser.ts'
import { PageQuery } from '../common/page.ts'
import { defineEndpoint } from '../endpoint.ts'
import { defineStream } from '../stream.ts'
import {
  AppRegion,
  AppVersion,
  Deployment,
  DeploymentEvent,
  defaultVersion,
  Invocation,
  InvocationChange,
  InvocationEvent,
  InvocationRequest,
  InvocationStatus,
  RepositorySource,
} from './app.ts'
import { parseSince } from './since.ts'

const Text = z.string().max(1024).optional()
/** Clients send an empty text for a filter that is not set. */
const Filter = Text.transform((text) => text || undefined)
const Since = Text.transform((text, context) => {
  if (!text) return undefined
  const time = parseSince(text)
  if (time) return time
  context.addIssue({
    code: 'custom',
    message: 'must be a time such as 2026-01-31T12:00:00Z or a duration such as 1h30m',
  })
  return z.NEVER
}).meta({
  description: 'A time, or a duration before now such as `5m`.',
  override: { type: 'string' },
})
const OneDeployment = z.object({ id: z.string().min(1).max(255) })
const OneInvocation = z.object({
  id: z.string().min(1).max(255).meta({ description: 'The id, or a unique prefix of it.' }),
})

export const listApps = defineEndpoint({
  operationId: 'listApps',
  method: 'GET',
  path: '/apps',
  summary: 'List the versions of apps',
  tag: 'Apps',
  access: 'project',
  query: PageQuery.extend({
    app_name: Filter.meta({ description: 'The whole name.' }),
    version: Filter,
    query: Filter.meta({ description: 'Text to find in the name.' }),
  }),
  reply: z.array(AppVersion),
  paged: true,
  status: 200,
  errors: [],
})

export const createDeployment = defineEndpoint({
  operationId: 'createDeployment',
  method: 'POST',
  path: '/deployments',
  summary: 'Deploy the apps of a source folder',
  description:
    'Responds immediately. The events of the deployment report the progress of the build. The source is an archive of ' +
    'at most 100 MiB or a repository. Supports TypeScript, JavaScript and Python.',
  tag: 'Deployments',
  access: 'project',
  body: z.object({
    file: z
      .unknown()
      .optional()
      .meta({ override: { type: 'string', format: 'binary' } }),
    entrypoint_rel_path: z.string().optional().meta({
      description: 'The file that registers the apps, in the archive. Needs `file`.',
    }),
    source: RepositorySource.optional().meta({ description: 'A repository, instead of `file`.' }),
    version: z.string().max(255).default(defaultVersion),
    region: AppRegion.optional(),
    force: z.boolean().default(false).meta({
      description: 'Replace an existing version. `latest` is always replaced.',
    }),
    env_vars: z.record(z.string(), z.string()).default({}),
  }),
  bodyType: 'multipart/form-data',
  reply: Deployment,
  status: 201,
  errors: ['part_too_large', 'archive_refused', 'field_not_supported', 'deployment_limit_reached'],
})

export const listDeployments = defineEndpoint({
  operationId: 'listDeployments',
  method: 'GET',
  path: '/deployments',
  summary: 'List deployments',
  description: 'Newest first.',
  tag: 'Deployments',
  access: 'project',
  query: PageQuery.extend({
    app_name: Filter.meta({ description: 'An app that the deployment serves or served before.' }),
    app_version: Filter.meta({ description: 'Needs `app_name`.' }),
    query: Filter.meta({ description: 'The whole id, or text to find in the name of an app.' }),
  }).refine(({ app_name, app_version }) => app_name !== undefined || app_version === undefined, {
    path: ['app_version'],
    error: 'needs app_name',
  }),
  reply: z.array(Deployment),
  paged: true,
  status: 200,
  errors: [],
})

export const getDeployment = defineEndpoint({
  operationId: 'getDeployment',
  method: 'GET',
  path: '/deployments/{id}',
  summary: 'Get a deployment',
  tag: 'Deployments',
  access: 'project',
  params: OneDeployment,
  reply: Deployment,
  status: 200,
  errors: ['deployment_not_found'],
})

export const deleteDeployment = defineEndpoint({
  operationId: 'deleteDeployment',
  method: 'DELETE',
  path: '/deployments/{id}',
  summary: 'Delete a deployment',
  description: 'Removed from all lists immediately. Running invocations continue until they end.',
  tag: 'Deployments',
  access: 'project',
  params: OneDeployment,
  status: 204,
  errors: ['deployment_not_found'],
})

export const followDeployment = defineEndpoint(
  defineStream({
    operationId: 'followDeployment',
    path: '/deployments/{id}/events',
    summary: 'Follow a deployment and the logs of its invocations',
    description: 'Ends when the deployment has failed or stopped.',
    tag: 'Deployments',
    access: 'project',
    params: OneDeployment,
    query: z.object({ since: Since }),
    event: DeploymentEvent,
    errors: ['deployment_not_found'],
  }),
)

export const createInvocation = defineEndpoint({
  operationId: 'createInvocation',
  method: 'POST',
  path: '/invocations',
  summary: 'Invoke an action of an app',
  description: 'Waits for the result, at most 100 seconds, unless `async` is set.',
  tag: 'Invocations',
  access: 'project',
  body: InvocationRequest,
  reply: Invocation.pick({ id: true, action_name: true, status: true, output: true, status_reason: true }),
  status: 200,
  otherSuccesses: { 202: 'The invocation is asynchronous.' },
  errors: ['action_not_found', 'invocation_limit_reached', 'capacity_exhausted'],
})

export const listInvocations = defineEndpoint({
  operationId: 'listInvocations',
  method: 'GET',
  path: '/invocations',
  summary: 'List invocations',
  description: 'Newest first.',
  tag: 'Invocations',
  access: 'project',
  query: PageQuery.extend({
    app_name: Filter,
    version: Filter,
    action_name: Filter,
    deployment_id: Filter,
    status: z
      .enum(['', ...InvocationStatus.options])
      .optional()
      .transform((status) => status || undefined)
      .meta({ override: { type: 'string', enum: [...InvocationStatus.options] } }),
    since: Since,
    query: Filter.meta({ description: 'The whole id, or text to find in the name of the app or action.' }),
  }),
  reply: z.array(Invocation),
  paged: true,
  status: 200,
  errors: [],
})

export const getInvocation = defineEndpoint({
  operationId: 'getInvocation',
  method: 'GET',
  path: '/invocations/{id}',
  summary: 'Get an invocation',
  tag: 'Invocations',
  access: 'project',
  params: OneInvocation,
  reply: Invocation,
  status: 200,
  errors: ['invocation_not_found'],
})

export const updateInvocation = defineEndpoint({
  operationId: 'updateInvocation',
  method: 'PATCH',
  path: '/invocations/{id}',
  summary: 'End an invocation',
  description: '`failed` cancels it and ends its sessions.',
  tag: 'Invocations',
  access: 'project',
  params: OneInvocation,
  body: InvocationChange,
  reply: Invocation,
  status: 200,
  errors: ['invocation_not_found', 'invocation_finished'],
})

export const listInvocationBrowsers = defineEndpoint({
  operationId: 'listInvocationBrowsers',
  method: 'GET',
  path: '/invocations/{id}/browsers',
  summary: 'List the active sessions of an invocation',
  tag: 'Invocations',
  access: 'project',
  params: OneInvocation,
  reply: z.object({ browsers: z.array(Browser) }),
  status: 200,
  errors: ['invocation_not_found'],
})

export const deleteInvocationBrowsers = defineEndpoint({
  operationId: 'deleteInvocationBrowsers',
  method: 'DELETE',
  path: '/invocations/{id}/browsers',
  summary: 'Delete the sessions of an invocation',
  tag: 'Invocations',
  access: 'project',
  params: OneInvocation,
  status: 204,
  errors: ['invocation_not_found'],
})

export const followInvocation = defineEndpoint(
  defineStream({
    operationId: 'followInvocation',
    path: '/invocations/{id}/events',
    summary: 'Follow an invocation and its logs',
    description: 'Ends when the invocation has ended.',
    tag: 'Invocations',
    access: 'project',
    params: OneInvocation,
    query: z.object({ since: Since }),
    event: InvocationEvent,
    errors: ['invocation_not_found'],
  }),
)
