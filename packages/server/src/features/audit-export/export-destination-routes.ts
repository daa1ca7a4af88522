import {
  createExportDestination,
  deleteExportDestination,
  type ExportDestination,
  getExportDestination,
  listExportDestinations,
  testExportDestination,
  updateExportDestination,
} from '@berth/contract/audit/export-destination-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import type { ExportDestinationService } from './export-destination-service.ts'

type StoredDestination = Awaited<ReturnType<ExportDestinationService['get']>>

export function mountExportDestinationRoutes(
  mount: MountForOrganizations,
  { exportDestinations: destinations }: { readonly exportDestinations: ExportDestinationService },
): void {
  mount(createExportDestination, async ({ caller, body }) => record(await destinations.create(caller, body)))

  mount(listExportDestinations, async ({ caller, query }) => {
    const page = await destinations.list(caller, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(getExportDestination, async ({ caller, params }) => record(await destinations.get(caller, params.id)))

  mount(updateExportDestination, async ({ caller, params, body }) =>
    record(await destinations.update(caller, params.id, body)),
  )

  mount(deleteExportDestination, ({ caller, params }) => destinations.delete(caller, params.id))

  mount(testExportDestination, async ({ caller, params }) => {
    const message = await destinations.test(caller, params.id)
    if (message === undefined) return { success: true, stage: 'complete' as const }
    return { success: false, stage: 'put_object' as const, error: { code: 'put_object_failed' as const, message } }
  })
}

/** berth assumes no role, so there is none to report. */
function record(destination: StoredDestination): ExportDestination {
  const { region, bucket, prefix, role_arn, external_id, status, consecutive_failures } = destination
  return {
    id: destination.id,
    type: 's3',
    format: 'jsonl.gz',
    ...{ region, bucket, prefix, role_arn, external_id, kernel_role_arn: '', status, consecutive_failures },
    created_at: destination.created_at.toISOString(),
    updated_at: destination.updated_at.toISOString(),
    ...(destination.kms_key_id !== null && { kms_key_id: destination.kms_key_id }),
    ...(destination.last_error !== null && { last_error: destination.last_error }),
    ...(destination.last_error_at && { last_error_at: destination.last_error_at.toISOString() }),
    ...(destination.last_success_at && { last_success_at: destination.last_success_at.toISOString() }),
    ...(destination.exported_sequence !== null && { last_exported_cursor: String(destination.exported_sequence) }),
    ...(destination.next_attempt_at && { next_attempt_at: destination.next_attempt_at.toISOString() }),
  }
}
