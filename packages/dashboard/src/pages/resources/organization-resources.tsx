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
import { actions, columns, lists, values } from '../../strings/lists.ts'
import { auditPeriod } from './audit-period.ts'
import { age, toned, used } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'

export const organizationResources: readonly Resource[] = [
  defineResource({
    path: 'projects',
    ...lists.projects,
    guide: 'organizations',
    list: listProjects,
    columns: [
      { title: columns.name, value: ({ name }) => name },
      { title: columns.id, value: ({ id }) => <code>{id}</code> },
      { title: columns.status, value: ({ status }) => toned(status) },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    create: createProject,
    update: updateProject,
    initial: ({ name, status }) => ({ name, status }),
    settings: { label: actions.limits, get: getProjectLimits, update: updateProjectLimits },
    remove: deleteProject,
  }),
  defineResource({
    path: 'api-keys',
    ...lists['api-keys'],
    guide: 'organizations',
    list: listApiKeys,
    searchBy: 'query',
    columns: [
      { title: columns.name, value: ({ name }) => name },
      { title: columns.key, value: ({ masked_key }) => <code>{masked_key}</code> },
      { title: columns.project, value: ({ project_name }) => project_name ?? values.all },
      { title: columns.expires, value: ({ expires_at }) => (expires_at ? timeText(expires_at) : values.never) },
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
        label: actions.rotate,
        endpoint: rotateApiKey,
        body: () => ({}),
        messageOf: ({ key }: { readonly key: string }) => values.once(key),
      },
    ],
  }),
  defineResource({
    path: 'webhooks',
    ...lists.webhooks,
    guide: 'webhooks',
    list: listWebhooks,
    columns: [
      { title: columns.url, value: ({ url }) => url },
      { title: columns.events, value: ({ event_types }) => event_types?.join(', ') ?? values.all },
      {
        title: columns.status,
        value: ({ enabled, disabled_reason }) => toned(enabled ? 'active' : (disabled_reason ?? values.off)),
      },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ url }) => url,
    create: createWebhook,
    createdText: ({ secret }: { readonly secret: string }) => secret,
    update: updateWebhook,
    initial: ({ url, description, event_types, enabled }) => ({ url, description, event_types, enabled }),
    page: { label: actions.deliveries, to: '/webhooks/$webhook' },
    remove: deleteWebhook,
    actions: [
      {
        label: actions.sendATest,
        endpoint: testWebhook,
        messageOf: () => values.testSent,
      },
      {
        label: actions.rotate,
        endpoint: rotateWebhookSecret,
        body: () => ({}),
        messageOf: ({ secret }: { readonly secret: string }) => values.once(secret),
      },
    ],
  }),
  defineResource({
    path: 'otlp',
    ...lists.otlp,
    guide: 'telemetry',
    list: listOtlpDestinations,
    searchBy: 'query',
    columns: [
      { title: columns.name, value: ({ name }) => name },
      { title: columns.endpoint, value: ({ endpoint }) => endpoint },
      { title: columns.headers, value: ({ headers }) => Object.keys(headers).join(', ') },
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
    ...lists.audit,
    guide: 'audit-log',
    list: listAuditLogs,
    searchBy: 'search',
    query: () => auditPeriod(),
    columns: [
      { title: columns.time, value: ({ timestamp }) => timeText(timestamp) },
      { title: columns.who, value: ({ user_id }) => <code>{user_id}</code> },
      { title: columns.request, value: ({ method, path }) => `${method} ${path}` },
      { title: columns.status, value: ({ status }) => <Badge tone={status < 400 ? 'good' : 'bad'}>{status}</Badge> },
      { title: columns.from, value: ({ client_ip }) => client_ip },
    ],
    keyOf: ({ timestamp, path, method, duration_ms }) => `${timestamp} ${method} ${path} ${duration_ms}`,
    nameOf: ({ path }) => path,
  }),
  defineResource({
    path: 'audit-exports',
    ...lists['audit-exports'],
    guide: 'audit-log',
    list: listExportDestinations,
    columns: [
      { title: columns.bucket, value: ({ bucket, prefix }) => `s3://${bucket}/${prefix}` },
      { title: columns.region, value: ({ region }) => region },
      {
        title: columns.status,
        value: ({ status, last_error }) => (
          <>
            {toned(last_error === undefined ? status : 'failed')}
            {last_error !== undefined && <p className="quiet">{last_error}</p>}
          </>
        ),
      },
      { title: columns.lastExport, value: ({ last_success_at }) => used(last_success_at) },
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
        label: actions.test,
        endpoint: testExportDestination,
        messageOf: ({
          success,
          error,
        }: {
          readonly success: boolean
          readonly error?: { readonly message: string }
        }) => (success ? values.works : (error?.message ?? values.worksNot)),
      },
    ],
  }),
]
