import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { cdpUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import { endWithResponse } from '@berth/runtime/http/raw-response.ts'
import type { ClientEndpoint } from '../browser/browser.ts'
import { endsNow } from '../browser/child-program.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { toDevToolsServer } from '../browser/devtools-server.ts'
import { http } from '../http/node-http.ts'
import type { Activity } from '../reporting/activity.ts'
import type { TelemetryCollector } from '../telemetry/telemetry-collector.ts'
import { CdpConnection, type Prepare } from './cdp-connection.ts'
import { CommandTap } from './command-tap.ts'

/** How long it may take to learn of Chromium's end after its port has closed. */
const endLimitMilliseconds = 2_000

interface CdpRelayOptions {
  readonly endpoint: () => Promise<ClientEndpoint>
  readonly activity: Activity
  readonly prepare: Prepare
  readonly telemetry: TelemetryCollector
}

/** Connects the websockets of CDP clients to Chromium's own DevTools server. */
export class CdpRelay {
  readonly #options: CdpRelayOptions
  readonly #open = new Set<CdpConnection>()

  constructor(options: CdpRelayOptions) {
    this.#options = options
  }

  /** Ends the connections of all clients. */
  endAll(): void {
    for (const connection of this.#open) connection.cancel()
  }

  /** Completes the handshake with Chromium's own response, or with the reason why it is not available. */
  async connect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const end = this.#options.activity.begin()
    client.on('close', end)
    client.on('error', () => client.destroy())
    try {
      await this.#openChromium(request, client, head)
    } catch (error) {
      refuse(client, 503, `the browser cannot be reached: ${(error as Error).message}`)
    }
  }

  /**
   * A Chromium that has just died refuses connections before its end is known; in that case, waits for the next one.
   */
  async #openChromium(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    for (;;) {
      const { endpoint, usable } = await this.#options.endpoint()
      try {
        const connection = await openChromium(endpoint, { request, client, head, usable, ...this.#options })
        if (!connection || client.destroyed) return
        this.#open.add(connection)
        client.once('close', () => this.#open.delete(connection))
        return
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (client.destroyed || (code !== 'ECONNREFUSED' && code !== 'ECONNRESET')) throw error
        await endOf(endpoint, error as Error)
      }
    }
  }
}

/** Resolves when an unreachable browser has ended; rejects with the reason if it is still running. */
export async function endOf({ ended }: DevToolsEndpoint, reason: Error): Promise<void> {
  const late = delay(endLimitMilliseconds, 'late' as const, { ref: false })
  if ((await Promise.race([ended, late])) === 'late') throw reason
}

interface Handshake {
  readonly request: IncomingMessage
  readonly client: Socket
  readonly head: Buffer
  readonly usable: Promise<unknown> | undefined
  readonly prepare: Prepare
  readonly telemetry: TelemetryCollector
}

/** Undefined if Chromium has refused the handshake; the client has then received that response. */
function openChromium(
  endpoint: DevToolsEndpoint,
  { request, client, head, usable, prepare, telemetry }: Handshake,
): Promise<CdpConnection | undefined> {
  const path = request.url === cdpUpgrade.path ? endpoint.browserPath : request.url
  const upstream = http.request({
    ...toDevToolsServer,
    port: endpoint.port,
    path,
    headers: handshakeHeaders(request.headers),
    agent: false,
  })
  return new Promise((resolve, reject) => {
    upstream.on('error', reject)
    upstream.on('response', (response) => {
      text(response)
        .then((message) => refuse(client, response.statusCode ?? 502, message))
        .then(() => resolve(undefined), reject)
    })
    upstream.on('upgrade', (response, chromium, chromiumHead) => {
      client.write(switchingProtocols(response.headers))
      const tap = new CommandTap(telemetry)
      const hasEnded = () => endsNow([endpoint.ended])
      const connection = new CdpConnection(client, chromium as Socket, { usable, prepare, tap, hasEnded })
      // Data that arrived with the handshake belongs to the stream, as if it arrived now.
      if (chromiumHead.length > 0) chromium.emit('data', chromiumHead)
      if (head.length > 0) client.emit('data', head)
      resolve(connection)
    })
    client.once('close', () => upstream.destroy())
    upstream.end()
  })
}

/** Without extensions, so that nothing is compressed; without an origin, which Chromium would check. */
export function handshakeHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const kept = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-protocol']
  const handshake = kept.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]]))
  return { connection: 'Upgrade', upgrade: 'websocket', ...Object.fromEntries(handshake) }
}

export function switchingProtocols(headers: IncomingHttpHeaders): string {
  const protocol = headers['sec-websocket-protocol']
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'connection: Upgrade',
    'upgrade: websocket',
    `sec-websocket-accept: ${headers['sec-websocket-accept']}`,
    ...(protocol === undefined ? [] : [`sec-websocket-protocol: ${protocol}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

export function refuse(client: Socket, status: number, message: string): void {
  endWithResponse(client, status, { code: status === 404 ? 'not_found' : 'session_unreachable', message })
}
