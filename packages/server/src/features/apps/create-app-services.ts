import type { OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { TemporaryFolders } from '../../blobs/temporary-folders.ts'
import type { Database } from '../../database/database.ts'
import type { Driver } from '../../drivers/driver.ts'
import type { EgressLink } from '../../egress-link/egress-link.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { ApiKeyService } from '../api-keys/api-key-service.ts'
import type { LimitService } from '../limits/limit-service.ts'
import type { SessionService } from '../sessions/session-service.ts'
import { AppBlobs } from './app-blobs.ts'
import { AppEnvironment } from './app-environment.ts'
import { BuildRunner } from './builds/build-runner.ts'
import { RegistrySettings } from './builds/registry-settings.ts'
import { DeploymentService } from './deployments/deployment-service.ts'
import { DeploymentStore } from './deployments/deployment-store.ts'
import { InvocationRunner, type OtherServers } from './invocations/invocation-runner.ts'
import { InvocationService } from './invocations/invocation-service.ts'
import { InvocationSessions } from './invocations/invocation-sessions.ts'
import { InvocationStore } from './invocations/invocation-store.ts'
import { AppEvents } from './logs/app-events.ts'
import { AppLogStore } from './logs/app-log-store.ts'
import { AppLogs } from './logs/app-logs.ts'
import { AppMachine, type MachineReserve } from './machines/app-machine.ts'
import { WarmMachines } from './machines/warm-machines.ts'

interface AppServicesOptions {
  readonly database: Database
  readonly blobs: Blobs
  readonly secrets: ProjectSecrets
  readonly organizationOf: (projectId: ProjectId) => Promise<OrganizationId>
  readonly apiKeys: ApiKeyService
  readonly limits: LimitService
  readonly sessions: SessionService
  readonly driver: Driver
  readonly egressLink: EgressLink
  readonly reserve: MachineReserve
  readonly servers: OtherServers
  readonly jobs: JobQueue
  readonly serverId: string
  readonly warmMilliseconds: number
  readonly temporaryFolders: TemporaryFolders
  readonly gitHubUrl: string
  readonly clock: Clock
  readonly logger: Logger
}

/** Creates and connects the services of apps. */
export function createAppServices(options: AppServicesOptions) {
  const { database, secrets, organizationOf, limits, jobs, sessions, serverId, clock, logger } = options
  const deploymentStore = new DeploymentStore(database)
  const invocationStore = new InvocationStore(database)
  const logStore = new AppLogStore(database)
  const logs = new AppLogs({ store: logStore, clock, logger })
  const blobs = new AppBlobs({ blobs: options.blobs, secrets })
  const environment = new AppEnvironment({
    deployments: deploymentStore,
    keys: options.apiKeys,
    organizationOf,
    secrets,
  })
  const startMachine = (signal: AbortSignal) => AppMachine.start(options, signal)
  const builds = new BuildRunner({
    deployments: deploymentStore,
    blobs,
    secrets,
    temporaryFolders: options.temporaryFolders,
    environment,
    logs,
    registries: new RegistrySettings(),
    startMachine,
    findRoom: (except) => options.servers.findRoom(except),
    jobs,
    serverId,
    retire: (id) => warmMachines.retire(id),
    clock,
    logger,
  })
  const warmMachines: WarmMachines = new WarmMachines({
    prepare: (id) => builds.prepare(id),
    warmMilliseconds: options.warmMilliseconds,
    logger,
  })
  const invocationSessions = new InvocationSessions({ sessions, jobs })
  const runner = new InvocationRunner({
    store: invocationStore,
    deployments: deploymentStore,
    machines: warmMachines,
    logs,
    sessions: invocationSessions,
    servers: options.servers,
    jobs,
    serverId,
    clock,
    logger,
  })
  const retire = warmMachines.retire.bind(warmMachines)
  return {
    appEnvironment: environment,
    appLogs: logs,
    appEvents: new AppEvents({
      deployments: deploymentStore,
      invocations: invocationStore,
      logStore,
      logs,
      clock,
    }),
    builds,
    warmMachines,
    invocationRunner: runner,
    invocationSessions,
    deployments: new DeploymentService({
      store: deploymentStore,
      blobs,
      environment,
      secrets,
      gitHubUrl: options.gitHubUrl,
      logs,
      jobs,
      retire,
      clock,
    }),
    invocations: new InvocationService({
      store: invocationStore,
      deployments: deploymentStore,
      runner,
      limits,
      sessions: invocationSessions,
      serverId,
      clock,
    }),
  }
}
