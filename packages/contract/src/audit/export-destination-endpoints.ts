import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { Timestamp } from '../common/time.ts'
import { Unchangeable } from '../common/unsupported.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Audit Logs'
const OneDestination = z.object({ id: z.string().min(1).max(255).meta({ description: 'Export destination id.' }) })

const Region = z.string().regex(/^[a-z0-9-]{1,64}$/, { error: 'must be a region such as us-east-1' })
const Bucket = z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, { error: 'must be the name of a bucket' })
const Prefix = z
  .string()
  .max(512)
  .regex(/^[\w!.*'()/-]*$/, { error: 'must contain only letters, digits and / ! - _ . *' })
  .refine((prefix) => !prefix.split('/').some((part) => part === '.' || part === '..'), {
    error: 'must not have the parts . and ..',
  })
const RoleArn = z.string().min(1).max(2048).meta({ description: 'Stored for clients. berth uses its own credentials.' })
const KmsKey = z.string().max(2048)
const Status = z.enum(['active', 'paused'])

export const ExportDestination = z
  .object({
    id: z.string(),
    type: z.enum(['s3']),
    format: z.enum(['jsonl.gz']),
    region: z.string(),
    bucket: z.string(),
    prefix: z.string(),
    role_arn: z.string(),
    kms_key_id: z.string().optional(),
    external_id: z.string(),
    kernel_role_arn: z.string(),
    status: Status,
    consecutive_failures: z.int(),
    created_at: Timestamp,
    updated_at: Timestamp,
    last_error: z.string().optional(),
    last_error_at: Timestamp.optional(),
    last_success_at: Timestamp.optional(),
    last_exported_cursor: z.string().optional(),
    next_attempt_at: Timestamp.optional().meta({ description: 'The next attempt after a failure.' }),
  })
  .meta({ id: 'AuditLogExportDestination' })
export type ExportDestination = z.infer<typeof ExportDestination>

export const ExportDestinationCreateRequest = z.object({
  type: z.enum(['s3']),
  format: z.enum(['jsonl.gz']),
  region: Region,
  bucket: Bucket,
  prefix: Prefix,
  role_arn: RoleArn,
  kms_key_id: KmsKey.nullish(),
})
export type ExportDestinationCreateRequest = z.output<typeof ExportDestinationCreateRequest>

export const ExportDestinationUpdateRequest = z.object({
  type: Unchangeable,
  format: Unchangeable,
  region: Region.optional(),
  bucket: Bucket.optional(),
  prefix: Prefix.optional(),
  role_arn: RoleArn.optional(),
  kms_key_id: KmsKey.nullish().meta({ description: 'An empty text removes it. Absent or null leaves it unchanged.' }),
  status: Status.optional(),
})
export type ExportDestinationUpdateRequest = z.output<typeof ExportDestinationUpdateRequest>

export const createExportDestination = defineEndpoint({
  operationId: 'createExportDestination',
  method: 'POST',
  path: '/audit-logs/export/destinations',
  summary: 'Create a destination of continuous export',
  description: 'It is paused until its status is set to active, and exports later entries.',
  tag,
  access: 'organization',
  body: ExportDestinationCreateRequest,
  reply: ExportDestination,
  status: 201,
  errors: ['field_not_supported'],
})

export const listExportDestinations = defineEndpoint({
  operationId: 'listExportDestinations',
  method: 'GET',
  path: '/audit-logs/export/destinations',
  summary: 'List destinations of continuous export',
  tag,
  access: 'organization',
  query: PageQuery,
  reply: z.array(ExportDestination),
  paged: true,
  status: 200,
  errors: [],
})

export const getExportDestination = defineEndpoint({
  operationId: 'getExportDestination',
  method: 'GET',
  path: '/audit-logs/export/destinations/{id}',
  summary: 'Get a destination of continuous export',
  tag,
  access: 'organization',
  params: OneDestination,
  reply: ExportDestination,
  status: 200,
  errors: ['export_destination_not_found'],
})

export const updateExportDestination = defineEndpoint({
  operationId: 'updateExportDestination',
  method: 'PATCH',
  path: '/audit-logs/export/destinations/{id}',
  summary: 'Change, pause or resume a destination of continuous export',
  description: 'A resumed destination continues where it was paused.',
  tag,
  access: 'organization',
  params: OneDestination,
  body: ExportDestinationUpdateRequest,
  reply: ExportDestination,
  status: 200,
  errors: ['export_destination_not_found', 'field_not_supported'],
  reservedStatuses: { 409: 'Concurrent changes are applied one after another.' },
})

export const deleteExportDestination = defineEndpoint({
  operationId: 'deleteExportDestination',
  method: 'DELETE',
  path: '/audit-logs/export/destinations/{id}',
  summary: 'Delete a destination of continuous export',
  description: 'Exported objects stay.',
  tag,
  access: 'organization',
  params: OneDestination,
  status: 204,
  errors: ['export_destination_not_found'],
})

export const testExportDestination = defineEndpoint({
  operationId: 'testExportDestination',
  method: 'POST',
  path: '/audit-logs/export/destinations/{id}/test',
  summary: 'Test a destination of continuous export',
  description:
    'Writes a small object and removes it. For a destination that does not work, the response is 200 with `success` false.',
  tag,
  access: 'organization',
  params: OneDestination,
  reply: z
    .object({
      success: z.boolean(),
      stage: z.enum(['assume_role', 'put_object', 'complete']),
      error: z.object({ code: z.enum(['assume_role_failed', 'put_object_failed']), message: z.string() }).optional(),
    })
    .meta({ id: 'AuditLogExportDestinationTestResult' }),
  status: 200,
  errors: ['export_destination_not_found'],
})
