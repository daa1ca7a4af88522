import type { BrowserMemory, BrowserRequest, Region } from '@berth/contract/browsers/browser.ts'
import { newId, type ProjectId, type SessionId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { SelectedProxy } from '../../database/tables.ts'
import type { Driver, MachineSpec, ReachableMachine } from '../../drivers/driver.ts'
import type { StoredExtension } from '../extensions/extension-service.ts'
import type { LimitService } from '../limits/limit-service.ts'
import type { ProxyService, ProxyTarget } from '../proxies/proxy-service.ts'
import { selectProxy } from './egress-change.ts'
import type { SessionEnder } from './end-session.ts'
import { selectNetwork } from './network-selection.ts'
import type { SessionResolver } from './resolve-session.ts'
import type { Session } from './session.ts'
import type { SessionEgress } from './session-egress.ts'
import { policiesWith, type SessionExtensions } from './session-extensions.ts'
import type { SessionMachines } from './session-machines.ts'
import type { ReferredProfile, SessionProfiles } from './session-profiles.ts'
import type { SessionFilter, SessionStore } from './session-store.ts'
import { viewportOf, windowOf } from './session-viewport.ts'
import { selectTelemetry } from './telemetry-selection.ts'

/** What a session is made of, after the defaults of the contract. */
export type SessionRequest = BrowserRequest

/** What a session starts with besides its request. */
interface Furniture {
  readonly extensions: readonly StoredExtension[]
  readonly profile: ReferredProfile | undefined
}

interface MachineParts extends Furniture {
  /** Of proxies that the browser is to trust. */
  readonly certificates: readonly string[]
}

interface SessionServiceOptions {
  readonly store: SessionStore
  readonly resolver: SessionResolver
  readonly machines: SessionMachines
  readonly profiles: SessionProfiles
  readonly sessionExtensions: SessionExtensions
  readonly ender: SessionEnder
  readonly limits: LimitService
  readonly proxies: ProxyService
  readonly egress: SessionEgress
  readonly driver: Driver
  readonly driverId: string
  readonly region: Region
  readonly clock: Clock
}

/** The rules of sessions, from create to delete. */
export class SessionService {
  readonly #options: SessionServiceOptions

  constructor(options: SessionServiceOptions) {
    this.#options = options
  }

  /**
   * Makes a session and resolves when its browser can be used. A failed start leaves nothing; a session that is
   * deleted while it starts ends, and its creator is told.
   */
  async create(projectId: ProjectId, request: SessionRequest, signal: AbortSignal): Promise<Session> {
    const { store, machines, profiles, sessionExtensions, egress, ender, limits, clock } = this.#options
    this.#refuseWhatThisHostCannotDo(request)
    const leaving = await this.#selectWayOut(projectId, request)
    const extensions = await sessionExtensions.choose(projectId, request.extensions)
    const profile = request.profile ? await profiles.refer(projectId, request.profile) : undefined
    const now = clock.now()
    const id = newId('session', now)
    // What the database keeps of a create that it broke off is found by the reaper, from the end of this call on.
    using _expected = machines.expect(id)
    const row = { ...this.#row(projectId, id, request, now), ...leaving, ...profileColumns(profile) }
    const session = await limits.takePlace(projectId, (database) => store.insert(row, database))

    let active: Session | undefined
    try {
      const certificates = await egress.certificates(session)
      const spec = machineSpec(session, request, { extensions, profile, certificates })
      const { idleSince } = await machines.start(spec, signal, this.#furnish(session, { extensions, profile }))
      if (profile) profiles.noteUse(profile.id)
      await egress.takeUpRoutes(session)
      active = await store.activate(session.id, idleSince)
    } catch (error) {
      // Its browser may be ready, and only the database does not hear of it.
      await machines.stop(session.id)
      await store.removeStarting(session.id)
      if (!(await this.#wasDeleted(session))) throw blamePolicies(error, request)
    }
    if (active && !machines.hasGone(id)) return active
    if (!active) {
      await machines.stop(session.id)
      throw new BerthError('session_ended_while_starting')
    }
    // Its machine went before the row said that it is usable, when its end was still this call's own affair.
    await ender.end(id)
    throw new BerthError('session_start_failed', { reason: 'its machine ended.' })
  }

  /** What the agent waits for. A start page takes the place of the tabs of a profile. */
  #furnish({ start_url }: Session, { extensions, profile }: Furniture) {
    const { profiles, sessionExtensions } = this.#options
    const tabs = start_url === null ? 'restore' : 'blank'
    return async (machine: ReachableMachine, signal: AbortSignal) => {
      // At once: extensions are answered for when the browser runs, and it waits for the profile.
      await Promise.all([
        profile?.hasState && profiles.load(profile.id, machine, { tabs, signal }),
        extensions.length > 0 && sessionExtensions.give(machine, extensions, signal),
      ])
    }
  }

  async list(filter: SessionFilter, page: PageRequest): Promise<Page<Session>> {
    return this.#options.store.list(filter, page)
  }

  async get(projectId: ProjectId, idOrName: string, includeDeleted: boolean): Promise<Session> {
    const session = await this.#options.store.find(projectId, idOrName, includeDeleted)
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    return session
  }

  /** Ends the session and resolves when nothing of it runs. Of two deletes, one finds no session. */
  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { resolver, ender } = this.#options
    const { id } = await resolver.resolve({ projectId }, idOrName, { orStarting: true })
    if (!(await ender.end(id))) throw new BerthError('session_not_found', { session: idOrName })
  }

  async #wasDeleted({ id, project_id }: Session): Promise<boolean> {
    const found = await this.#options.store.find(project_id, id, true)
    return found !== undefined && found.state !== 'active'
  }

  #refuseWhatThisHostCannotDo({ headless, gpu, memory, region, telemetry }: SessionRequest): void {
    const refuse = (field: string, reason: string) => {
      throw new BerthError('field_not_supported', { field, reason })
    }
    if (gpu && headless) refuse('gpu', 'only a headful session can have a GPU.')
    if (gpu && !this.#options.driver.capabilities.hasGpu) refuse('gpu', 'this host has no GPU.')
    if (memory && gpu) refuse('memory', 'a session with a GPU has no choice of memory.')
    const choices = headless ? headlessMemory : headfulMemory
    if (memory && !choices.includes(memory)) {
      refuse('memory', `a ${headless ? 'headless' : 'headful'} session has ${choices.join(' or ')}.`)
    }
    if (region && region !== this.#options.region) {
      refuse('region', `${region} is not served here; this service runs in ${this.#options.region}.`)
    }
    if (telemetry?.export?.otlp?.destination || telemetry?.export?.otlp?.enabled) {
      refuse('telemetry.export', 'is not supported by this version of berth.')
    }
  }

  /** By which proxies the session leaves. */
  async #selectWayOut(projectId: ProjectId, request: SessionRequest) {
    const { proxies } = this.#options
    const byDefault: SelectedProxy = { mode: 'default' }
    const select = (target: ProxyTarget, field: string) => proxies.select(projectId, target, field)
    const [proxy, network] = await Promise.all([
      selectProxy(request, byDefault, select),
      selectNetwork(projectId, request.network, proxies),
    ])
    return { proxy: JSON.stringify(proxy ?? byDefault), network: network && JSON.stringify(network) }
  }

  #row(projectId: ProjectId, id: SessionId, request: SessionRequest, now: Date) {
    const telemetry = selectTelemetry(request.telemetry)
    return {
      id,
      project_id: projectId,
      state: 'starting' as const,
      driver_id: this.#options.driverId,
      name: request.name ?? null,
      tags: JSON.stringify(request.tags ?? {}),
      headless: request.headless,
      stealth: request.stealth,
      gpu: request.gpu,
      kiosk_mode: request.kiosk_mode,
      memory: memoryOf(request),
      region: request.region ?? this.#options.region,
      timeout_seconds: request.timeout_seconds,
      viewport: JSON.stringify(viewportOf(request.viewport, request.gpu)),
      start_url: request.start_url || null,
      chrome_policy: JSON.stringify(request.chrome_policy ?? {}),
      invocation_id: request.invocation_id ?? null,
      telemetry: telemetry && JSON.stringify(telemetry),
      created_at: now,
      idle_since: null,
      deleted_at: null,
      uptime_ms: null,
    }
  }
}

