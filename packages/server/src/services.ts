import { fetchPage, takeThumbnail } from '@berth/contract/agent/agent-endpoints.ts'
import type { Region } from '@berth/contract/browsers/browser.ts'
import type { OtlpDestinationId, SessionId } from '@berth/contract/common/ids.ts'
import { parseAllowList } from '@berth/contract/egress/allow-list.ts'
import { ReplayRequest } from '@berth/contract/replays/replay.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { ApiKeyCache } from './access/api-key-cache.ts'
import type { OAuthConfig } from './access/oauth/oauth-config.ts'
import { OAuthTokens } from './access/oauth/oauth-tokens.ts'
import { ReplayTokens } from './access/replay-tokens.ts'
import { SessionAccess } from './access/session-access.ts'
import { SessionTokens } from './access/session-tokens.ts'
import { Relay } from './agent-link/relay/relay.ts'
import { SessionConnections } from './agent-link/relay/session-connections.ts'
import type { Blobs } from './blobs/blobs.ts'
import { SealedParts } from './blobs/sealed-parts.ts'
import type { TemporaryFolders } from './blobs/temporary-folders.ts'
import { PeerSignature } from './cluster/peers/peer-signature.ts'
import { Peers } from './cluster/peers/peers.ts'
import { SessionForwarding } from './cluster/session-forwarding.ts'
import { DatabaseSessionLocks } from './cluster/session-locks.ts'
import { SharedBlobs } from './cluster/shared-blobs.ts'
import type { Database } from './database/database.ts'
import type { Driver } from './drivers/driver.ts'
import type { EgressLink } from './egress-link/egress-link.ts'
import { ApiKeyService } from './features/api-keys/api-key-service.ts'
import { ApiKeyStore } from './features/api-keys/api-key-store.ts'
import { createAppServices } from './features/apps/create-app-services.ts'
import { rehearse } from './features/apps/machines/rehearse.ts'
import { AuditJournal } from './features/audit/audit-journal.ts'
import { AuditService } from './features/audit/audit-service.ts'
import { AuditStore } from './features/audit/audit-store.ts'
import { RequestAudit } from './features/audit/request-audit.ts'
import { AuditExporter } from './features/audit-export/audit-exporter.ts'
import { ExportDestinationService } from './features/audit-export/export-destination-service.ts'
import { ExportDestinationStore } from './features/audit-export/export-destination-store.ts'
import { type AuditExportConfig, LazyS3Target } from './features/audit-export/lazy-s3-target.ts'
import { AnalysisRunner } from './features/config-registry/analysis-runner.ts'
import { AnalysisStore } from './features/config-registry/analysis-store.ts'
import { type ConfigRegistryConfig, ConfigRegistryService } from './features/config-registry/config-registry-service.ts'
import { RunStore } from './features/config-registry/run-store.ts'
import { AnalysisSessions } from './features/config-registry/visits/analysis-sessions.ts'
import { WorkloadTrials } from './features/config-registry/workloads/workload-trials.ts'
import { CredentialProviderService } from './features/credential-providers/credential-provider-service.ts'
import { OnePasswordClient, type OnePasswordOptions } from './features/credential-providers/onepassword-client.ts'
import { ProviderStore } from './features/credential-providers/provider-store.ts'
import { CredentialService } from './features/credentials/credential-service.ts'
import { CredentialStore } from './features/credentials/credential-store.ts'
import { CreateStatistics } from './features/dashboard/create-statistics.ts'
import { CreateStore } from './features/dashboard/create-store.ts'
import { OverviewService } from './features/dashboard/overview-service.ts'
import { OverviewStore } from './features/dashboard/overview-store.ts'
import { ProjectChanges } from './features/dashboard/project-changes.ts'
import { SharedProjectChanges } from './features/dashboard/shared-project-changes.ts'
import { SignInService } from './features/dashboard/sign-in-service.ts'
import { SignInStore } from './features/dashboard/sign-in-store.ts'
import { ThumbnailService } from './features/dashboard/thumbnail-service.ts'
import { ChromeStoreService } from './features/extensions/chrome-store-service.ts'
import { ExtensionService } from './features/extensions/extension-service.ts'
import { ExtensionStore } from './features/extensions/extension-store.ts'
import { LimitService, type LimitsConfig } from './features/limits/limit-service.ts'
import { LimitStore } from './features/limits/limit-store.ts'
import { createManagedAuth } from './features/managed-auth/create-managed-auth.ts'
import { OrganizationStore } from './features/organizations/organization-store.ts'
import { OtlpDeliveryHealth } from './features/otlp/otlp-delivery-health.ts'
import { OtlpDestinationService } from './features/otlp/otlp-destination-service.ts'
import { OtlpDestinationStore } from './features/otlp/otlp-destination-store.ts'
import { OtlpExporter } from './features/otlp/otlp-exporter.ts'
import { ProfileService } from './features/profiles/profile-service.ts'
import { ProfileStates } from './features/profiles/profile-states.ts'
import { ProfileStore } from './features/profiles/profile-store.ts'
import { ProjectService } from './features/projects/project-service.ts'
import { ProjectStore } from './features/projects/project-store.ts'
import { ProxyService } from './features/proxies/proxy-service.ts'
import { ProxyStore } from './features/proxies/proxy-store.ts'
import type { ProxyingConfig } from './features/proxies/proxying-config.ts'
import { ContentService } from './features/search/contents/content-service.ts'
import { PageContents } from './features/search/contents/page-contents.ts'
import type { PageSessions } from './features/search/contents/page-sessions.ts'
import { Extractor } from './features/search/extraction/extractor.ts'
import type { SearchConfig } from './features/search/providers/known-providers.ts'
import { SearchExpiry } from './features/search/search-expiry.ts'
import { SearchService } from './features/search/search-service.ts'
import { SearchStore } from './features/search/search-store.ts'
import { ServerHeartbeat } from './features/servers/server-heartbeat.ts'
import {
  type KnownServer,
  limitsOfHosts,
  limitsOfSharedMachines,
  ServerStore,
} from './features/servers/server-store.ts'
import { ServiceHealth } from './features/service/service-health.ts'
import { CaptchaSolving } from './features/sessions/captchas/captcha-solving.ts'
import type { CaptchaSolverConfig } from './features/sessions/captchas/solver-client.ts'
import { ReadyMachines } from './features/sessions/create/claim-ready-machine.ts'
import { SessionCreator } from './features/sessions/create/create-session.ts'
import { SessionProvisioner } from './features/sessions/create/provision-session.ts'
import { SessionRequests } from './features/sessions/create/session-request.ts'
import { DownloadService, type DownloadsConfig } from './features/sessions/downloads/download-service.ts'
import { DownloadStore } from './features/sessions/downloads/download-store.ts'
import { SessionTerminator } from './features/sessions/end/end-session.ts'
import { SessionExtensions } from './features/sessions/launch-inputs/session-extensions.ts'
import { SessionProfiles } from './features/sessions/launch-inputs/session-profiles.ts'
import { LifecycleEvents } from './features/sessions/machines/lifecycle-events.ts'
import { SessionRecovery } from './features/sessions/machines/recover-sessions.ts'
import { SessionEgress } from './features/sessions/machines/session-egress.ts'
import { SessionHandovers } from './features/sessions/machines/session-handovers.ts'
import { SessionMachines } from './features/sessions/machines/session-machines.ts'
import { StrayMachines } from './features/sessions/machines/stray-machines.ts'
import { FillStore } from './features/sessions/pools/fill-store.ts'
import { LeaseReturns } from './features/sessions/pools/lease-returns.ts'
import { LeaseService } from './features/sessions/pools/lease-service.ts'
import { LeaseStore } from './features/sessions/pools/lease-store.ts'
import { PoolFiller } from './features/sessions/pools/pool-filler.ts'
import { PoolService } from './features/sessions/pools/pool-service.ts'
import { PoolSignals } from './features/sessions/pools/pool-signals.ts'
import { PoolStore } from './features/sessions/pools/pool-store.ts'
import { PoolUpkeep } from './features/sessions/pools/pool-upkeep.ts'
import { SessionResolver } from './features/sessions/records/resolve-session.ts'
import { SessionMoves } from './features/sessions/records/session-moves.ts'
import { SessionRecords } from './features/sessions/records/session-record.ts'
import { SessionStore } from './features/sessions/records/session-store.ts'
import { ReplayParts } from './features/sessions/replays/replay-parts.ts'
import { ReplayService, type ReplaysConfig } from './features/sessions/replays/replay-service.ts'
import { ReplayStore } from './features/sessions/replays/replay-store.ts'
import { rehearseBrowser } from './features/sessions/reserve/rehearse-browser.ts'
import { Reserve, type ReserveOptions } from './features/sessions/reserve/reserve.ts'
import { ReserveStore } from './features/sessions/reserve/reserve-store.ts'
import { SessionService } from './features/sessions/session-service.ts'
import { planEgressChange } from './features/sessions/update/egress-change.ts'
import { planName, planTags, planTelemetry, restoreTelemetry } from './features/sessions/update/plain-changes.ts'
import type { RestoreSession } from './features/sessions/update/session-change.ts'
import { planNavigation } from './features/sessions/update/start-url-change.ts'
import { SessionUpdater } from './features/sessions/update/update-session.ts'
import { ViewportChanges } from './features/sessions/update/viewport-change.ts'
import { SessionTelemetry } from './features/telemetry/session-telemetry-service.ts'
import { TelemetryService } from './features/telemetry/telemetry-service.ts'
import { TelemetryStore } from './features/telemetry/telemetry-store.ts'
import { TelemetryWriter } from './features/telemetry/telemetry-writer.ts'
import { createVaultServices } from './features/vaults/create-vault-services.ts'
import { DeliveryStore } from './features/webhooks/delivery-store.ts'
import { WebhookDeliverer } from './features/webhooks/webhook-deliverer.ts'
import { WebhookSecrets } from './features/webhooks/webhook-secrets.ts'
import { WebhookService } from './features/webhooks/webhook-service.ts'
import { WebhookStore } from './features/webhooks/webhook-store.ts'
import type { Finding } from './host-checks/host-checks.ts'
import { OpenRequests } from './ingress/open-requests.ts'
import { LostSessions } from './jobs/end-lost-sessions.ts'
import { DeletedProxies } from './jobs/follow-deleted-proxies.ts'
import type { JobQueue } from './jobs/job-runner.ts'
import { BlobSweep } from './jobs/sweep-blobs.ts'
import { MemoryWatch } from './jobs/watch-memory.ts'
import { ModelClient, type ModelConfig } from './models/model-client.ts'
import { OutboundGuard } from './outbound/outbound-guard.ts'
import { ProjectSecrets } from './secrets/project-secrets.ts'

