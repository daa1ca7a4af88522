import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

/**
 * The body of a command. It is not validated: it comes only from the server, which uses the type of the same contract,
 * and a schema would cost every session 8 MB.
 */
export async function readJson<Body>(request: IncomingMessage): Promise<Body> {
  return JSON.parse(await text(request)) as Body
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}
