import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger, type Logger } from '@berth/runtime/process/logger.ts'
import { Shutdown } from '@berth/runtime/process/shutdown.ts'
import type { FastifyInstance } from 'fastify'
import packageJson from '../package.json' with { type: 'json' }
import { readMasterKey } from './access/secrets.ts'
import { createApp } from './app.ts'
import { openBlobs } from './blobs/open-blobs.ts'
import { TemporaryFolders } from './blobs/temporary-folders.ts'
import { OwnEgressPolicy } from './cluster/own-egress-policy.ts'
import { joinServers } from './cluster/peers/join-servers.ts'
import { ServerDrain } from './cluster/server-drain.ts'
import { readConfig, type ServeFlags, type ServerConfig } from './config.ts'
import { type Database, openDatabase } from './database/database.ts'
import { DatabaseLock } from './database/database-lock.ts'
import { EmbeddedPostgres } from './database/embedded-postgres.ts'
import { migrate } from './database/migrate.ts'
import { sharedDrivers } from './drivers/driver-names.ts'
import { machinesRuntimeFolder, openMachinesFolders } from './drivers/local/machine-folders.ts'
import { type DriverContext, type OpenDriver, registeredDrivers } from './drivers/registered-drivers.ts'
import { EgressDaemon } from './egress-link/egress-daemon.ts'
import { ensureOrganization } from './features/organizations/first-start.ts'
import { recoverSessions } from './features/sessions/machines/recover-sessions.ts'
import { type HostFolders, openHostFolders, removeUnusedRuntimeFolder } from './host/host-folders.ts'
import { lockDataFolder } from './host/lock-data-folder.ts'
import { readOrCreateFile } from './host/read-or-create-file.ts'
import { openServiceUsers, type ServiceUser } from './host/service-user.ts'
import { Trash } from './host/trash.ts'
import type { Finding } from './host-checks/host-checks.ts'
import { JobRunner } from './jobs/job-runner.ts'
import { SessionReaper } from './jobs/reap-sessions.ts'
import { startJobs } from './jobs/start-jobs.ts'
import { ownAddresses } from './own-session/own-addresses.ts'
import { ownSessionSocketPath } from './own-session/own-session-path.ts'
import { OwnSessionSocket } from './own-session/own-session-socket.ts'
import { announceReady } from './ready-message.ts'
import { createServices, type Services } from './services.ts'
import { StartError } from './start-error.ts'

const stopLimitMilliseconds = 10_000
/** Requests in progress may finish within this time and are aborted after it. */
const drainLimitMilliseconds = 6_000
const reapIntervalMilliseconds = 1_000
const memoryWatchIntervalMilliseconds = 2_000
const standbyMilliseconds = 5_000
const reserveIntervalMilliseconds = 1_000
const webhookIntervalMilliseconds = 1_000
const authUpkeepIntervalMilliseconds = 5_000

/** Starts the server of this host and returns once it is ready. It stops on SIGTERM and SIGINT. */
export async function serve(flags: ServeFlags): Promise<void> {
  const config = readConfig(flags)
  const logger = createLogger({ name: 'berth', level: config.logLevel, json: config.json })
  const shutdown = new Shutdown(logger)
  shutdown.onSignals(stopLimitMilliseconds + 1_000 * config.drainSeconds)
  try {
    await start(config, logger, shutdown)
  } catch (error) {
    await shutdown.close()
    throw error
  }
}

