import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server as HttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import { newId, type OrganizationId, type ProjectId, type SessionId } from '@berth/contract/common/ids.ts'
import type { Upstream } from '@berth/contract/egress/egress-settings.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import type { FastifyInstance } from 'fastify'
import type { OAuthConfig } from '../access/oauth/oauth-config.ts'
import { hashApiKey, maskApiKey, newApiKey } from '../access/secrets.ts'
import { createApp } from '../app.ts'
import type { Blobs } from '../blobs/blobs.ts'
import { FolderBlobs } from '../blobs/folder-blobs.ts'
import { TemporaryFolders } from '../blobs/temporary-folders.ts'
import type { Database } from '../database/database.ts'
import type { AuditExportConfig } from '../features/audit-export/lazy-s3-target.ts'
import type { ConfigRegistryConfig } from '../features/config-registry/config-registry-service.ts'
import type { OnePasswordOptions } from '../features/credential-providers/onepassword-client.ts'
import type { LimitsConfig } from '../features/limits/limit-service.ts'
import { parseProxyPools } from '../features/proxies/proxy-pools.ts'
import type { SearchConfig } from '../features/search/providers/known-providers.ts'
import type { CaptchaSolverConfig } from '../features/sessions/captchas/solver-client.ts'
import { recoverSessions } from '../features/sessions/machines/recover-sessions.ts'
import type { Session } from '../features/sessions/records/session.ts'
import type { ReplaysConfig } from '../features/sessions/replays/replay-service.ts'
import type { ReserveConfig } from '../features/sessions/reserve/reserve-plan.ts'
import { Trash } from '../host/trash.ts'
import type { ConnectionLimits } from '../ingress/connection-limits.ts'
import { JobRunner } from '../jobs/job-runner.ts'
import { SessionReaper } from '../jobs/reap-sessions.ts'
import type { ModelConfig } from '../models/model-client.ts'
import { createServices, type Services } from '../services.ts'
import { FakeDriver, FakeHost } from './fakes/fake-driver.ts'
import { FakeEgress } from './fakes/fake-egress.ts'
import { quickPace } from './quick-pace.ts'
import { TestDatabase } from './test-database.ts'

/** The operator's proxies in every test. */
export const testStealthProxy: Upstream = { protocol: 'http', host: 'stealth.test', port: 3128 }
const testPools = parseProxyPools(
  JSON.stringify({
    isp: ['US', 'US', 'DE'].map((country, index) => ({ url: `http://isp-${index}.test:80`, country })),
    residential: [
      { url: 'socks5://u:p@ny.test:1080', country: 'US', state: 'NY', city: 'newyork' },
      { url: 'http://la.test:8080', country: 'US', state: 'CA', city: 'losangeles' },
      { url: 'https://paris.test', country: 'FR', city: 'paris' },
    ],
  }),
)

const never = 2 ** 31 - 1

/** A clock that stands still until a test moves it. */
export class TestClock {
  #milliseconds = Date.now()

