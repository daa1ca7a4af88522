import type { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { HandoffTokens } from '../../access/handoff-tokens.ts'
import type { Database } from '../../database/database.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { ModelClient } from '../../models/model-client.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { CredentialProviderService } from '../credential-providers/credential-provider-service.ts'
import type { CredentialService } from '../credentials/credential-service.ts'
import type { LimitService } from '../limits/limit-service.ts'
import type { ProfileService } from '../profiles/profile-service.ts'
import { AuthBrowsers, type AuthBrowsersOptions } from './auth-browsers.ts'
import { ConnectionService } from './connection-service.ts'
import { ConnectionStore } from './connection-store.ts'
import { FlowService } from './flow-service.ts'
import { FlowCompletion } from './flows/flow-completion.ts'
import { FlowRunner } from './flows/flow-runner.ts'
import { FlowSecrets } from './flows/flow-secrets.ts'
import { FlowSignals } from './flows/flow-signals.ts'
import { FlowSteps } from './flows/flow-steps.ts'
import { FlowStore, type StoredFlow } from './flows/flow-store.ts'
import { LoginAdvisor } from './flows/login-advisor.ts'
import { AuthUpkeep } from './health/auth-upkeep.ts'
import { CheckStore } from './health/check-store.ts'
import { HealthChecks } from './health/health-checks.ts'
import { SavedLogins } from './stored-login/saved-logins.ts'
import { StoredLoginService } from './stored-login/stored-login-service.ts'
import { TimelineStore } from './timeline-store.ts'

interface ManagedAuthOptions {
  readonly database: Database
  readonly secrets: ProjectSecrets
  readonly masterKey: string
  readonly credentials: CredentialService
  readonly credentialProviders: CredentialProviderService
  readonly loginModel: ModelClient | undefined
  readonly profiles: ProfileService
  readonly limits: LimitService
  readonly sessions: Omit<AuthBrowsersOptions, 'savedAt' | 'logger'>
  readonly checkBrowser: (projectId: ProjectId, request: BrowserRequest) => Promise<unknown>
  readonly proxyId: (
    projectId: ProjectId,
    proxy: { id?: string | undefined; name?: string | undefined },
  ) => Promise<string>
  readonly liveViewUrl: (projectId: ProjectId, id: SessionId, publicUrl: string) => Promise<string | undefined>
  readonly jobs: JobQueue
  readonly serverId: string
  readonly clock: Clock
  readonly logger: Logger
}

/** Creates and connects the services of managed auth. */
export function createManagedAuth(options: ManagedAuthOptions) {
  const { database, credentials, credentialProviders: providers, profiles, limits, serverId, clock, logger } = options
  const connectionStore = new ConnectionStore(database)
  const flowStore = new FlowStore(database)
  const timeline = new TimelineStore(database)
  const signals = new FlowSignals()
  const secrets = new FlowSecrets(options.secrets)
  const browsers = new AuthBrowsers({ ...options.sessions, savedAt: (id) => profiles.stateSavedAt(id), logger })
  const storedLogins = new StoredLoginService({ connections: connectionStore, credentials, providers, clock })
  const onChange = ({ connection_id }: StoredFlow) => signals.notify(connection_id)
  const runner: FlowRunner = new FlowRunner({
    store: flowStore,
    connections: connectionStore,
    browsers,
    steps: new FlowSteps({
      store: flowStore,
      secrets,
      storedLogins,
      advisor: options.loginModel && new LoginAdvisor({ model: options.loginModel, logger }),
      onChange,
      clock,
    }),
    completion: new FlowCompletion({
      store: flowStore,
      connections: connectionStore,
      browsers,
      secrets,
      storedLogins,
      onChange,
      clock,
    }),
    signals,
    profileOf: (connection) => connections.profileOf(connection),
    serverId,
    clock,
    logger,
  })
  const connections: ConnectionService = new ConnectionService({
    store: connectionStore,
    flows: flowStore,
    timeline,
    runner,
    signals,
    secrets,
    credentials,
    providers,
    profiles,
    limits,
    checkBrowser: options.checkBrowser,
    proxyId: options.proxyId,
    liveViewUrl: options.liveViewUrl,
    clock,
  })
  const healthChecks = new HealthChecks({
    connections: connectionStore,
    flows: flowStore,
    checks: new CheckStore(database),
    timeline,
    browsers,
    runner,
    signals,
    profileOf: (connection) => connections.profileOf(connection),
    jobs: options.jobs,
    serverId,
    clock,
    logger,
  })
  return {
    authConnections: connections,
    savedLogins: new SavedLogins(connectionStore, credentials),
    authFlowRunner: runner,
    authHealthChecks: healthChecks,
    authUpkeep: new AuthUpkeep({ checks: healthChecks, logger }),
    authFlows: new FlowService({
      connections,
      store: flowStore,
      runner,
      signals,
      secrets,
      tokens: new HandoffTokens(options.masterKey),
      serverId,
      clock,
    }),
  }
}