async function start(config: ServerConfig, logger: Logger, shutdown: Shutdown): Promise<void> {
  await tryAddress(config)
  const folders = await openHostFolders(config)
  const lock = await lockDataFolder(folders.data)
  shutdown.add('the data folder', () => lock.close())

  shutdown.add('the runtime folder', () => removeUnusedRuntimeFolder(folders))

  const users = await openServiceUsers()
  await openMachinesFolders(folders)
  const trash = await Trash.open(join(folders.data, 'trash'))
  shutdown.add('the trash', () => trash.close())
  const egress = new EgressDaemon({
    folders,
    socketsFolder: machinesRuntimeFolder(folders),
    user: users.egress,
    logger,
  })
  shutdown.add('egress', () => egress.close())
  const driverId = await readDriverId(config, folders.data)
  const startingDatabase = startDatabase({
    config,
    folders,
    user: users.database,
    serverId: driverId,
    logger,
    shutdown,
  })
  const readingKey = readMasterKey(folders.data, config.masterKey)
  // Loaded for machines that are pods: its certificates are a tenth of what a server of one host would load.
  const installation = async () => {
    const { openInstallation } = await import('./drivers/kubernetes/installation.ts')
    return openInstallation((await startingDatabase).database, await readingKey, systemClock.now())
  }
  const context = {
    folders,
    trash,
    egressUser: users.egress,
    options: config.machines,
    installation,
    serverId: driverId,
    logger,
  }
  const opening = [
    startingDatabase,
    readingKey,
    openDriver(config, context, shutdown),
    egress.start(),
    openBlobs(config.blobs, join(folders.data, 'blobs')),
    TemporaryFolders.open(join(folders.data, 'incoming'), trash),
  ] as const
  // When one fails, waits for the others: anything opened after the shutdown would keep the process running.
  await Promise.allSettled(opening)
  const [{ database, url }, masterKey, driver, , blobs, temporaryFolders] = await Promise.all(opening)

  const machineEgress = driver.openEgress?.(egress)
  if (machineEgress) shutdown.add('the egress of machines', () => machineEgress.close())
  const policy = new OwnEgressPolicy({ egress: machineEgress ?? egress, allow: config.egressAllow })
  const jobs = new JobRunner({ connectionString: url, serverId: driverId, logger })
  shutdown.add('the jobs', () => jobs.close())
  const services = createServices({
    database,
    blobs,
    temporaryFolders,
    chromeStoreUrl: config.chromeStoreUrl,
    driver,
    driverId,
    serverAddress: config.serverAddress,
    connectionString: url,
    onServers: (servers) => policy.setServers(servers),
    egressIsUp: () => egress.isUp,
    egress: machineEgress ?? egress,
    proxying: config.proxying,
    jobs,
    masterKey,
    region: config.region,
    hasProjects: config.hasProjects,
    limits: config.limits,
    configRegistry: config.configRegistry,
    warmAppSeconds: config.warmAppSeconds,
    gitHubUrl: config.gitHubUrl,
    model: config.model,
    loginModel: config.loginModel,
    captchaSolver: config.captchaSolver,
    egressAllow: config.egressAllow,
    oauth: config.oauth,
    audit: { folder: join(folders.data, 'audit'), retentionDays: config.auditRetentionDays },
    auditExport: config.auditExport,
    telemetryRetentionDays: config.telemetryRetentionDays,
    webhooks: { retentionDays: config.webhookRetentionDays },
    onePassword: config.onePassword,
    search: config.search,
    standbyMilliseconds: config.hasStandby ? standbyMilliseconds : undefined,
    reserve: { config: config.reserve },
    replays: config.replays,
    downloads: config.downloads,
    ...(config.driver === 'local' && { examineHost: () => examineThisHost(config) }),
    clock: systemClock,
    logger,
    version: packageJson.version,
  })
  shutdown.add('the audit log', () => services.audit.close())
  shutdown.add('the export of telemetry', () => services.otlpExporter.close())
  shutdown.add('the reading of pages', () => services.extractor.close())
  // Entries that an earlier server left.
  await services.audit.flush()
  const apiKey = await ensureOrganization(services.organizations, systemClock, config.apiKey)

  let drain: ServerDrain | undefined
  const app = await createApp(services, {
    publicUrl: config.publicUrl,
    metrics: config.metrics,
    connectionLimits: config.connectionLimits,
    isClosing: () => shutdown.isClosing && (drain?.isOver ?? true),
    isLeaving: () => shutdown.isClosing,
    disabledToolsets: config.disabledToolsets,
  })
  if (services.sessionLocks) shutdown.add('the locks of sessions', () => services.sessionLocks?.close())
  const appear = () => services.heartbeat.start()
  const { serverAddress: address } = config
  const { keyCheck } = services.signature
  if (address === undefined) await appear()
  else {
    const { areMachinesShared } = driver.capabilities
    const patienceSeconds = areMachinesShared ? 2 * services.servers.limits.lostAfterSeconds : 0
    await joinServers({ ...services, database, serverId: driverId, address, keyCheck, patienceSeconds, appear })
  }
  // If machines belong to this host, no other server can take over its sessions, and its next server is expected soon.
  shutdown.add('the heartbeat', () => (services.handovers ? services.heartbeat.leave() : services.heartbeat.close()))
  shutdown.add('the sessions', () => leaveSessions(config, services, driverId))
  // The machines have no sessions, so recovery removes them.
  await services.reserveStore.clear()
  await services.replays.finishInterrupted()
  await services.handovers?.moveFromGone()
  await recoverSessions({ ...services, driver, driverId })
  await services.invocationRunner.recover()
  shutdown.add('the logins', () => services.authFlowRunner.close())
  shutdown.add('the apps', () => services.warmMachines.close())
  shutdown.add('the invocations', () => services.invocationRunner.close())
  const listening = await listen(app, config)
  services.appEnvironment.setAddress(listening.port, config.publicUrl)
  shutdown.add('the API', () => closeApi(app, services))
  await services.sharedProjectChanges.start()
  shutdown.add('the changes of lists', () => services.sharedProjectChanges.close())
  shutdown.add('the counts of creates', () => services.createStatistics.flush())
  await services.poolUpkeep.start()
  shutdown.add('the browser pools', () => services.poolUpkeep.close())
  await services.authFlowRunner.recover()
  services.authUpkeep.start(authUpkeepIntervalMilliseconds)
  shutdown.add('the upkeep of logins', () => services.authUpkeep.close())
  const ownSessions = await OwnSessionSocket.open({
    path: ownSessionSocketPath(folders),
    server: app.server,
    sessionOn: (machineId) => services.machines.sessionOn(machineId),
  })
  shutdown.add("the sessions' own addresses", () => ownSessions.close())
  await policy.setOwn(ownAddresses(listening, config.publicUrl))

  services.memoryWatch.start(memoryWatchIntervalMilliseconds)
  shutdown.add('the memory watch', () => services.memoryWatch.close())
  const reaper = new SessionReaper({ ...services, driverId, clock: systemClock }, reapIntervalMilliseconds)
  shutdown.add('the reaper', () => reaper.close())
  drain = new ServerDrain({
    ...services,
    // The sessions end with the server.
    handovers: config.stopSessions ? undefined : services.handovers,
    limitMilliseconds: 1_000 * config.drainSeconds,
    countOpen: () => services.relay.openConnections + services.forwarding.openConnections + services.openRequests.count,
    restartClients: () => {
      services.relay.restart()
      services.forwarding.restart()
    },
    logger,
  })
  shutdown.add('what clients have open', () => drain?.run())
  shutdown.add('the reserve', () => services.reserve.close())
  services.reserve.start(reserveIntervalMilliseconds)
  await services.webhookDeliverer.start(webhookIntervalMilliseconds)
  shutdown.add('the webhooks', () => services.webhookDeliverer.close())
  const isFirstKey = apiKey !== undefined && config.apiKey === undefined
  const signInCode = isFirstKey ? await services.signIns.createLink(apiKey) : undefined
  announceReady({ config, port: listening.port, apiKey, signInCode })

  // No request waits for a job. Running jobs are aborted before the resources that they use are closed.
  shutdown.add('the work of jobs', () => jobs.close())
  await startJobs(jobs, services, {
    analysesAtOnce: config.configRegistry.atOnce,
    buildsAtOnce: config.buildsAtOnce,
  }).catch((error: unknown) => {
    if (!shutdown.isClosing) throw error
  })
}