  now(): Date {
    return new Date(this.#milliseconds)
  }

  advance(seconds: number): void {
    this.#milliseconds += seconds * 1000
  }
}

export interface TestServerOptions {
  readonly chromeStoreUrl?: string
  readonly openBlobs?: (folder: string) => Promise<Blobs>
  readonly hasProjects?: boolean
  /** Whether it and its siblings forward requests to each other. */
  readonly isShared?: boolean
  /** Whether they can also reach each other's machines. */
  readonly sharesMachines?: boolean
  readonly connectionLimits?: ConnectionLimits
  readonly limits?: Partial<LimitsConfig>
  readonly onePassword?: OnePasswordOptions
  readonly auditExport?: AuditExportConfig
  readonly configRegistry?: Partial<ConfigRegistryConfig>
  readonly model?: ModelConfig
  readonly loginModel?: ModelConfig
  readonly captchaSolver?: CaptchaSolverConfig
  readonly egressAllow?: readonly string[]
  readonly search?: SearchConfig
  /** For the URL of the server. When absent, OAuth is disabled. */
  readonly oauth?: (url: string) => OAuthConfig
  /** When absent, machines are never frozen. */
  readonly standbyMilliseconds?: number
  /** Defaults to off. It is filled when a test calls for it. */
  readonly reserve?: ReserveConfig
  readonly replays?: Partial<ReplaysConfig>
  readonly webhookLimitMilliseconds?: number
}

interface TestParts {
  readonly testDatabase: TestDatabase
  readonly host: FakeHost
  readonly driverId: string
  readonly clock: TestClock
  readonly blobsFolder: string
  readonly blobs: Blobs
  readonly temporaryFolders: TemporaryFolders
  /** The port of this server, if servers forward requests to each other or use OAuth. Otherwise any port. */
  readonly port: number
  readonly options: TestServerOptions
}

/** The server with a real PostgreSQL and fake machines, for one test file. Each test has its own project. */
export class TestServer {
  readonly host: FakeHost
  readonly clock: TestClock
  readonly egress: FakeEgress
  /** Runs no jobs until a test starts it. */
  readonly jobs: JobRunner
  readonly database: Database
  readonly #parts: TestParts
  readonly #driver: FakeDriver
  #services: Services
  #app: FastifyInstance | undefined

  private constructor(parts: TestParts) {
    this.#parts = parts
    this.database = parts.testDatabase.database
    this.jobs = new JobRunner({
      connectionString: parts.testDatabase.connectionString,
      serverId: parts.driverId,
      logger: createLogger({ name: 'test', level: 'silent', json: true }),
      pace: quickPace,
    })
    this.host = parts.host
    this.egress = new FakeEgress(parts.host.machineOf)
    this.clock = parts.clock
    this.#driver = new FakeDriver(parts.host, parts.driverId)
    this.#services = this.#createServices()
  }

  static async open(options: TestServerOptions = {}): Promise<TestServer> {
    const testDatabase = await TestDatabase.open()
    return TestServer.#started({ testDatabase, driverId: 'test', clock: new TestClock(), options })
  }

  /** Another server on the same database, with its own host. It is closed before this one. */
  async sibling(driverId: string): Promise<TestServer> {
    const { testDatabase, clock, options, host } = this.#parts
    return TestServer.#started({ testDatabase, driverId, clock, options, ...(options.sharesMachines && { host }) })
  }

  static async #started(
    parts: Pick<TestParts, 'testDatabase' | 'driverId' | 'clock' | 'options'> & Partial<Pick<TestParts, 'host'>>,
  ): Promise<TestServer> {
    const host = parts.host ?? (await FakeHost.open())
    if (parts.options.sharesMachines) host.capabilities = { ...host.capabilities, areMachinesShared: true }
    const { openBlobs = FolderBlobs.open } = parts.options
    const blobsFolder = await mkdtemp(join(tmpdir(), 'berth-blobs-'))
    const blobs = await openBlobs(blobsFolder)
    const temporaryFolders = await TemporaryFolders.open(
      join(host.folder, 'incoming'),
      await Trash.open(join(host.folder, 'trash')),
    )
    const port = parts.options.isShared || parts.options.oauth ? await freePort() : 0
    const server = new TestServer({ ...parts, host, blobsFolder, blobs, temporaryFolders, port })
    await server.start()
    return server
  }

  get services(): Services {
    return this.#services
  }