export interface ServicesOptions {
  readonly database: Database
  readonly blobs: Blobs
  readonly temporaryFolders: TemporaryFolders
  /** The address from which the Chrome Web Store serves extensions. */
  readonly chromeStoreUrl: string
  readonly driver: Driver
  /** Distinguishes this host's machines from those of other servers on the same database. */
  readonly driverId: string
  /** The address where other servers of the database reach this one. Absent if there are none. */
  readonly serverAddress?: string | undefined
  readonly connectionString: string
  /** Called with the present servers of the database when they change. */
  readonly onServers?: (servers: readonly KnownServer[]) => Promise<void>
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
  readonly telemetryRetentionDays: number
  /** How long deliveries are kept, and the time limit of an endpoint's response. */
  readonly webhooks: { readonly retentionDays: number; readonly attemptLimitMilliseconds?: number }
  readonly search: SearchConfig
  readonly replays: ReplaysConfig
  readonly downloads: DownloadsConfig
  readonly limits: LimitsConfig
  readonly configRegistry: ConfigRegistryConfig
  /** How long the machine of an app is kept after its last invocation. */
  readonly warmAppSeconds: number
  readonly gitHubUrl: string
  /** The model that tries the intents of analyses. */
  readonly model: ModelConfig | undefined
  readonly loginModel: ModelConfig | undefined
  readonly captchaSolver: CaptchaSolverConfig | undefined
  readonly egressAllow: readonly string[]
  /** When absent, only API keys are accepted. */
  readonly oauth: OAuthConfig | undefined
  readonly region: Region
  /**
   * The time without activity after which the machine of a session is frozen. When absent, machines are never frozen.
   */
  readonly standbyMilliseconds: number | undefined
  readonly reserve: Pick<ReserveOptions, 'config' | 'settleMilliseconds'> & {
    /** Defaults to the real operations. */
    readonly rehearseApp?: typeof rehearse
  }
  /** The findings of `./berth doctor`, if sessions run on this host. */
  readonly examineHost?: () => Promise<readonly Finding[]>
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
  const { areMachinesShared } = driver.capabilities
  const servers = new ServerStore(database, areMachinesShared ? limitsOfSharedMachines : limitsOfHosts)
  const store = new SessionStore(database, driverId)
  const resolver = new SessionResolver(store)
  const organizations = new OrganizationStore(database)
  const keys = new ApiKeyCache(organizations, clock)
  const isShared = options.serverAddress !== undefined
  const limits = new LimitService({ store: new LimitStore(database), config: options.limits, clock, isShared })
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
  const target = new LazyS3Target(options.auditExport.endpoint)
  const { buckets } = options.auditExport
  const secrets = new ProjectSecrets(database, masterKey)
  const tokens = new SessionTokens(masterKey)
  const events = new LifecycleEvents()
  const proxyStore = new ProxyStore(database)
  const proxies = new ProxyService({ store: proxyStore, secrets, egress: options.egress, pools, checkUrl, jobs, clock })
  const egress = new SessionEgress({ proxies, egress: options.egress, stealthProxy })
  const telemetryStore = new TelemetryStore(database)
  const sessionTelemetry = new SessionTelemetry({
    store: telemetryStore,
    writer: new TelemetryWriter(telemetryStore),
    clock,
    logger,
  })
  const guard = new OutboundGuard(parseAllowList(options.egressAllow))
  const oauth = options.oauth && new OAuthTokens({ config: options.oauth, keys, guard, clock, logger })
  const otlpStore = new OtlpDestinationStore(database)
  const otlpDestinations = new OtlpDestinationService({ store: otlpStore, secrets, guard, clock })
  const otlpHealth = new OtlpDeliveryHealth({ store: otlpStore, clock, logger })
  const otlpExporter = new OtlpExporter({
    store: otlpStore,
    destinations: otlpDestinations,
    health: otlpHealth,
    guard,
    version,
    logger,
  })
  sessionTelemetry.onConfigured((id, config) => {
    const destination = config?.export?.otlp?.destination as OtlpDestinationId | undefined
    if (destination) otlpExporter.bind(id, destination)
  })
  sessionTelemetry.onStored((id, stored) => otlpExporter.export(id, stored))
  events.on('sessionEnded', (id) => otlpExporter.unbind(id))
  const webhookDeliveries = new DeliveryStore(database, driverId)
  const webhookSecrets = new WebhookSecrets(secrets)
  const webhooks = new WebhookService({
    store: new WebhookStore(database),
    deliveries: webhookDeliveries,
    secrets: webhookSecrets,
    guard,
    retentionDays: options.webhooks.retentionDays,
    clock,
    logger,
  })
  const webhookDeliverer = new WebhookDeliverer({
    store: webhookDeliveries,
    secrets: webhookSecrets,
    guard,
    attemptLimitMilliseconds: options.webhooks.attemptLimitMilliseconds,
    clock,
    logger,
    version,
  })
  const captchas = new CaptchaSolving({
    config: options.captchaSolver,
    machines: () => machines,
    clock,
    logger,
  })
  events.on('captchaFound', (id, task) => void captchas.take(id, task))
  events.on('sessionEnded', (id) => captchas.forget(id))
  const machines: SessionMachines = new SessionMachines({
    driver,
    store,
    egress,
    egressLink: options.egress,
    events,
    standbyMilliseconds: options.standbyMilliseconds,
    mayStandBy: () => !areMachinesShared || heartbeat.hasRecentHeartbeat,
    clock,
    telemetry: sessionTelemetry,
    recordCrash: (...crash) => webhookDeliveries.recordCrash(...crash),
    logger,
  })
  const profiles = new ProfileService({
    store: new ProfileStore(database),
    states: new ProfileStates({ blobs, secrets }),
    clock,
  })
  const sessionProfiles = new SessionProfiles({ profiles, machines, events, logger })
  const replayStore = new ReplayStore(database)
  const replays = new ReplayService({
    store: replayStore,
    parts: new ReplayParts({ sealed: new SealedParts({ blobs, secrets, kind: 'replay' }), store: replayStore }),
    sessions: store,
    machines,
    driverId,
    config: options.replays,
    clock,
    logger,
  })
  const downloads = new DownloadService({
    store: new DownloadStore(database),
    parts: new SealedParts({ blobs, secrets, kind: 'download' }),
    sessions: store,
    machines,
    config: options.downloads,
    clock,
    logger,
  })
  const endings = { machines, profiles: sessionProfiles, replays, downloads }
  const terminator = new SessionTerminator({ ...endings, store, events, clock })
  const extensions = new ExtensionService({
    store: new ExtensionStore(database),
    blobs,
    secrets,
    temporaryFolders,
    clock,
  })
  const sessionExtensions = new SessionExtensions({ machines, driver, extensions })
  const access = new SessionAccess({ tokens, keys, organizations, resolver })
  const viewport = new ViewportChanges({ machines, replays })
  const leave: RestoreSession = (session) => machines.openRoute(session)
  const connections = new SessionConnections()
  const sessionLocks = isShared ? new DatabaseSessionLocks(options.connectionString) : undefined
  const locks = sessionLocks ?? new KeyedQueue<SessionId>()
  const elsewhere = areMachinesShared ? 'session_moving' : 'session_unreachable'
  const updater: SessionUpdater = new SessionUpdater({
    store,
    resolver,
    locks,
    driverId,
    elsewhere,
    events,
    plans: [
      planName(store),
      planTags,
      planTelemetry(sessionTelemetry),
      viewport.plan,
      planEgressChange({ proxies, egress, restore: (id) => updater.restore(id, [leave]) }),
      // Loading a profile has to come late, because it cannot be undone.
      sessionProfiles.plan,
      planNavigation(machines),
    ],
    restores: [leave, restoreTelemetry(sessionTelemetry), viewport.restore, sessionProfiles.restore],
    logger,
  })
  const moves = areMachinesShared
    ? new SessionMoves({ database, limits: servers.limits, serverId: driverId, driverName: driver.name })
    : undefined
  const handovers =
    moves &&
    new SessionHandovers({
      recovery: new SessionRecovery({
        driver,
        egressLink: options.egress,
        driverId,
        store,
        machines,
        terminator,
        updater,
        logger,
      }),
      moves,
      store,
      machines,
      replays,
      connections,
      serverId: driverId,
      logger,
    })
  const strayMachines = moves && new StrayMachines({ driver, moves, machines, logger })
  const deletedProxies = new DeletedProxies({
    proxies,
    sessions: store,
    restore: (id) => updater.restore(id, [leave]),
    serverId: driverId,
    jobs,
  })
  const signature = new PeerSignature(masterKey, clock)
  const peers = new Peers(servers, clock)
  const heartbeat = new ServerHeartbeat({
    servers,
    serverId: driverId,
    report: async () => {
      const room = await driver.freeRoom()
      return {
        address: options.serverAddress ?? null,
        driver: driver.name,
        keyCheck: signature.keyCheck,
        sessions: machines.list().length,
        freeSessions: room?.sessions ?? null,
        freeMemoryBytes: room?.memoryBytes ?? null,
      }
    },
    ...(options.onServers && { onServers: options.onServers }),
    logger,
  })
  const sharedBlobs = new SharedBlobs(database, blobs)
  const memoryWatch = new MemoryWatch({ driver, machines, telemetry: sessionTelemetry, events, logger })
  events.on('machineEnded', (id) => {
    memoryWatch
      .check(id)
      .then(() => terminator.end(id, 'machine_ended'))
      .catch((error: unknown) => logger.error({ err: error, sessionId: id }, 'could not end a session; retrying'))
  })