/** Imported when the dashboard requests it. */
async function examineThisHost(config: ServerConfig): Promise<readonly Finding[]> {
  const { examineHost } = await import('./host-checks/host-checks.ts')
  return examineHost(config)
}

async function openDriver(
  { driver: name }: ServerConfig,
  context: DriverContext,
  shutdown: Shutdown,
): Promise<OpenDriver> {
  const driver = await registeredDrivers[name](context)
  shutdown.add('the driver', () => driver.close())
  return driver
}

interface StartDatabaseOptions {
  readonly config: ServerConfig
  readonly folders: HostFolders
  readonly user: ServiceUser | undefined
  readonly serverId: string
  readonly logger: Logger
  readonly shutdown: Shutdown
}

async function startDatabase({
  config,
  folders,
  user,
  serverId,
  logger,
  shutdown,
}: StartDatabaseOptions): Promise<OpenDatabase> {
  let url = config.databaseUrl
  if (url === undefined) {
    const postgres = new EmbeddedPostgres({
      dataFolder: folders.data,
      socketFolder: join(folders.runtime, 'postgres'),
      user,
      logger,
    })
    await postgres.keepRunning()
    shutdown.add('PostgreSQL', () => postgres.stop())
    url = postgres.connectionString
  }
  const database = openDatabase(url, logger, { waitSeconds: config.databaseWaitSeconds })
  try {
    const lock = await DatabaseLock.take({
      connectionString: url,
      serverId,
      isShared: config.serverAddress !== undefined,
      logger,
      onLost: () => process.kill(process.pid, 'SIGTERM'),
    })
    shutdown.add("the database's lock", () => lock.close())
    shutdown.add('the database', () => database.destroy())
    await migrate(database)
  } catch (cause) {
    if (config.databaseUrl === undefined || cause instanceof StartError) throw cause
    throw new StartError(`the database of DATABASE_URL cannot be used: ${(cause as Error).message}`, 69, { cause })
  }
  return { database, url }
}

