import type { Region } from '@berth/contract/browsers/browser.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { ApiKeyCache } from './access/api-key-cache.ts'
import { SessionAccess } from './access/session-access.ts'
import { SessionTokens } from './access/session-tokens.ts'
import { Relay } from './agent-link/relay.ts'
import type { BlobStore } from './blobs/blob-store.ts'
import type { TemporaryFolders } from './blobs/temporary-folders.ts'
import type { Database } from './database/database.ts'
import type { Driver } from './drivers/driver.ts'
import type { EgressLink } from './egress-link/egress-link.ts'
import { ApiKeyService } from './features/api-keys/api-key-service.ts'
import { ApiKeyStore } from './features/api-keys/api-key-store.ts'
import { AuditJournal } from './features/audit/audit-journal.ts'
import { AuditService } from './features/audit/audit-service.ts'
import { AuditStore } from './features/audit/audit-store.ts'
import { RequestAudit } from './features/audit/request-audit.ts'
import { AuditExporter } from './features/audit-export/audit-exporter.ts'
import { ExportDestinationService } from './features/audit-export/export-destination-service.ts'
import { ExportDestinationStore } from './features/audit-export/export-destination-store.ts'
import { type AuditExportConfig, LateS3Target } from './features/audit-export/late-s3-target.ts'
import { CredentialProviderService } from './features/credential-providers/credential-provider-service.ts'
import { OnePasswordClient, type OnePasswordOptions } from './features/credential-providers/onepassword-client.ts'
import { ProviderStore } from './features/credential-providers/provider-store.ts'
import { CredentialService } from './features/credentials/credential-service.ts'
import { CredentialStore } from './features/credentials/credential-store.ts'
import { ChromeStoreService } from './features/extensions/chrome-store-service.ts'
import { ExtensionService } from './features/extensions/extension-service.ts'
import { ExtensionStore } from './features/extensions/extension-store.ts'
import { LimitService, type LimitsConfig } from './features/limits/limit-service.ts'
import { LimitStore } from './features/limits/limit-store.ts'
import { OrganizationStore } from './features/organizations/organization-store.ts'
import { ProfileService } from './features/profiles/profile-service.ts'
import { ProfileStates } from './features/profiles/profile-states.ts'
import { ProfileStore } from './features/profiles/profile-store.ts'
import { ProjectService } from './features/projects/project-service.ts'
import { ProjectStore } from './features/projects/project-store.ts'
import { ProxyService } from './features/proxies/proxy-service.ts'
import { ProxyStore } from './features/proxies/proxy-store.ts'
import type { ProxyingConfig } from './features/proxies/proxying-config.ts'

import { ServerHeartbeat } from './features/servers/server-heartbeat.ts'
import { ServerStore } from './features/servers/server-store.ts'
import { ServiceHealth } from './features/service/service-health.ts'
import { planEgressChange } from './features/sessions/egress-change.ts'
import { SessionEnder } from './features/sessions/end-session.ts'
import { planName, planTags, planTelemetry } from './features/sessions/plain-changes.ts'
import { SessionResolver } from './features/sessions/resolve-session.ts'
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

import { LostSessions } from './jobs/end-lost-sessions.ts'
import { DeletedProxies } from './jobs/follow-deleted-proxies.ts'

import type { JobQueue } from './jobs/job-runner.ts'
import { BlobSweep } from './jobs/sweep-blobs.ts'

import { MemoryWatch } from './jobs/watch-memory.ts'
import { ProjectSecrets } from './secrets/project-secrets.ts'

export interface ServicesOptions {
  readonly database: Database
  readonly blobs: BlobStore
  readonly temporaryFolders: TemporaryFolders
  /** The address from which the Chrome Web Store serves extensions. */
  readonly chromeStoreUrl: string
  readonly driver: Driver
  /** Distinguishes this host's machines from those of other servers on the same database. */
  readonly driverId: string
  readonly egressIsUp: () => boolean
  readonly egress: EgressLink
  readonly proxying: ProxyingConfig
  readonly jobs: JobQueue
  readonly masterKey: string
  readonly hasProjects: boolean
  readonly onePassword: OnePasswordOptions
  /** The folder for audit log entries that are not in the database yet, and their retention in the database. */
  readonly audit: { readonly folder: string; readonly retentionDays: number }
  readonly auditExport: AuditExportConfig
  readonly limits: LimitsConfig
  readonly region: Region
  readonly clock: Clock
  readonly logger: Logger
  readonly version: string
}

