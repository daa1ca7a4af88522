import { type ClientRequest, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http'
import { pipeline } from 'node:stream'
import { EgressFailure } from '../egress-failure.ts'
import { type ClientConnection, type ForwardOptions, silenceLimitMilliseconds } from './client-connection.ts'
import { answerFailure } from './failure-reply.ts'
import { answerHeaders, requestHeaders } from './headers.ts'
import { parseOriginTarget, parseRequestTarget, usualAuthority } from './request-target.ts'
import { proxyAnswerLimitMilliseconds } from './time-limit.ts'
import type { Way } from './way.ts'

/** As much as Chromium takes: cookies of one site alone can have 200 KB. */
export const maxHeaderBytes = 256 * 1024

/** Serves a request in absolute form: sends it on and its answer back, both as they come. */
export function forwardRequest(client: ClientConnection, request: IncomingMessage, response: ServerResponse): void {
  const started = startRequest(client, request)
  if (!started) {
    answerFailure(response, notAbsolute())
    return
  }
  const { onward, way } = started
  client.beginExchange()
  response.once('close', () => client.endExchange())
  onward.once('continue', () => response.writeContinue())
  onward.once('response', (answer) =>
    sendAnswer(answer, response, { isKept: request.complete && onward.shouldKeepAlive, way }),
  )
  onward.on('error', (error) => {
    if (isEndOfKeptConnection(onward, error)) client.socket.destroy()
    else answerFailure(response, client.failureOf(error))
  })
  // Without an error, this is an answer that nobody asked for, such as an upgrade.
  onward.once('close', () => {
    if (!response.headersSent) answerFailure(response, new EgressFailure('bad-answer'))
  })
  request.pipe(onward)
}

/** The request as it goes on to the server, or nothing when its target is not one for a proxy. */
export function startRequest(
  client: ClientConnection,
  request: IncomingMessage,
  upgrade?: string,
): { readonly onward: ClientRequest; readonly way: Way } | undefined {
  const pinned = client.pinnedDestination
  const target = pinned ? parseOriginTarget(request.url ?? '', pinned) : parseRequestTarget(request.url ?? '')
  if (!target) return undefined

  const { destination, path } = target
  const way = client.wayTo(destination)
  // A proxy is told what was decided about, and no other spelling that it might read in its own way.
  const authority = way.hop ? usualAuthority(destination) : target.authority
  const headers = withBodyLength(request, requestHeaders(request.rawHeaders, authority, upgrade))
  const options: ForwardOptions = {
    agent: client.agent,
    destination,
    way,
    host: authority,
    method: request.method ?? 'GET',
    path: way.hop ? `http://${authority}${path}` : path,
    headers: way.hop?.authorization ? [...headers, 'Proxy-Authorization', way.hop.authorization] : headers,
    // Servers that Chromium understands break rules that Node insists on. This connection serves one client only, so
    // an answer that is read in two ways confuses nobody else.
    insecureHTTPParser: true,
    maxHeaderSize: maxHeaderBytes,
  }
  const onward = sendRequest(options)
  onward.maxHeadersCount = 0
  limitSilence(onward, way)
  return { onward, way }
}

/** A proxy that has never said a word is most likely dead; any other server may take its time to answer. */
function limitSilence(onward: ClientRequest, { hop }: Way): void {
  const isUnknown = hop?.hasSpoken === false
  if (isUnknown) onward.setTimeout(proxyAnswerLimitMilliseconds)
  onward.once('timeout', () => {
    onward.destroy(new EgressFailure(isUnknown && !hop.hasSpoken ? 'proxy-timeout' : 'timeout'))
  })
  onward.once('response', () => {
    if (hop) hop.hasSpoken = true
    if (isUnknown) onward.setTimeout(silenceLimitMilliseconds)
  })
}

/** Sends the answer of the server back. One that breaks off breaks the client's connection, so that it is not taken for whole. */
export function sendAnswer(
  answer: IncomingMessage,
  response: ServerResponse,
  { isKept, way }: { readonly isKept: boolean; readonly way: Way },
): void {
  const status = answer.statusCode ?? 0
  // 407 is for proxies to say: a browser would ask its user for a password, and give it to any server.
  if (status < 200 || status > 999 || status === 407) {
    answer.destroy()
    answerFailure(response, new EgressFailure(way.hop && status === 407 ? 'proxy-rejected' : 'bad-answer'))
    return
  }
  const reason = /^[\t\x20-\x7e\x80-\xff]*$/.test(answer.statusMessage ?? '') ? answer.statusMessage : ''
  response.sendDate = false
  const connection = isKept && response.shouldKeepAlive ? 'keep-alive' : 'close'
  response.writeHead(status, reason, [...answerHeaders(answer.rawHeaders), 'Connection', connection])
  pipeline(answer, response, () => {})
}

export function notAbsolute(): EgressFailure {
  return new EgressFailure('bad-request', 'This is a proxy: it takes http:// URLs, and CONNECT for all else.')
}

/** Node would send a body of unknown length where there is none. */
function withBodyLength(request: IncomingMessage, headers: readonly string[]): readonly string[] {
  const hasLength = 'content-length' in request.headers || 'transfer-encoding' in request.headers
  const mayHaveBody = ['POST', 'PUT', 'PATCH'].includes(request.method ?? '')
  return mayHaveBody && !hasLength ? [...headers, 'Content-Length', '0'] : headers
}

/** The server closed a kept connection at the moment it was used again. A client without a proxy would see just that. */
function isEndOfKeptConnection(onward: ClientRequest, error: NodeJS.ErrnoException): boolean {
  return onward.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
}
