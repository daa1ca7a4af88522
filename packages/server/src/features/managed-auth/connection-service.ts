import { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import {
  type AuthConnectionId,
  newId,
  type ProfileId,
  type ProjectId,
  type SessionId,
} from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import {
  type ConnectionCreateRequest,
  type ConnectionUpdateRequest,
  type CredentialReference,
  defaultHealthCheckSeconds,
  type ManagedAuthBrowserConfig,
  type TimelineType,
} from '@berth/contract/managed-auth/connection.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { CredentialProviderService } from '../credential-providers/credential-provider-service.ts'
import type { CredentialService } from '../credentials/credential-service.ts'
import type { LimitService } from '../limits/limit-service.ts'
import type { ProfileService } from '../profiles/profile-service.ts'
import type { FlowLinks } from './connection-record.ts'
import type { ConnectionFilter, ConnectionStore, StoredConnection } from './connection-store.ts'
import type { FlowRunner } from './flows/flow-runner.ts'
import type { FlowSecrets } from './flows/flow-secrets.ts'
import type { FlowSignals } from './flows/flow-signals.ts'
import type { FlowStore, StoredFlow } from './flows/flow-store.ts'
import { hostedLoginPath } from './hosted/hosted-path.ts'
import type { TimelineRow, TimelineStore } from './timeline-store.ts'

interface ConnectionServiceOptions {
  readonly store: ConnectionStore
  readonly flows: FlowStore
  readonly timeline: TimelineStore
  readonly runner: FlowRunner
  readonly signals: FlowSignals
  readonly secrets: FlowSecrets
  readonly credentials: CredentialService
  readonly providers: CredentialProviderService
  readonly profiles: ProfileService
  readonly limits: LimitService
  /** Throws if such a browser cannot be created. */
  readonly checkBrowser: (projectId: ProjectId, request: BrowserRequest) => Promise<unknown>
  /** The id of the proxy in a request. */
  readonly proxyId: (
    projectId: ProjectId,
    proxy: { id?: string | undefined; name?: string | undefined },
  ) => Promise<string>
  /** Undefined if the session is gone. */
  readonly liveViewUrl: (projectId: ProjectId, id: SessionId, publicUrl: string) => Promise<string | undefined>
  readonly clock: Clock
}

export interface ConnectionWithFlow {
  readonly connection: StoredConnection
  readonly flow: StoredFlow | undefined
}

type BrowserFields = Pick<ConnectionUpdateRequest, 'browser' | 'proxy' | 'browser_telemetry'>

/** The rules of connections, without those of their flows. */
export class ConnectionService {
  readonly #options: ConnectionServiceOptions

  constructor(options: ConnectionServiceOptions) {
    this.#options = options
  }

  async create(projectId: ProjectId, request: ConnectionCreateRequest): Promise<ConnectionWithFlow> {
    const { store, profiles, limits, clock } = this.#options
    const interval = this.#interval(request.health_check_interval)
    const credential = await this.#credentialColumns(projectId, request.credential)
    const browser = await this.browserOf(projectId, {}, request)
    const profile = await profiles.ensure(projectId, request.profile_name)
    const now = clock.now()
    const id = newId('auth-connection', now)
    const { allowed_domains: allowed } = request
    await limits.takeConnectionSlot(projectId, (database) =>
      store.insert(
        {
          id,
          project_id: projectId,
          domain: request.domain,
          profile_name: request.profile_name,
          profile_id: profile.id,
          login_url: request.login_url ?? null,
          ...credential,
          allowed_domains: allowed ? JSON.stringify(allowed) : null,
          health_check_interval: interval ?? Math.max(defaultHealthCheckSeconds, limits.minHealthCheckSeconds),
          health_checks: request.health_checks ?? true,
          auto_reauth: request.auto_reauth ?? true,
          save_credentials: request.save_credentials ?? true,
          record_session: request.record_session ?? false,
          browser: JSON.stringify(browser),
          status: 'NEEDS_AUTH',
          last_auth_check_at: null,
          authenticated_at: null,
          post_login_url: null,
          evidence: null,
          requirements: null,
          refused_credential: null,
          next_check_at: null,
          created_at: now,
          updated_at: now,
        },
        database,
      ),
    )
    return { connection: await this.get(projectId, id), flow: undefined }
  }

  async list(filter: ConnectionFilter, page: PageRequest): Promise<Page<ConnectionWithFlow>> {
    const { store, flows } = this.#options
    const { items, hasMore } = await store.list(filter, page)
    const ids = items.map(({ id }) => id)
    await this.expire(...ids)
    const newest = await flows.listNewest(ids)
    return { items: items.map((connection) => ({ connection, flow: newest.get(connection.id) })), hasMore }
  }

  async get(projectId: ProjectId, id: string): Promise<StoredConnection> {
    return (await this.#options.store.find(projectId, id)) ?? throwNotFound(id)
  }

  async getWithFlow(projectId: ProjectId, id: string): Promise<ConnectionWithFlow> {
    const connection = await this.get(projectId, id)
    const flow = await this.newestFlow(connection)
    // Read again, because the flow's progress is part of its state.
    return { connection: await this.get(projectId, id), flow }
  }

  /** For callers without a project, who have a code. */
  async getAny(id: string): Promise<StoredConnection> {
    return (await this.findAny(id)) ?? throwNotFound(id)
  }

  async findAny(id: string): Promise<StoredConnection | undefined> {
    return this.#options.store.findById(id as AuthConnectionId)
  }

  async exists({ id }: StoredConnection): Promise<boolean> {
    return (await this.findAny(id)) !== undefined
  }

  async update(projectId: ProjectId, id: string, change: ConnectionUpdateRequest): Promise<ConnectionWithFlow> {
    const { store, clock } = this.#options
    const before = await this.get(projectId, id)
    const { health_checks, auto_reauth, save_credentials, record_session, login_url, allowed_domains } = change
    const interval = this.#interval(change.health_check_interval)
    const hasBrowser = change.browser ?? change.proxy ?? change.browser_telemetry
    const after = { ...before, ...withoutAbsent({ health_checks, health_check_interval: interval }) }
    const now = clock.now()
    const updated = await store.update(projectId, id, {
      ...withoutAbsent({
        health_checks,
        auto_reauth,
        save_credentials,
        record_session,
        health_check_interval: interval,
      }),
      ...(login_url !== undefined && { login_url: login_url || null }),
      ...(allowed_domains && { allowed_domains: JSON.stringify(allowed_domains) }),
      ...(change.credential && {
        ...(await this.#credentialColumns(projectId, change.credential)),
        refused_credential: null,
        ...(before.requirements && {
          requirements: JSON.stringify(before.requirements.filter((need) => need !== 'customer_input')),
        }),
      }),
      ...(hasBrowser !== undefined && {
        browser: JSON.stringify(await this.browserOf(projectId, before.browser, change)),
      }),
      ...((health_checks !== undefined || interval !== undefined) && { next_check_at: nextCheckOf(after, now) }),
      updated_at: now,
    })
    if (!updated) throwNotFound(id)
    return this.getWithFlow(projectId, id)
  }

  /** Cancels its flow. The profile stays. */
  async delete(projectId: ProjectId, id: string): Promise<void> {
    const { store, runner, clock } = this.#options
    const deleted = (await store.delete(projectId, id, clock.now())) ?? throwNotFound(id)
    if (deleted.canceled) await runner.stop(deleted.canceled)
  }

  async listTimeline(
    projectId: ProjectId,
    id: string,
    { type, page }: { readonly type: TimelineType | undefined; readonly page: PageRequest },
  ): Promise<Page<TimelineRow>> {
    const connection = await this.get(projectId, id)
    await this.expire(connection.id)
    return this.#options.timeline.list(connection.id, type, page)
  }

  /** Ends the flow if it has expired. */
  async newestFlow({ id }: StoredConnection): Promise<StoredFlow | undefined> {
    await this.expire(id)
    return (await this.#options.flows.listNewest([id])).get(id)
  }

  async expire(...ids: readonly AuthConnectionId[]): Promise<void> {
    const { flows, runner, clock } = this.#options
    for (const flow of await flows.expire(clock.now(), ids)) void runner.stop(flow)
  }

  /** The profile of the connection. A deleted one is created again. */
  async profileOf({ id, project_id, profile_id, profile_name }: StoredConnection): Promise<ProfileId> {
    if (profile_id) return profile_id
    const { profiles, store } = this.#options
    const profile = await profiles.ensure(project_id, profile_name)
    await store.note(id, { profile_id: profile.id })
    return profile.id
  }

  /** The addresses of the flow for a person, while it is in progress. */
  async linksOf(projectId: ProjectId, flow: StoredFlow | undefined, publicUrl: string): Promise<FlowLinks> {
    if (flow?.status !== 'IN_PROGRESS') return { hostedUrl: undefined, liveViewUrl: undefined }
    const { secrets, liveViewUrl } = this.#options
    const { sealed_handoff, session_id } = flow
    const code = sealed_handoff ? await secrets.openCode(projectId, flow.id, sealed_handoff) : undefined
    return {
      hostedUrl: hostedUrl(publicUrl, flow.connection_id, code),
      liveViewUrl: session_id ? await liveViewUrl(projectId, session_id, publicUrl) : undefined,
    }
  }

  /** Merges the requested browser settings with the existing ones. Throws if no such browser can be created. */
  async browserOf(
    projectId: ProjectId,
    before: ManagedAuthBrowserConfig,
    { browser = {}, proxy, browser_telemetry }: BrowserFields,
  ): Promise<ManagedAuthBrowserConfig> {
    const wanted = withoutAbsent({
      ...browser,
      ...(proxy && { proxy }),
      ...(browser_telemetry !== undefined && { telemetry: browser_telemetry }),
    })
    const merged: ManagedAuthBrowserConfig = { ...before, ...wanted }
    const { proxy: target, region, stealth, telemetry } = merged
    const request = BrowserRequest.parse({
      stealth: stealth ?? true,
      ...(target && { proxy: target }),
      ...(region && { region }),
      ...(telemetry && { telemetry }),
    })
    await this.#options.checkBrowser(projectId, request)
    // A name may refer to another proxy later.
    if (target?.name === undefined) return merged
    return { ...merged, proxy: { id: await this.#options.proxyId(projectId, target) } }
  }

  #interval(wanted: number | undefined): number | undefined {
    const { minHealthCheckSeconds: minimum } = this.#options.limits
    if (wanted !== undefined && wanted < minimum) {
      throw new BerthError('invalid_input', { reason: `health_check_interval: must be at least ${minimum}.` })
    }
    return wanted
  }

  async #credentialColumns(projectId: ProjectId, reference: CredentialReference | undefined) {
    const none = {
      credential_id: null,
      credential_provider_id: null,
      credential_path: null,
      credential_auto: false,
    }
    if (!reference) return none
    const { name, provider = '', path = null, auto = false } = reference
    if (name === undefined) {
      const known = await this.#options.providers.findForProject(projectId, provider)
      if (!known) throw notThere('provider', 'no credential provider of the organization has this name.')
      return { ...none, credential_provider_id: known.id, credential_path: path, credential_auto: auto }
    }
    const credential = await this.#options.credentials.findByName(projectId, name)
    if (!credential) throw notThere('name', 'no credential of the project has this name.')
    return { ...none, credential_id: credential.id }
  }
}

export function hostedUrl(publicUrl: string, id: AuthConnectionId, code: string | undefined): string {
  return `${publicUrl}${hostedLoginPath}/${id}${code === undefined ? '' : `?code=${code}`}`
}

function nextCheckOf(
  connection: Pick<
    StoredConnection,
    'authenticated_at' | 'health_checks' | 'health_check_interval' | 'last_auth_check_at'
  >,
  now: Date,
): Date | null {
  const { authenticated_at, health_checks, health_check_interval: seconds, last_auth_check_at: last } = connection
  if (!health_checks || authenticated_at === null) return null
  return new Date(Math.max(now.getTime(), (last ?? now).getTime() + seconds * 1000))
}

function notThere(field: string, rule: string): BerthError {
  return new BerthError('invalid_input', { reason: `credential.${field}: ${rule}` })
}

function throwNotFound(connection: string): never {
  throw new BerthError('auth_connection_not_found', { connection })
}

function withoutAbsent<Fields extends object>(fields: Fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }
}
