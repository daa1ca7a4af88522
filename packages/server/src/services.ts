import type { Region } from '@berth/contract/browsers/browser.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { KnownKeys } from './access/known-keys.ts'
import { SessionAccess } from './access/session-access.ts'
import { SessionTokens } from './access/session-tokens.ts'
import { Relay } from './agent-link/relay.ts'
import type { BlobStore } from './blobs/blob-store.ts'
import type { Database } from './database/database.ts'
import type { Driver } from './drivers/driver.ts'
import type { EgressLink } from './egress-link/egress-link.ts'
import { OrganizationStore } from './features/organizations/organization-store.ts'
import { ProxyService } from './features/proxies/proxy-service.ts'
import { ProxyStore } from './features/proxies/proxy-store.ts'
import type { ProxyingConfig } from './features/proxies/proxying-config.ts'
import { ServiceHealth } from './features/service/service-health.ts'
import { SessionEnder } from './features/sessions/end-session.ts'
import { planName, planTags, planTelemetry } from './features/sessions/plain-changes.ts'
import { planProxyChange } from './features/sessions/proxy-change.ts'
import type { RestoreSession } from './features/sessions/session-change.ts'
import { SessionEgress } from './features/sessions/session-egress.ts'
import { SessionMachines } from './features/sessions/session-machines.ts'
import { SessionRecords } from './features/sessions/session-record.ts'
import { SessionService } from './features/sessions/session-service.ts'
import { SessionStore } from './features/sessions/session-store.ts'
import { planNavigation } from './features/sessions/start-url-change.ts'
import { SessionUpdater } from './features/sessions/update-session.ts'
import { ViewportChanges } from './features/sessions/viewport-change.ts'
import { DeletedProxies } from './jobs/follow-deleted-proxies.ts'
import { MemoryWatch } from './jobs/watch-memory.ts'
import { ProjectSecrets } from './secrets/project-secrets.ts'

export interface ServicesOptions {
  readonly database: Database
  readonly blobs: BlobStore
  readonly driver: Driver
  /** Tells this host's machines from those of other servers on the same database. */
  readonly driverId: string
  readonly egressIsUp: () => boolean
  readonly egress: EgressLink
  readonly proxying: ProxyingConfig
  readonly masterKey: string
  readonly region: Region
  readonly clock: Clock
  readonly logger: Logger
  readonly version: string
}

export type Services = ReturnType<typeof createServices>

/** Wires the server: who works with whom. */
export function createServices(options: ServicesOptions) {
  const { database, blobs, driver, driverId, egressIsUp, masterKey, region, clock, logger, version } = options
  const { pools, checkUrl, stealthProxy } = options.proxying
  const store = new SessionStore(database)
  const organizations = new OrganizationStore(database)
  const secrets = new ProjectSecrets(database, masterKey)
  const tokens = new SessionTokens(masterKey)
  const machines = new SessionMachines({ driver, store, logger })
  const proxyStore = new ProxyStore(database)
  const proxies = new ProxyService({ store: proxyStore, secrets, egress: options.egress, pools, checkUrl, clock })
  const egress = new SessionEgress({ store, proxies, egress: options.egress, stealthProxy })
  const ender = new SessionEnder({ machines, store, clock })
  const access = new SessionAccess(tokens, store)
  const viewport = new ViewportChanges(machines)
  const leave: RestoreSession = (session) => egress.change(session, session.proxy)
  const updater: SessionUpdater = new SessionUpdater({
    store,
    plans: [
      planName(store),
      planTags,
      planTelemetry,
      viewport.plan,
      planProxyChange({ proxies, egress, restore: (id) => updater.restore(id, [leave]) }),
      planNavigation(machines),
    ],
    restores: [leave, viewport.restore],
    logger,
  })
  const deletedProxies = new DeletedProxies({
    proxies: proxyStore,
    sessions: store,
    restore: (id) => updater.restore(id, [leave]),
    driverId,
    clock,
    logger,
  })
  proxies.onDeleted(() => deletedProxies.follow())
  const memoryWatch = new MemoryWatch({ driver, machines, logger })
  machines.onGone((id) => {
    memoryWatch
      .look(id)
      .then(() => ender.end(id))
      .catch((error: unknown) => logger.error({ err: error, sessionId: id }, 'could not end a session; trying again'))
  })

  return {
    logger,
    blobs,
    secrets,
    store,
    machines,
    ender,
    memoryWatch,
    proxies,
    egress,
    deletedProxies,
    access,
    organizations,
    keys: new KnownKeys(organizations, clock),
    sessions: new SessionService({ store, machines, ender, proxies, egress, driver, driverId, region, clock }),
    updater,
    records: new SessionRecords({ tokens, clock }),
    relay: new Relay({ access, machines, logger }),
    health: new ServiceHealth({ database, driver, egressIsUp, version }),
  }
}
