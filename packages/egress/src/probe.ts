import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { rootCertificates, connect as secure } from 'node:tls'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import { hostText, parseAddress, parseHostAndPort } from '@berth/contract/egress/host.ts'
import type { Connector, Destination } from './connectors/connector.ts'
import type { ConnectorOptions } from './connectors/direct-connector.ts'
import { TunnelRefused } from './connectors/http-tunnel.ts'
import { ProxyConnectors } from './connectors/proxy-connector.ts'
import { withinLimit } from './connectors/time-limit.ts'
import { EgressFailure, toEgressFailure } from './egress-failure.ts'

/** The destination of a check without a URL. Only the proxy connects there, never egress itself. */
const usualDestination: Destination = { host: { kind: 'name', name: 'example.com' }, port: 443, isFullyQualified: true }
const maxAnswerBytes = 64 * 1024

interface ProbeTarget {
  readonly url: URL
  readonly destination: Destination
}

/** Checks a proxy the way a session would use it. */
export async function probeProxy(probe: EgressProbe, options: ConnectorOptions): Promise<EgressProbeResult> {
  const target = probe.url === undefined ? undefined : targetOf(probe.url)
  try {
    if (target && probe.must_be_permitted)
      await options.guard.permit(target.destination, (name) => options.names.addresses(name))
  } catch {
    return { outcome: 'not_permitted' }
  }
  const connector = new ProxyConnectors(probe.proxy, options).any()
  const startedAt = performance.now()
  try {
    const ip_address = await withinLimit('proxy-timeout', new AbortController().signal, async (signal) =>
      target ? exitAddress(await ask(connector, target, probe, signal)) : openTunnel(connector, signal),
    )
    const latency_ms = Math.round(performance.now() - startedAt)
    return { outcome: 'reached', latency_ms, ...(ip_address !== undefined && { ip_address }) }
  } catch (error) {
    const failure = toEgressFailure(error)
    if (failure.kind === 'internal-error') throw error
    return { outcome: 'failed', failure: failure.kind }
  }
}

function targetOf(text: string): ProbeTarget {
  const url = new URL(text)
  const destination = parseHostAndPort(url.host, url.protocol === 'https:' ? 443 : 80)
  if (!destination) throw new Error('the URL of a probe names no host')
  return { url, destination: { ...destination, isFullyQualified: false } }
}

async function openTunnel(connector: Connector, signal: AbortSignal): Promise<undefined> {
  const socket = await connector.connect(usualDestination, signal)
  socket.on('error', () => {}).destroy()
}

/** Returns the server's response. Rejects when there is none, or when the proxy answered instead. */
async function ask(
  connector: Connector,
  target: ProbeTarget,
  probe: EgressProbe,
  signal: AbortSignal,
): Promise<string> {
  const { url, destination } = target
  const path = `${url.pathname}${url.search}`
  const headers = { host: url.host, accept: '*/*', 'user-agent': 'berth', connection: 'close' }
  try {
    const tunnel = await connector.connect(destination, signal)
    tunnel.on('error', () => {})
    return url.protocol === 'https:'
      ? await answerOf(
          requestHttps({ createConnection: () => secureTunnel(tunnel, destination, probe), path, headers, signal }),
        )
      : await answerOf(requestHttp({ createConnection: () => tunnel, path, headers, signal }))
  } catch (error) {
    const { requests } = connector
    if (!(error instanceof TunnelRefused) || !requests || url.protocol === 'https:') throw error
    const socket = await requests.connect(destination, signal)
    socket.on('error', () => {})
    const { authorization } = requests
    const proxied = authorization === undefined ? headers : { ...headers, 'proxy-authorization': authorization }
    return answerOf(requestHttp({ createConnection: () => socket, path: url.href, headers: proxied, signal }))
  }
}

/** A proxy with a CA bundle may intercept TLS. */
function secureTunnel(socket: Socket, { host }: Destination, { proxy }: EgressProbe): Socket {
  const bundles = proxy.upstreams.map(({ ca_bundle }) => ca_bundle).filter((bundle) => bundle !== undefined)
  return secure({
    socket,
    host: host.kind === 'name' ? host.name : hostText(host),
    ...(host.kind === 'name' && { servername: host.name }),
    ca: [...rootCertificates, ...bundles],
  })
}

function answerOf(request: ReturnType<typeof requestHttp>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  request.once('response', (answer) => readAnswer(answer).then(resolve, reject))
  request.on('error', (error: Error) =>
    reject(error instanceof EgressFailure ? error : new EgressFailure('proxy-failed')),
  )
  request.end()
  return promise.finally(() => request.destroy())
}

async function readAnswer(answer: IncomingMessage): Promise<string> {
  const status = answer.statusCode ?? 0
  if (status === 407) throw new EgressFailure('proxy-rejected')
  if (status >= 500) throw new EgressFailure('proxy-failed')
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxAnswerBytes) break
  }
  return Buffer.concat(chunks).toString()
}

/** Echo services answer with the address alone, or with JSON that contains it. */
function exitAddress(answer: string): string | undefined {
  const text = answer.trim()
  const address = parseAddress(text)
  if (address !== undefined || !text.startsWith('{')) return address
  try {
    const { ip, ip_address, origin } = JSON.parse(text) as Record<string, unknown>
    return [ip, ip_address, origin]
      .map(String)
      .map(parseAddress)
      .find((found) => found !== undefined)
  } catch {
    return undefined
  }
}