const headlessMemory: readonly BrowserMemory[] = ['1GiB', '2GiB']
const headfulMemory: readonly BrowserMemory[] = ['8GiB', '16GiB']

/** A headless browser needs little; a headful one gets what the field gives it. */
function memoryOf({ memory, headless }: SessionRequest): BrowserMemory {
  return memory ?? (headless ? '1GiB' : '8GiB')
}

function profileColumns(profile: ReferredProfile | undefined) {
  return { profile_id: profile?.id ?? null, profile_save_changes: profile?.saveChanges ?? null }
}

function machineSpec(session: Session, request: SessionRequest, parts: MachineParts): MachineSpec {
  const { extensions, profile, certificates } = parts
  return {
    sessionId: session.id,
    headless: session.headless,
    stealth: session.stealth,
    gpu: session.gpu,
    kioskMode: session.kiosk_mode,
    viewport: windowOf(session.viewport),
    memory: session.memory,
    startUrl: session.start_url ?? undefined,
    chromePolicy: policiesWith(trusting(certificates, request.chrome_policy ?? {}), extensions),
    awaitsExtensions: extensions.length > 0,
    awaitsProfile: profile?.hasState ?? false,
  }
}

/** Chromium has a policy for certificates that it is to trust; a caller may have some of its own. */
function trusting(certificates: readonly string[], policy: Readonly<Record<string, unknown>>) {
  if (certificates.length === 0) return policy
  const { CACertificates: others } = policy
  return { ...policy, CACertificates: [...(Array.isArray(others) ? others : []), ...certificates] }
}

/** Chromium takes a policy of the wrong kind, or some pairs of them, for a reason to end: that is a fault of the request. */
function blamePolicies(error: unknown, { chrome_policy = {} }: SessionRequest): unknown {
  const hasNotStarted = error instanceof BerthError && error.code === 'session_start_failed'
  if (!hasNotStarted || Object.keys(chrome_policy).length === 0) return error
  const reason = 'the browser does not start with these policies.'
  return new BerthError('field_not_supported', { field: 'chrome_policy', reason }, { cause: error })
}
