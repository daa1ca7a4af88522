import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { BerthError } from '@berth/contract/errors.ts'
import { matchesPath, type Route } from '@berth/contract/route.ts'
import { findUpgrade, type Upgrade } from '@berth/contract/upgrade.ts'
import { pathOf } from './error-reply.ts'
import { sendEvents } from './event-stream.ts'

interface MountedRoute extends Route {
  /** The response is a stream of server-sent events. */
  readonly isStream?: true
}

export type RouteHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void
/** An error before the first event becomes an error response. The signal aborts when the reader disconnects. */
export type StreamHandler = (request: IncomingMessage, signal: AbortSignal) => AsyncIterable<object>
export type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void

/** One handler for each declared route. */
export type RouteHandlers<Routes> = {
  readonly [Name in keyof Routes]: Routes[Name] extends { readonly isStream: true } ? StreamHandler : RouteHandler
}

interface MountRoutesOptions<Routes, Name extends string> {
  readonly routes: Routes
  readonly handlers: RouteHandlers<Routes>
  readonly upgrades: readonly Upgrade<Name>[]
  readonly upgradeHandlers: Readonly<Record<Name, UpgradeHandler>>
  /** Handles WebSockets that are not declared. */
  readonly refuseUpgrade: UpgradeHandler
  /** Responds when a handler fails. Must check whether the response has started: nothing can be sent then. */
  readonly replyWithError: (request: IncomingMessage, response: ServerResponse, thrown: unknown) => Promise<void>
}

/**
 * Serves declared requests, streams and WebSockets on a plain Node.js server, for processes that cannot afford a
 * framework. The server uses `mount`.
 */
export function mountRoutes<Routes extends Readonly<Record<string, MountedRoute>>, Name extends string>(
  server: Server,
  options: MountRoutesOptions<Routes, Name>,
): void {
  const { routes, handlers, upgrades, upgradeHandlers, refuseUpgrade, replyWithError } = options
  const table = Object.entries(routes).map(([name, route]) => ({ ...route, handler: handlers[name] }))

  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    answer(request, response).catch((thrown: unknown) => replyWithError(request, response, thrown))
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const upgrade = findUpgrade(upgrades, request.url ?? '')
    const handler = upgrade ? upgradeHandlers[upgrade.name] : refuseUpgrade
    handler(request, socket, head)
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const path = pathOf(url)
    const route = table.find((each) => (each.method ?? method) === method && matchesPath(each.path, path))
    if (!route) throw new BerthError('route_not_found', { method, path })
    if (!route.isStream) return (route.handler as RouteHandler)(request, response)
    request.resume()
    const leaving = new AbortController()
    response.once('close', () => leaving.abort())
    await sendEvents(response, (route.handler as StreamHandler)(request, leaving.signal))
  }
}