  get port(): number {
    if (!this.#app) throw new Error('the server is not started')
    return (this.#app.server.address() as AddressInfo).port
  }

  get connectionString(): string {
    return this.#parts.testDatabase.connectionString
  }

  get httpServer(): HttpServer {
    if (!this.#app) throw new Error('the server is not started')
    return this.#app.server
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async start(publicUrl?: string, recovery: { readonly readyLimitMilliseconds?: number } = {}): Promise<void> {
    const { driverId } = this.#parts
    await this.#services.reserveStore.clear()
    await recoverSessions({ ...this.#services, driver: this.#driver, driverId, ...recovery })
    const { connectionLimits } = this.#parts.options
    this.#app = await createApp(this.#services, {
      publicUrl,
      metrics: true,
      ...(connectionLimits && { connectionLimits }),
      isClosing: () => false,
    })
    await this.#app.listen({ port: this.#parts.port, host: '127.0.0.1' })
    await this.#services.poolUpkeep.start()
    await this.#services.sharedProjectChanges.start()
    await this.#services.authFlowRunner.recover()
    if (!this.#parts.options.isShared) return
    await this.tell()
  }

  /** Records one heartbeat of this server. */
  async tell(): Promise<void> {
    await this.#services.heartbeat.start(never)
    this.#services.heartbeat.close()
  }

  /** Simulates a killed server: rows and machines remain. */
  async crash(): Promise<void> {
    await this.#end()
    this.#services = this.#createServices()
  }

  async #end(): Promise<void> {
    await this.#services.poolUpkeep.close()
    await this.#services.audit.stop()
    await this.#services.sharedProjectChanges.close()
    await this.#services.authFlowRunner.close()
    this.#services.relay.close()
    this.#services.vaultItemChanges.close()
    this.#services.forwarding.close()
    this.#services.extractor.close()
    this.#services.machines.release()
    this.#app?.server.closeAllConnections()
    await this.#app?.close()
    await this.#services.sessionLocks?.close()
  }

  /** The row of a session in any state. */
  async row(id: string): Promise<Session> {
    return this.database
      .selectFrom('sessions')
      .selectAll()
      .where('id', '=', id as SessionId)
      .executeTakeFirstOrThrow()
  }

  /** Runs one round of the session reaper. */
  async reap(): Promise<void> {
    const reaper = new SessionReaper({ ...this.#services, driverId: this.#parts.driverId, clock: this.clock }, never)
    await reaper.reap()
    await reaper.close()
  }

  /** Creates an organization with one project and a key for it. */
  async project({ organizationId = newId('organization', this.clock.now()) } = {}): Promise<TestProject> {
    const now = this.clock.now()
    const key = newApiKey()
    const projectId = newId('project', now)
    await this.database
      .insertInto('organizations')
      .values({ id: organizationId, name: 'test', created_at: now })
      .execute()
    await this.database
      .insertInto('projects')
      .values({ id: projectId, organization_id: organizationId, name: 'Default', is_default: true, created_at: now })
      .execute()
    const project = new TestProject(this, organizationId, projectId, key)
    await project.addKey(key)
    return project
  }

  async close(): Promise<void> {
    await this.#services.replays.close()
    await this.#end()
    await this.jobs.close()
    const isFirst = this.#parts.driverId === 'test'
    if (isFirst || !this.#parts.options.sharesMachines) await this.host.close()
    if (isFirst) await this.#parts.testDatabase.close()
    await rm(this.#parts.blobsFolder, { recursive: true })
    await rm(`${this.#parts.blobsFolder}-audit`, { recursive: true, force: true })
  }

  #createServices(): Services {
    const { testDatabase, driverId, blobs, temporaryFolders, port, options } = this.#parts
    return createServices({
      database: testDatabase.database,
      blobs,
      temporaryFolders,
      chromeStoreUrl: options.chromeStoreUrl ?? 'http://127.0.0.1:9/',
      driver: this.#driver,
      driverId,
      serverAddress: options.isShared ? `http://127.0.0.1:${port}` : undefined,
      connectionString: testDatabase.connectionString,
      egressIsUp: () => true,
      egress: this.egress,
      proxying: { pools: testPools, stealthProxy: testStealthProxy, checkUrl: 'https://echo.test/ip' },
      jobs: this.jobs,
      masterKey: 'the master key of every test',
      region: 'us-east',
      hasProjects: options.hasProjects ?? true,
      onePassword: options.onePassword ?? { connectUrl: undefined, limitMilliseconds: 1000 },
      audit: { folder: `${this.#parts.blobsFolder}-audit`, retentionDays: 365 },
      auditExport: options.auditExport ?? { buckets: [], endpoint: undefined },
      telemetryRetentionDays: 30,
      webhooks: {
        retentionDays: 7,
        ...(options.webhookLimitMilliseconds && { attemptLimitMilliseconds: options.webhookLimitMilliseconds }),
      },
      search: options.search ?? { providers: [], attemptLimitMilliseconds: 1_000 },
      replays: { retentionDays: 7, maxBytes: 500 * 1024 ** 2, maxProjectBytes: 1024 ** 3, ...options.replays },
      downloads: { retentionDays: 7, maxBytes: 20 * 1024 ** 2 },
      limits: {
        maxSessions: 1000,
        maxInvocations: 100,
        maxInvocationsPerApp: 100,
        requestsPerMinute: 0,
        maxAuthConnections: null,
        minHealthCheckSeconds: 300,
        ...options.limits,
      },
      warmAppSeconds: 60,
      gitHubUrl: 'https://github.com',
      configRegistry: {
        atOnce: 2,
        perProject: 10,
        perSiteAndHour: 20,
        pauseMilliseconds: 1,
        ...options.configRegistry,
      },
      model: options.model,
      loginModel: options.loginModel,
      captchaSolver: options.captchaSolver,
      egressAllow: options.egressAllow ?? [],
      oauth: options.oauth?.(`http://127.0.0.1:${port}`),
      standbyMilliseconds: options.standbyMilliseconds,
      // Fake agents have nothing to load.
      reserve: { config: options.reserve ?? 'off', settleMilliseconds: 0, rehearseApp: async () => {} },
      clock: this.clock,
      logger: createLogger({ name: 'test', level: 'silent', json: true }),
      version: 'test',
    })
  }
}

/** A free port, of those that the system gives to nobody by itself. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_768)
    const listener = createServer().listen(port, '127.0.0.1')
    const isFree = await once(listener, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    listener.close()
    await once(listener, 'close')
    return port
  }
}

export interface ApiAnswer<Body = Browser> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

export class TestProject {
  readonly id: ProjectId
  readonly organizationId: OrganizationId
  readonly key: string
  readonly #server: TestServer

  constructor(server: TestServer, organizationId: OrganizationId, id: ProjectId, key: string) {
    this.#server = server
    this.organizationId = organizationId
    this.id = id
    this.key = key
  }

  /** The same project, used through another server. */
  on(server: TestServer): TestProject {
    return new TestProject(server, this.organizationId, this.id, this.key)
  }

  async addKey(key: string, projectId: ProjectId | null = null): Promise<void> {
    const now = this.#server.clock.now()
    await this.#server.database
      .insertInto('api_keys')
      .values({
        id: newId('api-key', now),
        organization_id: this.organizationId,
        project_id: projectId,
        name: 'test',
        key_hash: hashApiKey(key),
        masked_key: maskApiKey(key),
        created_by_id: this.organizationId,
        created_at: now,
      })
      .execute()
  }

  /** Calls the API with the project's key or another one. */
  async call<Body = Browser>(
    method: string,
    path: string,
    body?: unknown,
    init: RequestInit & { key?: string } = {},
  ): Promise<ApiAnswer<Body>> {
    const response = await fetch(`${this.#server.url}${path}`, {
      ...init,
      method,
      headers: {
        authorization: `Bearer ${init.key ?? this.key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...init.headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? undefined : JSON.parse(text)) as Body,
    }
  }

  async session(body: unknown = { headless: true }): Promise<Browser> {
    const { status, body: session } = await this.call('POST', '/browsers', body)
    if (status !== 200) throw new Error(`no session: ${JSON.stringify(session)}`)
    return session
  }
}
