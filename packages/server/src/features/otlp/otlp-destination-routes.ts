import {
  createOtlpDestination,
  deleteOtlpDestination,
  getOtlpDestination,
  listOtlpDestinations,
  type OtlpDestination,
  updateOtlpDestination,
} from '@berth/contract/telemetry/otlp-destination-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import type { OtlpDestinationService } from './otlp-destination-service.ts'

type StoredDestination = Awaited<ReturnType<OtlpDestinationService['get']>>

export function mountOtlpDestinationRoutes(
  mount: MountForOrganizations,
  { otlpDestinations: destinations }: { readonly otlpDestinations: OtlpDestinationService },
): void {
  mount(createOtlpDestination, async ({ caller, body }) => record(await destinations.create(caller, body)))

  mount(listOtlpDestinations, async ({ caller, query }) => {
    const page = await destinations.list(caller, { name: query.name, text: query.query }, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(getOtlpDestination, async ({ caller, params }) => record(await destinations.get(caller, params.id_or_name)))

  mount(updateOtlpDestination, async ({ caller, params, body }) =>
    record(await destinations.update(caller, params.id_or_name, body)),
  )

  mount(deleteOtlpDestination, ({ caller, params }) => destinations.delete(caller, params.id_or_name))
}

/** Values of headers are never returned. */
function record({
  id,
  name,
  endpoint,
  description,
  header_names,
  consecutive_failures,
  last_error,
  last_error_at,
  last_export_at,
  created_at,
  updated_at,
}: StoredDestination): OtlpDestination {
  return {
    id,
    name,
    endpoint,
    headers: Object.fromEntries(header_names.map((header) => [header, ''])),
    ...(description !== null && { description }),
    consecutive_failures,
    ...(last_error !== null && { last_error }),
    ...(last_error_at && { last_error_at: last_error_at.toISOString() }),
    ...(last_export_at && { last_export_at: last_export_at.toISOString() }),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  }
}
