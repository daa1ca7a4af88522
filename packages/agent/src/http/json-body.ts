import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

/**
 * The body of a command. It is not checked: it comes from the server alone, which has its type from the same contract,
 * and a schema would cost every session 8 MB.
 */
export async function readJson<Body>(request: IncomingMessage): Promise<Body> {
  return JSON.parse(await text(request)) as Body
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}
