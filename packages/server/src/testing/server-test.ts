import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import { newId, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Upstream } from '@berth/contract/egress/egress-settings.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import type { FastifyInstance } from 'fastify'
import { hashApiKey, newApiKey } from '../access/secrets.ts'
import { createApp } from '../app.ts'
import { FolderBlobs } from '../blobs/folder-blobs.ts'
import { TemporaryFolders } from '../blobs/temporary-folders.ts'
import type { Database } from '../database/database.ts'
import { parseProxyPools } from '../features/proxies/proxy-pools.ts'
import { recoverSessions } from '../features/sessions/recover-sessions.ts'
import { SessionReaper } from '../jobs/reap-sessions.ts'
import { createServices, type Services } from '../services.ts'
import { FakeDriver, FakeHost } from './fake-driver.ts'
import { FakeEgress } from './fake-egress.ts'
import { TestDatabase } from './test-database.ts'

/** The operator's proxies of every test. */
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

/** A time that stands still until a test moves it. */
export class TestClock {
  #milliseconds = Date.now()

  now(): Date {
    return new Date(this.#milliseconds)
  }

  advance(seconds: number): void {
    this.#milliseconds += seconds * 1000
  }
}

interface TestStores {
  readonly blobsFolder: string
  readonly blobs: FolderBlobs
  readonly temporaryFolders: TemporaryFolders
  readonly chromeStoreUrl: string
}

/** The server with a real PostgreSQL and fake machines, for one test file; each test has a project of its own. */
export class TestServer {
  readonly host: FakeHost
  readonly clock = new TestClock()
  readonly egress = new FakeEgress()
  readonly database: Database
  readonly #testDatabase: TestDatabase
  readonly #driver: FakeDriver
  readonly #blobsFolder: string
  readonly #blobs: FolderBlobs
  readonly #temporaryFolders: TemporaryFolders
  readonly #chromeStoreUrl: string
  #services: Services
  #app: FastifyInstance | undefined

  private constructor(
    testDatabase: TestDatabase,
    host: FakeHost,
    { blobsFolder, blobs, temporaryFolders, chromeStoreUrl }: TestStores,
  ) {
    this.#testDatabase = testDatabase
    this.database = testDatabase.database
    this.host = host
    this.#driver = new FakeDriver(host)
    this.#blobsFolder = blobsFolder
    this.#blobs = blobs
    this.#temporaryFolders = temporaryFolders
    this.#chromeStoreUrl = chromeStoreUrl
    this.#services = this.#createServices()
  }

  static async open({ chromeStoreUrl = 'http://127.0.0.1:9/' } = {}): Promise<TestServer> {
    const [testDatabase, host] = await Promise.all([TestDatabase.open(), FakeHost.open()])
    const blobsFolder = await mkdtemp(join(tmpdir(), 'berth-blobs-'))
    const blobs = await FolderBlobs.open(blobsFolder)
    const temporaryFolders = await TemporaryFolders.open(join(host.folder, 'incoming'))
    const server = new TestServer(testDatabase, host, { blobsFolder, blobs, temporaryFolders, chromeStoreUrl })
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

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async start(publicUrl?: string): Promise<void> {
    await recoverSessions({ ...this.#services, driver: this.#driver, driverId: 'test' })
    this.#app = await createApp(this.#services, { publicUrl, metrics: true, isClosing: () => false })
    await this.#app.listen({ port: 0, host: '127.0.0.1' })
  }

  /** What is left of a server when it was killed: rows and machines. Nothing is said to either. */
  async crash(): Promise<void> {
    this.#services.relay.close()
    this.#services.machines.release()
    this.#app?.server.closeAllConnections()
    await this.#app?.close()
    this.#services = this.#createServices()
  }

  /** One round of the job that ends idle sessions. */
  async reap(): Promise<void> {
    const reaper = new SessionReaper({ ...this.#services, driverId: 'test', clock: this.clock }, never)
    await reaper.reap()
    await reaper.close()
  }

  /** An organization with one project and a key for it. */
  async project(): Promise<TestProject> {
    const now = this.clock.now()
    const key = newApiKey()
    const organizationId = newId('organization', now)
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
    await this.crash()
    await this.host.close()
    await this.#testDatabase.close()
    await rm(this.#blobsFolder, { recursive: true })
  }

  #createServices(): Services {
    return createServices({
      database: this.#testDatabase.database,
      blobs: this.#blobs,
      temporaryFolders: this.#temporaryFolders,
      chromeStoreUrl: this.#chromeStoreUrl,
      driver: this.#driver,
      driverId: 'test',
      egressIsUp: () => true,
      egress: this.egress,
      proxying: { pools: testPools, stealthProxy: testStealthProxy, checkUrl: 'https://echo.test/ip' },
      masterKey: 'the master key of every test',
      region: 'us-east',
      clock: this.clock,
      logger: createLogger({ name: 'test', level: 'silent', json: true }),
      version: 'test',
    })
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
        created_at: now,
      })
      .execute()
  }

  /** Calls the API with the project's key, or another one. */
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
