import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { DevToolsEndpoint } from './browser/chromium.ts'

/** Passes a request for `/json…` on to Chromium's DevTools server; the server in front rewrites the addresses. */
export async function answerDiscovery(
  endpoint: Promise<DevToolsEndpoint>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { port } = await endpoint
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const upstream = httpRequest(
      { host: '127.0.0.1', port, method: request.method, path: request.url, agent: false },
      resolve,
    )
    upstream.on('error', reject)
    upstream.end()
  })
  response.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] ?? 'text/plain' })
  await pipeline(answer, response)
}
