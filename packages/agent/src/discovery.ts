import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import type { DevToolsEndpoint } from './browser/chromium.ts'
import { http } from './http.ts'

/** Passes a request for `/json…` on to Chromium's DevTools server; the server in front rewrites the addresses. */
export async function answerDiscovery(
  endpoint: Promise<DevToolsEndpoint>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await askChromium(endpoint, request).catch((cause) => {
    throw new BerthError('session_unreachable', undefined, { cause })
  })
  response.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] ?? 'text/plain' })
  await pipeline(answer, response)
}

async function askChromium(endpoint: Promise<DevToolsEndpoint>, request: IncomingMessage): Promise<IncomingMessage> {
  const { port } = await endpoint
  return new Promise((resolve, reject) => {
    const { method, url: path } = request
    const upstream = http.request({ host: '127.0.0.1', port, method, path, agent: false }, resolve)
    upstream.on('error', reject)
    upstream.end()
  })
}
