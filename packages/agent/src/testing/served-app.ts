import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { createApp } from '../app.ts'
import type { Browser } from '../browser/browser.ts'
import type { ExtensionSet } from '../extensions/extension-set.ts'
import { ServiceLogs } from '../logs/service-logs.ts'
import { EventLog } from '../reporting/event-log.ts'
import { StateFeed } from '../reporting/state-feed.ts'
import { TelemetryCollector } from '../telemetry/telemetry-collector.ts'

/** All operations of the agent in the test's own process, for tests without a browser. */
export class ServedApp implements AsyncDisposable {
  readonly url: string
  /** An empty folder for the test's files. */
  readonly folder: string
  readonly #server: Server
  #folders = 0

  private constructor(url: string, folder: string, server: Server) {
    this.url = url
    this.folder = folder
    this.#server = server
  }

  static async start(): Promise<ServedApp> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-operations-'))
    const logger = createLogger({ name: 'agent', level: 'error', json: true })
    const server = createApp({
      config: { home_folder: folder, run_folder: folder } as AgentConfig,
      browser: { config: { stealth: false } } as Browser,
      capture: { rehearse: async () => {} },
      extensions: {} as ExtensionSet,
      state: new StateFeed(systemClock),
      events: new EventLog(systemClock),
      telemetry: new TelemetryCollector(systemClock, logger),
      serviceLogs: new ServiceLogs(systemClock),
      logger,
      stop: async () => {},
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return new ServedApp(`http://127.0.0.1:${port}${agentOperationsPath}`, folder, server)
  }

  call(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, { method, ...init })
  }

  /** A folder of a test's own. */
  async newFolder(): Promise<string> {
    const folder = join(this.folder, String(++this.#folders))
    await mkdir(folder)
    return folder
  }

  /** A call with a JSON body. */
  send(method: string, path: string, body: object): Promise<Response> {
    const headers = { 'content-type': 'application/json' }
    return this.call(method, path, { headers, body: JSON.stringify(body) })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await rm(this.folder, { recursive: true, force: true })
  }
}