  const vaultParts = createVaultServices({
    database,
    secrets,
    sessions: {
      find: (projectId, idOrName) => store.find(projectId, idOrName, false),
      command: (...command) => machines.command(...command),
    },
    findManagedLogin: (projectId, connectionId) => managedAuth.savedLogins.find(projectId, connectionId),
    clock,
  })
  const sessions = new SessionService({ store, resolver, terminator, driverId, elsewhere })
  const reserveStore = new ReserveStore(database, driverId)
  const reserve = new Reserve({
    ...options.reserve,
    store: reserveStore,
    driver,
    egress,
    egressLink: options.egress,
    captchas,
    rehearse: (machine, kind, signal) =>
      (kind === 'app' ? (options.reserve.rehearseApp ?? rehearse) : rehearseBrowser)(machine, signal),
    clock,
    logger,
  })
  const readyMachines = new ReadyMachines({ machines, reserve, limits, logger })
  const requests = new SessionRequests({
    otlpDestinations,
    proxies,
    profiles: sessionProfiles,
    sessionExtensions,
    vaults: vaultParts.vaults,
    egress,
    driver,
    driverId,
    region,
  })
  const creator = new SessionCreator({
    store,
    requests,
    machines,
    provisioner: new SessionProvisioner({
      driver,
      store,
      machines,
      profiles: sessionProfiles,
      sessionExtensions,
      telemetry: sessionTelemetry,
      reserve,
      captchas,
      clock,
      logger,
    }),
    reserve,
    readyMachines,
    terminator,
    tokens,
    limits,
    egress,
    telemetry: sessionTelemetry,
    events,
    clock,
    logger,
  })
  const apiKeys = new ApiKeyService({ store: new ApiKeyStore(database), projects, keys, clock })
  const poolStore = new PoolStore(database)
  const leaseStore = new LeaseStore(database, driverId)
  const fillStore = new FillStore(database)
  const browserPools = new PoolService({ store: poolStore, requests, limits, jobs, clock, logger })
  const leaseReturns = new LeaseReturns({
    store: leaseStore,
    connections,
    machines,
    locks,
    restores: [leave, restoreTelemetry(sessionTelemetry)],
    terminator,
    clock,
    logger,
  })
  const leases = new LeaseService({
    pools: browserPools,
    store: leaseStore,
    returns: leaseReturns,
    sessions: store,
    machines,
    terminator,
    updater,
    jobs,
    serverId: driverId,
    clock,
    logger,
  })
  events.on('profileSaved', (id) => {
    browserPools
      .refresh(id)
      .catch((error: unknown) =>
        logger.error({ err: error, profileId: id }, 'could not refresh the pools of a profile'),
      )
  })
  const apps = createAppServices({
    database,
    blobs,
    secrets,
    organizationOf: (projectId) => organizations.organizationOf(projectId),
    apiKeys,
    limits,
    sessions,
    driver,
    egressLink: options.egress,
    reserve,
    servers,
    jobs,
    serverId: driverId,
    warmMilliseconds: options.warmAppSeconds * 1000,
    gitHubUrl: options.gitHubUrl,
    temporaryFolders,
    clock,
    logger,
  })
  const records = new SessionRecords({ tokens, profiles, pools: poolStore, captchas, clock })
  const credentials = new CredentialService({ store: new CredentialStore(database), secrets, clock })
  const credentialProviders = new CredentialProviderService({
    store: new ProviderStore(database),
    secrets,
    client: new OnePasswordClient(options.onePassword),
    clock,
  })
  const managedAuth: ReturnType<typeof createManagedAuth> = createManagedAuth({
    database,
    secrets,
    masterKey,
    credentials,
    credentialProviders,
    loginModel: options.loginModel && new ModelClient(options.loginModel),
    profiles,
    limits,
    sessions: {
      createSession: creator.create.bind(creator),
      findSession: (projectId, id) => store.find(projectId, id, false),
      keepChanges: async (id) => void (await store.update(id, { profile_save_changes: true })),
      endSession: async (id) => {
        if (!machines.has(id)) return
        await terminator.end(id)
        // Another caller may have started to end it.
        await terminator.finish(id)
      },
      record: (projectId, session) => replays.start({ projectId, session }, ReplayRequest.parse({})),
      command: machines.command.bind(machines),
    },
    checkBrowser: (projectId, request) => requests.select(projectId, request),
    proxyId: async (projectId, proxy) => (await proxies.select(projectId, proxy, 'browser.proxy')).id,
    liveViewUrl: async (projectId, id, publicUrl) => {
      const session = await store.find(projectId, id, false)
      return session && (await records.liveView(session, publicUrl)).url
    },
    jobs,
    serverId: driverId,
    clock,
    logger,
  })
  events.on('sessionEnded', (id) => managedAuth.authFlowRunner.noteSessionEnded(id))
  const analyses = new AnalysisStore(database)
  const runs = new RunStore(database)
  const { pauseMilliseconds } = options.configRegistry
  const analysisSessions = new AnalysisSessions({
    createSession: creator.create.bind(creator),
    sessions,
    agents: machines,
    proxies,
    pauseMilliseconds,
    logger,
  })
  const model = options.model && new ModelClient(options.model)
  const pageSessions: PageSessions = {
    find: async (projectId, idOrName) => (await resolver.resolve({ projectId }, idOrName)).id,
    create: async (projectId, request, signal) => (await creator.create(projectId, request, signal)).id,
    end: async (id) => void (await terminator.end(id)),
    fetchPage: (id, request, limits) => machines.command(id, fetchPage, request, limits),
  }
  const searchStore = new SearchStore(database)
  const pages = new PageContents({ store: searchStore, secrets, clock })
  const extractor = new Extractor()
  const contents = new ContentService({ sessions: pageSessions, pages, extractor, clock, logger })
  const searches = new SearchService({
    config: options.search,
    store: searchStore,
    secrets,
    sessions: pageSessions,
    contents,
    clock,
  })

