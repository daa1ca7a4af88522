import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { devToolsUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { toDevToolsServer } from '../browser/devtools-server.ts'
import { http } from '../http/node-http.ts'

/** Forwards a request for `/json…` or a DevTools file to Chromium; the server rewrites the addresses. */
export async function answerDiscovery(
  endpoint: Promise<DevToolsEndpoint>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await askChromium(endpoint, request).catch((cause) => {
    throw new BerthError('session_unreachable', undefined, { cause })
  })
  // For a missing DevTools file Chromium responds with 200 and nothing else.
  const isMissing = request.url?.startsWith(devToolsUpgrade.path) && answer.headers['content-length'] === '0'
  const status = isMissing ? 404 : (answer.statusCode ?? 502)
  response.writeHead(status, { 'content-type': answer.headers['content-type'] ?? 'text/plain' })
  await pipeline(answer, response)
}

async function askChromium(endpoint: Promise<DevToolsEndpoint>, request: IncomingMessage): Promise<IncomingMessage> {
  const { port } = await endpoint
  return new Promise((resolve, reject) => {
    const { method, url: path } = request
    const upstream = http.request({ ...toDevToolsServer, port, method, path, agent: false }, resolve)
    upstream.on('error', reject)
    upstream.end()
  })
}
