import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BerthError } from '@berth/contract/errors.ts'

/** RFC 6455 §1.3. */
const acceptanceSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** RFC 9110 §5.6.2. */
const token = /^[\w!#$%&'*+.^`|~-]+$/

/**
 * Validates the handshake of a client. The key is checked as little as Chromium does: some clients send no Base64, and
 * the key only matches the response to the request.
 */
export function checkHandshake(headers: IncomingHttpHeaders): void {
  const refuse = (reason: string) => {
    throw new BerthError('bad_request', { reason })
  }
  if (headers.upgrade?.toLowerCase() !== 'websocket') refuse('upgrade: must be websocket.')
  if (headers['sec-websocket-version'] !== '13') refuse('sec-websocket-version: must be 13.')
  if (!headers['sec-websocket-key']) refuse('sec-websocket-key: must not be empty.')
}

/** The handshake for the agent, with the client's path and subprotocols, but without the token. */
export function handshakeForAgent(path: string, headers: IncomingHttpHeaders): string {
  const protocols = offeredProtocols(headers)
  return [
    `GET ${path} HTTP/1.1`,
    'host: agent',
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    ...(protocols.length > 0 ? [`sec-websocket-protocol: ${protocols.join(', ')}`] : []),
    '\r\n',
  ].join('\r\n')
}

/**
 * The response that opens the client's WebSocket, written entirely by berth. Includes a subprotocol only if the client
 * offered it.
 */
export function acceptance(headers: IncomingHttpHeaders, protocol: string | undefined): string {
  const accepted = createHash('sha1').update(`${headers['sec-websocket-key']}${acceptanceSuffix}`).digest('base64')
  const isOffered = protocol !== undefined && offeredProtocols(headers).includes(protocol)
  return [
    'HTTP/1.1 101 Switching Protocols',
    'connection: Upgrade',
    'upgrade: websocket',
    `sec-websocket-accept: ${accepted}`,
    ...(isOffered ? [`sec-websocket-protocol: ${protocol}`] : []),
    '\r\n',
  ].join('\r\n')
}

function offeredProtocols(headers: IncomingHttpHeaders): readonly string[] {
  return (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => token.test(name))
}