interface OpenDatabase {
  readonly database: Database
  readonly url: string
}

/**
 * When machines belong to a host: created once per data folder, so that it survives every change of the host name. When
 * machines are shared: a new id for every start, because a server needs nothing of its predecessors.
 */
async function readDriverId({ driver }: ServerConfig, dataFolder: string): Promise<string> {
  if (sharedDrivers.has(driver)) return `server-${randomUUID()}`
  return readOrCreateFile(join(dataFolder, 'driver-id'), () => `local-${randomUUID()}`)
}

/** Reports immediately that the address cannot be used, before anything is created for a server that will not run. */
async function tryAddress({ host, port }: ServerConfig): Promise<void> {
  const trial = createServer()
  try {
    trial.listen({ host, port })
    await once(trial, 'listening')
  } catch (cause) {
    throw addressError({ host, port }, cause as NodeJS.ErrnoException)
  }
  trial.close()
  await once(trial, 'close')
}

async function listen(app: FastifyInstance, { host, port }: ServerConfig): Promise<AddressInfo> {
  await app.listen({ host, port }).catch((cause: NodeJS.ErrnoException) => {
    throw addressError({ host, port }, cause)
  })
  return app.server.address() as AddressInfo
}

function addressError({ host, port }: Pick<ServerConfig, 'host' | 'port'>, cause: NodeJS.ErrnoException): Error {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new StartError(`port ${port} is in use; choose another with --port, or --port 0`, 75, { cause })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new StartError(`--host ${host} is not an address of this machine`, 64, { cause })
    case 'EACCES':
      return new StartError(`port ${port} needs more rights than this user has; choose one above 1023`, 64, { cause })
    default:
      return cause
  }
}

async function leaveSessions({ stopSessions }: ServerConfig, services: Services, driverId: string): Promise<void> {
  if (stopSessions) {
    const sessions = await services.store.listUnfinished(driverId)
    await Promise.all(sessions.map(({ id }) => services.terminator.end(id, 'server_stopped')))
  }
  await services.replays.close()
  services.machines.release()
}

async function closeApi(app: FastifyInstance, services: Services): Promise<void> {
  services.relay.close()
  services.forwarding.close()
  services.vaultItemChanges.close()
  services.projectChanges.close()
  const cut = setTimeout(() => app.server.closeAllConnections(), drainLimitMilliseconds)
  await app.close()
  clearTimeout(cut)
}
