import type { BrowserMemory, BrowserRequest, Region } from '@berth/contract/browsers/browser.ts'
import type { MachineId, OtlpDestinationId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Insertable } from 'kysely'
import type { SelectedProxy, SessionTable } from '../../../database/tables.ts'
import type { Driver } from '../../../drivers/driver.ts'
import type { OtlpDestinationService } from '../../otlp/otlp-destination-service.ts'
import type { ProxyService, ProxyTarget } from '../../proxies/proxy-service.ts'
import type { VaultService } from '../../vaults/vault-service.ts'
import type { SessionExtensions } from '../launch-inputs/session-extensions.ts'
import type { SessionProfiles } from '../launch-inputs/session-profiles.ts'
import type { EgressColumns, SessionEgress } from '../machines/session-egress.ts'
import { viewportOf } from '../machines/session-viewport.ts'
import { selectProxy } from '../update/egress-change.ts'
import { defaultMemory } from './default-memory.ts'
import type { LaunchInputs } from './machine-spec.ts'
import { selectNetwork } from './network-selection.ts'
import { selectTelemetry, withDestination } from './telemetry-selection.ts'

/** The settings of a session, including the defaults of the contract. */
export type SessionRequest = BrowserRequest

/** The resources that a request refers to. */
interface Selected {
  readonly inputs: LaunchInputs
  /** The egress settings of the session. */
  readonly egress: EgressColumns
  readonly vaults: Awaited<ReturnType<VaultService['link']>>
  readonly otlpDestinationId: OtlpDestinationId | null
}

interface RowOptions {
  readonly id: SessionId
  readonly machineId: MachineId
  readonly projectId: ProjectId
  readonly request: SessionRequest
  readonly selected: Selected
  readonly now: Date
}

interface SessionRequestsOptions {
  readonly proxies: ProxyService
  readonly profiles: SessionProfiles
  readonly sessionExtensions: SessionExtensions
  readonly egress: Pick<SessionEgress, 'certificates'>
  readonly vaults: VaultService
  readonly otlpDestinations: Pick<OtlpDestinationService, 'select'>
  readonly driver: Driver
  readonly driverId: string
  readonly region: Region
}

/** Processes requests for sessions: rejects invalid ones, finds the referenced resources, and creates the row. */
export class SessionRequests {
  readonly #options: SessionRequestsOptions

  constructor(options: SessionRequestsOptions) {
    this.#options = options
  }

  async select(projectId: ProjectId, request: SessionRequest): Promise<Selected> {
    const { profiles, sessionExtensions } = this.#options
    this.#requireHostSupport(request)
    const reference = request.telemetry?.export?.otlp?.destination
    const [{ egress, certificates }, extensions, profile, vaults, otlpDestinationId] = await Promise.all([
      this.#selectEgress(projectId, request),
      sessionExtensions.choose(projectId, request.extensions),
      request.profile ? profiles.refer(projectId, request.profile) : undefined,
      this.#options.vaults.link(projectId, request.vaults),
      reference ? this.#options.otlpDestinations.select(projectId, reference) : null,
    ])
    return { inputs: { extensions, profile, certificates }, egress, vaults, otlpDestinationId }
  }

  rowOf({ id, machineId, projectId, request, selected, now }: RowOptions): Insertable<SessionTable> {
    const { profile } = selected.inputs
    const { proxy, network } = selected.egress
    const telemetry = withDestination(selectTelemetry(request.telemetry), selected.otlpDestinationId)
    return {
      id,
      project_id: projectId,
      state: 'starting' as const,
      driver_id: this.#options.driverId,
      machine_id: machineId,
      name: request.name ?? null,
      tags: JSON.stringify(request.tags ?? {}),
      headless: request.headless,
      stealth: request.stealth,
      gpu: request.gpu,
      kiosk_mode: request.kiosk_mode,
      memory: request.memory ?? defaultMemory(request.headless),
      region: request.region ?? this.#options.region,
      timeout_seconds: request.timeout_seconds,
      viewport: JSON.stringify(viewportOf(request.viewport, request.gpu)),
      start_url: request.start_url || null,
      chrome_policy: JSON.stringify(request.chrome_policy ?? {}),
      invocation_id: request.invocation_id ?? null,
      keep_downloads: request.keep_downloads,
      telemetry: telemetry && JSON.stringify(telemetry),
      otlp_destination_id: selected.otlpDestinationId,
      created_at: now,
      idle_since: null,
      deleted_at: null,
      uptime_ms: null,
      profile_id: profile?.id ?? null,
      profile_save_changes: profile?.saveChanges ?? null,
      vaults: selected.vaults ? JSON.stringify(selected.vaults) : null,
      proxy: JSON.stringify(proxy),
      network: network && JSON.stringify(network),
    }
  }

  #requireHostSupport({ headless, gpu, memory, region, telemetry }: SessionRequest): void {
    const refuse = (field: string, reason: string) => {
      throw new BerthError('field_not_supported', { field, reason })
    }
    if (gpu && headless) refuse('gpu', 'only a headful session can have a GPU.')
    if (gpu && !this.#options.driver.capabilities.hasGpu) refuse('gpu', 'this host has no GPU.')
    if (memory && gpu) refuse('memory', 'cannot be set for a session with a GPU.')
    const choices = headless ? headlessMemory : headfulMemory
    if (memory && !choices.includes(memory)) {
      refuse('memory', `a ${headless ? 'headless' : 'headful'} session can have ${choices.join(' or ')}.`)
    }
    if (region && region !== this.#options.region) {
      refuse('region', `${region} is not served here; this service runs in ${this.#options.region}.`)
    }
    const otlp = telemetry?.export?.otlp
    if (otlp?.enabled && !otlp.destination) refuse('telemetry.export.otlp', 'needs a destination.')
    if (otlp?.destination && !selectTelemetry(telemetry)) {
      refuse('telemetry.export.otlp.destination', 'needs captured telemetry.')
    }
  }

  /** The proxies of the session, and those of their certificates that its browser needs. */
  async #selectEgress(
    projectId: ProjectId,
    request: SessionRequest,
  ): Promise<{ readonly egress: EgressColumns; readonly certificates: readonly string[] }> {
    const byDefault: SelectedProxy = { mode: 'default' }
    let hasCaBundle = false
    const select = async (target: ProxyTarget, field: string) => {
      const selected = await this.#options.proxies.select(projectId, target, field)
      hasCaBundle ||= selected.hasCaBundle
      return selected
    }
    const [proxy, network] = await Promise.all([
      selectProxy(request, byDefault, select),
      selectNetwork(request.network, select),
    ])
    const egress = { proxy: proxy ?? byDefault, network }
    const certificates = hasCaBundle
      ? await this.#options.egress.certificates({ project_id: projectId, ...egress })
      : []
    return { egress, certificates }
  }
}

const headlessMemory: readonly BrowserMemory[] = ['1GiB', '2GiB']
const headfulMemory: readonly BrowserMemory[] = ['8GiB', '16GiB']
