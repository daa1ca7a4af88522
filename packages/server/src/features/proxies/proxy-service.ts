import { createHash } from 'node:crypto'
import { newId, type ProjectId, type ProxyId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressProxy } from '@berth/contract/egress/egress-settings.ts'
import { hostPatternText, parseHostPattern } from '@berth/contract/egress/host-pattern.ts'
import { BerthError } from '@berth/contract/errors.ts'
import {
  type ManagedProxyType,
  managedProxyTypes,
  type ProxyConfigRequest,
  type ProxyCreateRequest,
} from '@berth/contract/proxies/proxy.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { StoredProxyConfig } from '../../database/tables.ts'
import type { EgressLink } from '../../egress-link/egress-link.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import { readCaBundle } from './ca-bundle.ts'
import type { ProxySecrets, StoredProxy } from './proxy.ts'
import { type ProxyPools, selectServers } from './proxy-pools.ts'
import type { ProxyFilter, ProxyStore } from './proxy-store.ts'

interface ProxyServiceOptions {
  readonly store: ProxyStore
  readonly secrets: ProjectSecrets
  readonly egress: EgressLink
  /** The operator's proxies for managed types. */
  readonly pools: ProxyPools
  /** A URL that responds with the client's address. */
  readonly checkUrl: string | undefined
  readonly jobs: JobQueue
  readonly clock: Clock
}

/** How a session refers to a proxy. */
export type ProxyTarget = { readonly id?: string | undefined; readonly name?: string | undefined }

export interface SelectableProxy {
  readonly id: ProxyId
  /** Whether the browser needs certificates for it at its start. */
  readonly hasCaBundle: boolean
}

/** Finds a proxy by id or name. `field` is the field of the request that names it. */
export type SelectProxy = (target: ProxyTarget, field: string) => Promise<SelectableProxy>

/**
 * A proxy in the form in which a session can use it. Unusable if it was deleted, or if the operator has no server for
 * it.
 */
export type UsableProxy = EgressProxy | 'deleted' | 'unavailable'

/** The rules of proxies. */
export class ProxyService {
  readonly #options: ProxyServiceOptions

  constructor(options: ProxyServiceOptions) {
    this.#options = options
  }

