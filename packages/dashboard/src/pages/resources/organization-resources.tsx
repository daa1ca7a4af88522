import {
  createApiKey,
  deleteApiKey,
  listApiKeys,
  rotateApiKey,
  updateApiKey,
} from '@berth/contract/api-keys/api-key-endpoints.ts'
import { listAuditLogs } from '@berth/contract/audit/audit-endpoints.ts'
import {
  createExportDestination,
  deleteExportDestination,
  listExportDestinations,
  testExportDestination,
  updateExportDestination,
} from '@berth/contract/audit/export-destination-endpoints.ts'
import {
  createProject,
  deleteProject,
  getProjectLimits,
  listProjects,
  updateProject,
  updateProjectLimits,
} from '@berth/contract/projects/project-endpoints.ts'
import {
  createOtlpDestination,
  deleteOtlpDestination,
  listOtlpDestinations,
  updateOtlpDestination,
} from '@berth/contract/telemetry/otlp-destination-endpoints.ts'
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '@berth/contract/webhooks/webhook-endpoints.ts'
import { Badge } from '../../components/feedback.tsx'
import { timeText } from '../../components/format.tsx'
import { age, toned, used } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'

const auditDays = 30
const dayMilliseconds = 24 * 60 * 60 * 1000

export const organizationResources: readonly Resource[] = [
  defineResource({
    path: 'projects',
    title: 'Projects',
    one: 'project',
    empty: 'No project.',
    guide: 'organizations',
    list: listProjects,
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Id', value: ({ id }) => <code>{id}</code> },
      { title: 'Status', value: ({ status }) => toned(status) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createProject,
    update: updateProject,
    initial: ({ name, status }) => ({ name, status }),
    settings: { label: 'Limits', get: getProjectLimits, update: updateProjectLimits },
    remove: deleteProject,
  }),
  defineResource({
    path: 'api-keys',
    title: 'API keys',
    one: 'API key',
    empty: 'No key.',
    guide: 'organizations',
    list: listApiKeys,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Key', value: ({ masked_key }) => <code>{masked_key}</code> },
      { title: 'Project', value: ({ project_name }) => project_name ?? 'all' },
      { title: 'Expires', value: ({ expires_at }) => (expires_at ? timeText(expires_at) : 'never') },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createApiKey,
    createdText: ({ key }: { readonly key: string }) => key,
    update: updateApiKey,
    initial: ({ name }) => ({ name }),
    remove: deleteApiKey,
    actions: [
      {
        label: 'Rotate',
        endpoint: rotateApiKey,
        body: () => ({}),
        messageOf: ({ key }: { readonly key: string }) => `${key}\n\nCopy it now: it is not shown again.`,
      },
    ],
  }),
  defineResource({
    path: 'webhooks',
    title: 'Webhooks',
    one: 'webhook',
    empty: 'No webhook. Nobody is told of events.',
    guide: 'webhooks',
    list: listWebhooks,
    columns: [
      { title: 'URL', value: ({ url }) => url },
      { title: 'Events', value: ({ event_types }) => event_types?.join(', ') ?? 'all' },
      {
        title: 'Status',
        value: ({ enabled, disabled_reason }) => toned(enabled ? 'active' : (disabled_reason ?? 'off')),
      },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ url }) => url,
    create: createWebhook,
    createdText: ({ secret }: { readonly secret: string }) => `${secret}\n\nCopy it now: it is not shown again.`,
    update: updateWebhook,
    initial: ({ url, description, event_types, enabled }) => ({ url, description, event_types, enabled }),
    page: { label: 'Deliveries', to: '/webhooks/$webhook' },
    remove: deleteWebhook,
    actions: [
      {
        label: 'Send a test',
        endpoint: testWebhook,
        messageOf: () => 'A test event is on its way.',
      },
      {
        label: 'Rotate',
        endpoint: rotateWebhookSecret,
        body: () => ({}),
        messageOf: ({ secret }: { readonly secret: string }) => `${secret}\n\nCopy it now: it is not shown again.`,
      },
    ],
  }),
  defineResource({
    path: 'otlp',
    title: 'OTLP destinations',
    one: 'destination',
    empty: 'No destination. Telemetry stays in berth.',
    guide: 'telemetry',
    list: listOtlpDestinations,
    searchBy: 'query',
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Endpoint', value: ({ endpoint }) => endpoint },
      { title: 'Headers', value: ({ headers }) => Object.keys(headers).join(', ') },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createOtlpDestination,
    update: updateOtlpDestination,
    initial: ({ name, endpoint, description }) => ({ name, endpoint, description }),
    remove: deleteOtlpDestination,
  }),
  defineResource({
    path: 'audit',
    title: 'Audit log',
    one: 'entry',
    empty: 'No entry in the last 30 days.',
    guide: 'audit-log',
    list: listAuditLogs,
    searchBy: 'search',
    query: () => ({
      start: new Date(Date.now() - auditDays * dayMilliseconds + 60_000).toISOString(),
      end: new Date(Date.now() + 60_000).toISOString(),
    }),
    columns: [
      { title: 'Time', value: ({ timestamp }) => timeText(timestamp) },
      { title: 'Who', value: ({ user_id }) => <code>{user_id}</code> },
      { title: 'Request', value: ({ method, path }) => `${method} ${path}` },
      { title: 'Status', value: ({ status }) => <Badge tone={status < 400 ? 'good' : 'bad'}>{status}</Badge> },
      { title: 'From', value: ({ client_ip }) => client_ip },
    ],
    keyOf: ({ timestamp, path, method, duration_ms }) => `${timestamp} ${method} ${path} ${duration_ms}`,
    nameOf: ({ path }) => path,
  }),
  defineResource({
    path: 'audit-exports',
    title: 'Audit exports',
    one: 'export destination',
    empty: 'No destination. The audit log stays in berth.',
    guide: 'audit-log',
    list: listExportDestinations,
    columns: [
      { title: 'Bucket', value: ({ bucket, prefix }) => `s3://${bucket}/${prefix}` },
      { title: 'Region', value: ({ region }) => region },
      {
        title: 'Status',
        value: ({ status, last_error }) => (
          <>
            {toned(last_error === undefined ? status : 'failed')}
            {last_error !== undefined && <p className="quiet">{last_error}</p>}
          </>
        ),
      },
      { title: 'Last export', value: ({ last_success_at }) => used(last_success_at) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ bucket, prefix }) => `${bucket}/${prefix}`,
    create: createExportDestination,
    update: updateExportDestination,
    initial: ({ region, bucket, prefix, role_arn, kms_key_id, status }) => ({
      region,
      bucket,
      prefix,
      role_arn,
      kms_key_id,
      status,
    }),
    remove: deleteExportDestination,
    actions: [
      {
        label: 'Test',
        endpoint: testExportDestination,
        messageOf: ({
          success,
          error,
        }: {
          readonly success: boolean
          readonly error?: { readonly message: string }
        }) => (success ? 'It works.' : (error?.message ?? 'It does not work.')),
      },
    ],
  }),
]
