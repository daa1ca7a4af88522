import type { Region } from '@berth/contract/browsers/browser.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { KnownKeys } from './access/known-keys.ts'
import { SessionAccess } from './access/session-access.ts'
import { SessionTokens } from './access/session-tokens.ts'
import { Relay } from './agent-link/relay.ts'
import type { BlobStore } from './blobs/blob-store.ts'
import type { TemporaryFolders } from './blobs/temporary-folders.ts'
import type { Database } from './database/database.ts'
import type { Driver } from './drivers/driver.ts'
import type { EgressLink } from './egress-link/egress-link.ts'
import { ChromeStoreService } from './features/extensions/chrome-store-service.ts'
import { ExtensionService } from './features/extensions/extension-service.ts'
import { ExtensionStore } from './features/extensions/extension-store.ts'
import { OrganizationStore } from './features/organizations/organization-store.ts'
import { ProfileService } from './features/profiles/profile-service.ts'
import { ProfileStates } from './features/profiles/profile-states.ts'
import { ProfileStore } from './features/profiles/profile-store.ts'
import { ProxyService } from './features/proxies/proxy-service.ts'
import { ProxyStore } from './features/proxies/proxy-store.ts'
import type { ProxyingConfig } from './features/proxies/proxying-config.ts'

import { ServiceHealth } from './features/service/service-health.ts'
import { SessionEnder } from './features/sessions/end-session.ts'
import { planName, planTags, planTelemetry } from './features/sessions/plain-changes.ts'
import { planProxyChange } from './features/sessions/proxy-change.ts'
import type { RestoreSession } from './features/sessions/session-change.ts'
import { SessionEgress } from './features/sessions/session-egress.ts'
import { SessionExtensions } from './features/sessions/session-extensions.ts'
import { SessionMachines } from './features/sessions/session-machines.ts'
import { SessionProfiles } from './features/sessions/session-profiles.ts'
import { SessionRecords } from './features/sessions/session-record.ts'
import { SessionService } from './features/sessions/session-service.ts'
import { SessionStore } from './features/sessions/session-store.ts'
import { planNavigation } from './features/sessions/start-url-change.ts'
import { SessionUpdater } from './features/sessions/update-session.ts'
import { ViewportChanges } from './features/sessions/viewport-change.ts'

import { DeletedProxies } from './jobs/follow-deleted-proxies.ts'

import { BlobSweep } from './jobs/sweep-blobs.ts'

import { MemoryWatch } from './jobs/watch-memory.ts'
import { ProjectSecrets } from './secrets/project-secrets.ts'

export interface ServicesOptions {
  readonly database: Database
  readonly blobs: BlobStore
  readonly temporaryFolders: TemporaryFolders
  /** Where the Chrome Web Store gives out extensions. */
  readonly chromeStoreUrl: string
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
  const { temporaryFolders, chromeStoreUrl } = options
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
  const profiles = new ProfileService({
    store: new ProfileStore(database),
    states: new ProfileStates({ blobs, secrets }),
    clock,
  })
  const sessionProfiles = new SessionProfiles({ profiles, store, machines, logger })
  const ender = new SessionEnder({ machines, profiles: sessionProfiles, store, clock })
  const extensions = new ExtensionService({
    store: new ExtensionStore(database),
    blobs,
    secrets,
    temporaryFolders,
    clock,
  })
  const sessionExtensions = new SessionExtensions({ machines, driver, extensions, temporaryFolders })
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
      // It cannot be taken back.
      sessionProfiles.plan,
      planNavigation(machines),
    ],
    restores: [leave, viewport.restore, sessionProfiles.restore],
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
    temporaryFolders,
    extensions,
    sessionExtensions,
    chromeStore: new ChromeStoreService({ storeUrl: chromeStoreUrl, temporaryFolders }),
    store,
    machines,
    ender,
    memoryWatch,
    proxies,
    egress,
    deletedProxies,
    access,
    profiles,
    organizations,
    keys: new KnownKeys(organizations, clock),
    sessions: new SessionService({
      store,
      machines,
      profiles: sessionProfiles,
      sessionExtensions,
      proxies,
      egress,
      ender,
      driver,
      driverId,
      region,
      clock,
    }),
    updater,
    records: new SessionRecords({ tokens, profiles, clock }),
    relay: new Relay({ access, machines, logger }),
    blobSweep: new BlobSweep({ blobs, owners: [profiles, extensions], clock, logger }),
    health: new ServiceHealth({ database, driver, egressIsUp, version }),
  }
}
