import type { Duplex } from 'node:stream'

/** Writes a complete JSON response to a socket that no HTTP server handles any more, and ends the connection. */
export function endWithResponse(
  socket: Duplex,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (socket.destroyed) return
  const bytes = Buffer.from(JSON.stringify(body))
  const head = [
    // The reason phrase may be empty. Loading Node's list of phrases would cost every agent 30 ms.
    `HTTP/1.1 ${status} `,
    'connection: close',
    'content-type: application/json; charset=utf-8',
    'x-content-type-options: nosniff',
    `content-length: ${bytes.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]))
}
