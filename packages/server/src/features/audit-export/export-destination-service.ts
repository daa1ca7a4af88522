import { randomUUID } from 'node:crypto'
import type {
  ExportDestinationCreateRequest,
  ExportDestinationUpdateRequest,
} from '@berth/contract/audit/export-destination-endpoints.ts'
import { newId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { OrganizationCaller } from '../../access/caller.ts'
import { requireOrganizationKey } from '../../access/require-organization-key.ts'
import type { AuditService } from '../audit/audit-service.ts'
import type { ExportDestinationStore, StoredDestination } from './export-destination-store.ts'
import { joinKey, locationOf } from './export-objects.ts'
import { ExportFailure, type ExportTarget } from './export-target.ts'

interface ExportDestinationServiceOptions {
  readonly store: ExportDestinationStore
  readonly audit: AuditService
  readonly target: ExportTarget
  /** The buckets that the operator lets organizations write to with the service's credentials. */
  readonly buckets: readonly string[]
  readonly clock: Clock
}

/** The rules of destinations of continuous export. */
export class ExportDestinationService {
  readonly #options: ExportDestinationServiceOptions

  constructor(options: ExportDestinationServiceOptions) {
    this.#options = options
  }

  async create(caller: OrganizationCaller, request: ExportDestinationCreateRequest): Promise<StoredDestination> {
    requireOrganizationKey(caller)
    this.#requireBucket(request.bucket)
    const now = this.#options.clock.now()
    const { region, bucket, prefix, role_arn, kms_key_id } = request
    return this.#options.store.insert({
      id: newId('export-destination', now),
      organization_id: caller.organizationId,
      external_id: randomUUID(),
      status: 'paused',
      created_at: now,
      updated_at: now,
      ...{ region, bucket, prefix, role_arn, kms_key_id: kms_key_id || null },
    })
  }

  async list(caller: OrganizationCaller, page: PageRequest): Promise<Page<StoredDestination>> {
    requireOrganizationKey(caller)
    return this.#options.store.list(caller.organizationId, page)
  }

  async get(caller: OrganizationCaller, id: string): Promise<StoredDestination> {
    requireOrganizationKey(caller)
    return found(await this.#options.store.find(caller.organizationId, id), id)
  }

  async update(
    caller: OrganizationCaller,
    id: string,
    { kms_key_id, ...change }: ExportDestinationUpdateRequest,
  ): Promise<StoredDestination> {
    const { store, audit, clock } = this.#options
    requireOrganizationKey(caller)
    if (change.bucket !== undefined) this.#requireBucket(change.bucket)
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
    const columns = {
      ...given,
      ...(typeof kms_key_id === 'string' && { kms_key_id: kms_key_id || null }),
      updated_at: clock.now(),
      // The change may have fixed the failure.
      next_attempt_at: null,
    }
    const startsAt = change.status === 'active' ? await audit.lastSequence() : undefined
    return found(await store.update(caller.organizationId, id, columns, startsAt), id)
  }

  async delete(caller: OrganizationCaller, id: string): Promise<void> {
    requireOrganizationKey(caller)
    const isDeleted = await this.#options.store.delete(caller.organizationId, id)
    if (!isDeleted) throw new BerthError('export_destination_not_found', { destination: id })
  }

  /** Returns why nothing can be written there, or undefined. */
  async test(caller: OrganizationCaller, id: string): Promise<string | undefined> {
    const { target } = this.#options
    const destination = await this.get(caller, id)
    const place = locationOf(destination)
    const key = joinKey(destination.prefix, `.kernel-audit-log-export-test-${randomUUID()}.jsonl.gz`)
    try {
      await target.put(place, key, emptyGzip)
    } catch (error) {
      if (error instanceof ExportFailure) return error.message
      throw error
    }
    // The permission to remove it is optional: the remaining object is small and named as a test.
    await target.remove(place, key).catch(() => {})
    return undefined
  }

  #requireBucket(bucket: string): void {
    if (this.#options.buckets.includes(bucket)) return
    const reason = 'the operator of this service does not permit exports to this bucket.'
    throw new BerthError('field_not_supported', { field: 'bucket', reason })
  }
}

const emptyGzip = Buffer.from('1f8b080000000000000303000000000000000000', 'hex')

function found(destination: StoredDestination | undefined, id: string): StoredDestination {
  if (!destination) throw new BerthError('export_destination_not_found', { destination: id })
  return destination
}