export type Services = ReturnType<typeof createServices>

/** Creates and connects all services. */
export function createServices(options: ServicesOptions) {
  const { temporaryFolders, chromeStoreUrl } = options
  const { database, blobs, driver, driverId, egressIsUp, jobs, masterKey, region, clock, logger, version } = options
  const { pools, checkUrl, stealthProxy } = options.proxying
  const store = new SessionStore(database)
  const resolver = new SessionResolver(store)
  const organizations = new OrganizationStore(database)
  const keys = new ApiKeyCache(organizations, clock)
  const limits = new LimitService({ store: new LimitStore(database), config: options.limits, clock })
  const projects = new ProjectService({
    store: new ProjectStore(database),
    keys,
    isEnabled: options.hasProjects,
    clock,
  })
  const audit = new AuditService({
    store: new AuditStore(database),
    journal: new AuditJournal(options.audit.folder, logger),
    retentionDays: options.audit.retentionDays,
    clock,
    logger,
  })
  const destinations = new ExportDestinationStore(database)
  const target = new LateS3Target(options.auditExport.endpoint)
  const { buckets } = options.auditExport
  const secrets = new ProjectSecrets(database, masterKey)
  const tokens = new SessionTokens(masterKey)
  const machines = new SessionMachines({ driver, store, logger })
  const proxyStore = new ProxyStore(database)
  const proxies = new ProxyService({ store: proxyStore, secrets, egress: options.egress, pools, checkUrl, jobs, clock })
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
  const access = new SessionAccess({ tokens, keys, organizations, resolver })
  const viewport = new ViewportChanges(machines)
  const leave: RestoreSession = (session) => egress.change(session, {})
  const updater: SessionUpdater = new SessionUpdater({
    store,
    resolver,
    plans: [
      planName(store),
      planTags,
      planTelemetry,
      viewport.plan,
      planEgressChange({ proxies, egress, restore: (id) => updater.restore(id, [leave]) }),
      // Loading a profile has to come late, because it cannot be undone.
      sessionProfiles.plan,
      planNavigation(machines),
    ],
    restores: [leave, viewport.restore, sessionProfiles.restore],
    logger,
  })
  const deletedProxies = new DeletedProxies({
    sessions: store,
    restore: (id) => updater.restore(id, [leave]),
    serverId: driverId,
    jobs,
  })
  // The caller does not wait for sessions that are starting. The job does.
  proxies.onDeleted((id) => deletedProxies.detach(id).catch(() => {}))
  const servers = new ServerStore(database)
  const memoryWatch = new MemoryWatch({ driver, machines, logger })
  machines.onGone((id) => {
    memoryWatch
      .check(id)
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
    resolver,
    machines,
    ender,
    memoryWatch,
    proxies,
    egress,
    deletedProxies,
    lostSessions: new LostSessions({ servers, serverId: driverId, logger }),
    heartbeat: new ServerHeartbeat({ servers, serverId: driverId, logger }),
    access,
    profiles,
    organizations,
    keys,
    projects,
    audit,
    exportDestinations: new ExportDestinationService({ store: destinations, audit, target, buckets, clock }),
    auditExporter: new AuditExporter({ store: destinations, audit, target, clock, logger }),
    requestAudit: new RequestAudit(audit),
    credentials: new CredentialService({ store: new CredentialStore(database), secrets, clock }),
    credentialProviders: new CredentialProviderService({
      store: new ProviderStore(database),
      secrets,
      client: new OnePasswordClient(options.onePassword),
      clock,
    }),
    limits,
    apiKeys: new ApiKeyService({ store: new ApiKeyStore(database), projects, keys, clock }),
    sessions: new SessionService({
      store,
      resolver,
      machines,
      profiles: sessionProfiles,
      sessionExtensions,
      limits,
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