  const projectChanges = new ProjectChanges()
  events.on('sessionChanged', (projectId, id) => projectChanges.note(projectId, id))
  const sharedProjectChanges = new SharedProjectChanges({
    database,
    connectionString: options.connectionString,
    serverId: driverId,
    changes: projectChanges,
    logger,
  })
  if (isShared) events.on('sessionChanged', (projectId, id) => sharedProjectChanges.tell(projectId, id))
  const createStatistics = new CreateStatistics({ store: new CreateStore(database), clock, logger })
  events.on('createEnded', (projectId, outcome) => createStatistics.note(projectId, outcome))
  const thumbnails = new ThumbnailService({
    sessions: {
      find: async (projectId, idOrName) => (await resolver.resolve({ projectId }, idOrName)).id,
      isAwake: (id) => machines.find(id) !== undefined && !machines.isFrozen(id),
      take: async (id, limitMilliseconds) =>
        (await machines.commandPassively(id, takeThumbnail, {}, { limitMilliseconds })).jpeg_b64,
    },
    clock,
  })
  events.on('sessionEnded', (id) => thumbnails.forget(id))

  return {
    ...apps,
    webhooks,
    webhookDeliverer,
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
    terminator,
    events,
    egressLink: options.egress,
    memoryWatch,
    proxies,
    egress,
    deletedProxies,
    lostSessions: new LostSessions({ servers, serverId: driverId, strayMachines, logger }),
    heartbeat,
    handovers,
    servers,
    sharedBlobs,
    sessionLocks,
    signature,
    forwarding: new SessionForwarding({
      serverId: driverId,
      isShared,
      peers,
      servers,
      signature,
      store,
      machines,
      handovers,
      tokens,
      logger,
    }),
    connections,
    browserPools,
    leases,
    leaseReturns,
    poolFiller: new PoolFiller({
      store: fillStore,
      leases: leaseStore,
      pools: browserPools,
      createSession: creator.create.bind(creator),
      clock,
    }),
    poolUpkeep: new PoolUpkeep({
      signals: new PoolSignals({ connectionString: options.connectionString, serverId: driverId, logger }),
      store: leaseStore,
      queue: leases.queue,
      returns: leaseReturns,
      pools: browserPools,
      terminator,
      serverId: driverId,
      logger,
    }),
    region,
    access,
    profiles,
    organizations,
    keys,
    oauth,
    projects,
    audit,
    signIns: new SignInService({ store: new SignInStore(database), keys, clock }),
    projectChanges,
    sharedProjectChanges,
    createStatistics,
    overview: new OverviewService({
      store: new OverviewStore(database),
      listOrganizations: () => organizations.list(),
      driver,
      clock,
      examineHost: options.examineHost,
    }),
    thumbnails,
    exportDestinations: new ExportDestinationService({ store: destinations, audit, target, buckets, clock }),
    auditExporter: new AuditExporter({ store: destinations, audit, target, clock, logger }),
    requestAudit: new RequestAudit(audit),
    otlpDestinations,
    otlpExporter,
    captchas,
    telemetry: new TelemetryService({
      store: telemetryStore,
      sessions: store,
      live: sessionTelemetry,
      retentionDays: options.telemetryRetentionDays,
      clock,
    }),
    credentials,
    credentialProviders,
    ...managedAuth,
    ...vaultParts,
    limits,
    apiKeys,
    sessions,
    creator,
    reserve,
    reserveStore,
    configRegistry: new ConfigRegistryService({
      analyses,
      runs,
      jobs,
      config: options.configRegistry,
      egressAllow: parseAllowList(options.egressAllow),
      hasModel: model !== undefined,
      clock,
    }),
    analysisRunner: new AnalysisRunner({
      analyses,
      runs,
      sessions: analysisSessions,
      offers: proxies.offers,
      pauseMilliseconds,
      workloads: model && new WorkloadTrials({ sessions: analysisSessions, model, logger }),
      clock,
      logger,
    }),
    extractor,
    searches,
    searchConfig: options.search,
    searchExpiry: new SearchExpiry({ searches, pages }),
    updater,
    records,
    replays,
    downloads,
    replayTokens: new ReplayTokens(masterKey),
    openRequests: new OpenRequests(),
    relay: new Relay({ access, machines, connections, logger }),
    blobSweep: new BlobSweep({
      blobs,
      owners: [profiles, extensions, replays, downloads, sharedBlobs, apps.deployments],
      clock,
      logger,
    }),
    health: new ServiceHealth({ database, driver, egressIsUp, version }),
  }
}