  /** The types and countries of the operator's proxies. */
  get offers(): readonly { readonly type: ManagedProxyType; readonly country: string | undefined }[] {
    return managedProxyTypes.flatMap((type) =>
      (this.#options.pools[type] ?? []).map(({ country }) => ({ type, country })),
    )
  }

  async create(projectId: ProjectId, request: ProxyCreateRequest): Promise<StoredProxy> {
    const { store, secrets, clock, pools } = this.#options
    const { type, config = {} } = request
    if (type !== 'custom') selectServers(pools, type, config)
    if (config.ca_bundle !== undefined) readCaBundle(config.ca_bundle)
    const now = clock.now()
    const id = newId('proxy', now)
    const { password, ca_bundle } = config
    const kept: ProxySecrets = { password, ca_bundle }
    const isSecret = password !== undefined || ca_bundle !== undefined
    return store.insert({
      id,
      project_id: projectId,
      type,
      name: request.name ?? null,
      protocol: request.protocol,
      bypass_hosts: JSON.stringify(normalized(request.bypass_hosts ?? [])),
      config: JSON.stringify(storedConfig(type, config)),
      sealed_secrets: isSecret ? await secrets.seal(projectId, JSON.stringify(kept), contextOf(id)) : null,
      created_at: now,
    })
  }

  list(filter: ProxyFilter, page: PageRequest): Promise<Page<StoredProxy>> {
    return this.#options.store.list(filter, page)
  }

  /** Names are not unique. A name of several proxies matches none of them. */
  async get(projectId: ProjectId, idOrName: string): Promise<StoredProxy> {
    const { store } = this.#options
    const byId = await store.find(projectId, idOrName)
    if (byId) return byId
    const [proxy, other] = await store.findByName(projectId, idOrName)
    if (other) {
      const reason = 'id_or_name: several active proxies of this project have this name; use the id.'
      throw new BerthError('invalid_input', { reason })
    }
    return found(proxy, idOrName)
  }

  async rename(projectId: ProjectId, idOrName: string, name: string): Promise<StoredProxy> {
    const { id } = await this.get(projectId, idOrName)
    return found(await this.#options.store.rename(projectId, id, name), idOrName)
  }

  /**
   * Sessions that use it continue without it, and get no connection on routes that use it. A job updates them. Resolves
   * with its id.
   */
  async delete(projectId: ProjectId, idOrName: string): Promise<ProxyId> {
    const { store, clock } = this.#options
    const { id } = await this.get(projectId, idOrName)
    if (await store.delete(projectId, id, clock.now(), this.#options)) return id
    await this.get(projectId, id)
    throw new BerthError('proxy_in_use')
  }

  /**
   * Measures whether the proxy works and stores the result as `status`. The result for a caller's own URL is not
   * stored, because the URL may be what fails.
   */
  async check(
    projectId: ProjectId,
    id: string,
    url: string | undefined,
  ): Promise<{ readonly proxy: StoredProxy; readonly latencyMilliseconds: number | undefined }> {
    const { store, clock } = this.#options
    const proxy = await this.get(projectId, id)
    const result = await this.#probe(proxy, url)
    if (result.outcome === 'not_permitted')
      throw new BerthError('invalid_input', { reason: 'url: must lead to a public address.' })

    const isReached = result.outcome === 'reached'
    const status = isReached ? 'available' : 'unavailable'
    const latencyMilliseconds = isReached ? result.latency_ms : undefined
    if (url !== undefined) return { proxy: { ...proxy, status }, latencyMilliseconds }
    const ipAddress = isReached ? result.ip_address : undefined
    const stored = await store.setHealth(projectId, proxy.id, { status, lastChecked: clock.now(), ipAddress })
    return { proxy: found(stored, id), latencyMilliseconds }
  }

  async #probe(proxy: StoredProxy, url: string | undefined): Promise<EgressProbeResult> {
    const { egress, checkUrl } = this.#options
    if (url !== undefined && !isWebAddress(url))
      throw new BerthError('invalid_input', { reason: 'url: must be an http or https address.' })
    const usable = await this.#usable(proxy)
    if (typeof usable === 'string') return { outcome: 'failed', failure: usable }
    return egress.probe({ proxy: usable, url: url ?? checkUrl, must_be_permitted: url !== undefined })
  }

  /** Finds a proxy by id or name. `field` is where the caller wrote it. */
  async select(projectId: ProjectId, { id, name }: ProxyTarget, field: string): Promise<SelectableProxy> {
    const { store } = this.#options
    if (name === undefined) return selectable(found(await store.find(projectId, id ?? ''), id ?? ''))
    const [proxy, other] = await store.findByName(projectId, name)
    const refuse = (rule: string) => new BerthError('invalid_input', { reason: `${field}.name: ${rule}.` })
    if (!proxy) throw refuse('no active proxy of this project has this name')
    if (other) throw refuse('several active proxies of this project have this name; use the id')
    return selectable(proxy)
  }

  /** Returns how egress uses the proxies. Ids of other projects are missing. */
  async usable(projectId: ProjectId, ids: readonly ProxyId[]): Promise<ReadonlyMap<ProxyId, UsableProxy>> {
    const proxies = await this.#options.store.listByIds(projectId, ids)
    return new Map(await Promise.all(proxies.map(async (proxy) => [proxy.id, await this.#usable(proxy)] as const)))
  }

  /** Returns the certificates, in DER, that a browser needs to trust traffic through these proxies. */
  async certificates(projectId: ProjectId, ids: readonly ProxyId[]): Promise<readonly Buffer[]> {
    const proxies = await this.#options.store.listByIds(projectId, ids)
    const bundles = await Promise.all(
      proxies.filter(({ config }) => config.has_ca_bundle).map(async (proxy) => (await this.#secrets(proxy)).ca_bundle),
    )
    return bundles.flatMap((bundle) => (bundle === undefined ? [] : readCaBundle(bundle)))
  }

  async #usable(proxy: StoredProxy): Promise<UsableProxy> {
    if (proxy.deleted_at) return 'deleted'
    const { id, type, protocol, config, bypass_hosts } = proxy
    if (type === 'custom') {
      const { host = '', port = 0, username } = config
      const upstream = { protocol, host, port, username, ...(await this.#secrets(proxy)) }
      return { upstreams: [upstream], bypass_hosts: [...bypass_hosts], is_operators: false }
    }
    try {
      const servers = selectServers(this.#options.pools, type, config)
      // Selects the same server each time, so that the exit address stays the same across sessions.
      const upstreams =
        type === 'isp' ? [servers[stableIndex(id, servers.length)] as (typeof servers)[number]] : servers
      return { upstreams, bypass_hosts: [...bypass_hosts], is_operators: true }
    } catch (error) {
      if (error instanceof BerthError) return 'unavailable'
      throw error
    }
  }

  async #secrets({ id, project_id, sealed_secrets }: StoredProxy): Promise<ProxySecrets> {
    if (!sealed_secrets) return {}
    return JSON.parse(await this.#options.secrets.unseal(project_id, sealed_secrets, contextOf(id))) as ProxySecrets
  }
}

function found(proxy: StoredProxy | undefined, id: string): StoredProxy {
  if (!proxy) throw new BerthError('proxy_not_found', { proxy: id })
  return proxy
}

function selectable({ id, config }: StoredProxy): SelectableProxy {
  return { id, hasCaBundle: config.has_ca_bundle === true }
}

function contextOf(id: ProxyId): string {
  return `proxy ${id}`
}

/** A managed proxy without a country gets the default country of its type. */
function storedConfig(type: StoredProxy['type'], config: ProxyConfigRequest): StoredProxyConfig {
  const { password, ca_bundle, ...shown } = config
  if (type === 'custom')
    return { ...shown, has_password: password !== undefined, has_ca_bundle: ca_bundle !== undefined }
  if (type === 'residential' || type === 'mobile') return shown
  return { ...shown, country: shown.country ?? 'US' }
}

function normalized(hosts: readonly string[]): string[] {
  const patterns = hosts.map((host) => parseHostPattern(host.trim())).filter((pattern) => pattern !== undefined)
  return [...new Set(patterns.map(hostPatternText))]
}

function isWebAddress(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && ['http:', 'https:'].includes(url.protocol) && url.hostname !== '' && url.username === ''
}

function stableIndex(id: string, count: number): number {
  return createHash('sha256').update(id).digest().readUInt32BE() % count
}
