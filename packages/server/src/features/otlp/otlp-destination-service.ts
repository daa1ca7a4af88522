import { newId, type OrganizationId, type OtlpDestinationId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type {
  OtlpDestinationCreateRequest,
  OtlpDestinationUpdateRequest,
} from '@berth/contract/telemetry/otlp-destination-endpoints.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { OrganizationCaller } from '../../access/caller.ts'
import { requireOrganizationKey } from '../../access/require-organization-key.ts'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { DestinationFilter, OtlpDestinationStore, StoredOtlpDestination } from './otlp-destination-store.ts'

const maxAttempts = 10

type Headers = Readonly<Record<string, string>>

interface OtlpDestinationServiceOptions {
  readonly store: OtlpDestinationStore
  readonly secrets: ProjectSecrets
  readonly guard: OutboundGuard
  readonly clock: Clock
}

/** The rules of telemetry destinations. */
export class OtlpDestinationService {
  readonly #options: OtlpDestinationServiceOptions

  constructor(options: OtlpDestinationServiceOptions) {
    this.#options = options
  }

  async create(caller: OrganizationCaller, request: OtlpDestinationCreateRequest): Promise<StoredOtlpDestination> {
    requireOrganizationKey(caller)
    this.#requirePublic(request.endpoint)
    const { store, clock } = this.#options
    const now = clock.now()
    const id = newId('otlp-destination', now)
    return store.insert({
      id,
      organization_id: caller.organizationId,
      name: request.name,
      endpoint: request.endpoint,
      description: request.description || null,
      ...(await this.#sealed(caller.organizationId, id, request.headers ?? {})),
      created_at: now,
      updated_at: now,
    })
  }

  async list(
    { organizationId }: OrganizationCaller,
    filter: DestinationFilter,
    page: PageRequest,
  ): Promise<Page<StoredOtlpDestination>> {
    return this.#options.store.list(organizationId, filter, page)
  }

  async get({ organizationId }: OrganizationCaller, idOrName: string): Promise<StoredOtlpDestination> {
    const found = await this.#options.store.find(organizationId, idOrName)
    if (!found) throw new BerthError('otlp_destination_not_found', { destination: idOrName })
    return found
  }

  /** Headers are merged with the existing ones, so after a concurrent change they are read again. */
  async update(
    caller: OrganizationCaller,
    idOrName: string,
    { name, endpoint, description, headers }: OtlpDestinationUpdateRequest,
  ): Promise<StoredOtlpDestination> {
    requireOrganizationKey(caller)
    if (endpoint !== undefined) this.#requirePublic(endpoint)
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const known = await this.get(caller, idOrName)
      const updated = await this.#options.store.update(known, {
        ...(name !== undefined && { name }),
        ...(endpoint !== undefined && { endpoint }),
        ...(description !== undefined && { description: description || null }),
        ...(headers && (await this.#sealed(caller.organizationId, known.id, await this.#merged(known, headers)))),
        updated_at: this.#options.clock.now(),
      })
      if (updated) return updated
    }
    throw new Error('the destination changes too often')
  }

  async delete(caller: OrganizationCaller, idOrName: string): Promise<void> {
    requireOrganizationKey(caller)
    const { id } = await this.get(caller, idOrName)
    const isDeleted = await this.#options.store.delete(caller.organizationId, id)
    if (!isDeleted) throw new BerthError('otlp_destination_not_found', { destination: idOrName })
  }

  /** The destination that the request of a session selects. */
  async select(
    projectId: ProjectId,
    reference: { readonly id?: string | undefined; readonly name?: string | undefined },
  ): Promise<OtlpDestinationId> {
    const id = await this.#options.store.findForProject(projectId, reference)
    if (!id) throw new BerthError('otlp_destination_not_found', { destination: reference.id ?? reference.name ?? '' })
    return id
  }

  /** The headers of each export. */
  async headersOf({ id, organization_id, sealed_headers }: StoredOtlpDestination): Promise<Headers> {
    const text = await this.#options.secrets.unsealForOrganization(organization_id, sealed_headers, contextOf(id))
    return JSON.parse(text)
  }

  async #merged(known: StoredOtlpDestination, changes: Readonly<Record<string, string | null>>): Promise<Headers> {
    const merged = new Map(Object.entries(await this.headersOf(known)))
    for (const [name, value] of Object.entries(changes)) {
      const key = name.toLowerCase()
      if (value === null) merged.delete(key)
      else merged.set(key, value)
    }
    return Object.fromEntries(merged)
  }

  async #sealed(organizationId: OrganizationId, id: OtlpDestinationId, headers: Headers) {
    const canonical = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    const text = JSON.stringify(canonical)
    return {
      header_names: JSON.stringify(Object.keys(canonical)),
      sealed_headers: await this.#options.secrets.sealForOrganization(organizationId, text, contextOf(id)),
    }
  }

  #requirePublic(endpoint: string): void {
    const refusal = this.#options.guard.refusalOf(endpoint)
    if (refusal) throw new BerthError('invalid_input', { reason: `endpoint: ${refusal}.` })
  }
}

const contextOf = (id: OtlpDestinationId) => `otlp destination ${id}`
