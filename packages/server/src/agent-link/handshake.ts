import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BerthError } from '@berth/contract/errors.ts'

/** RFC 6455 §1.3. */
const acceptanceSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** RFC 9110 §5.6.2. */
const token = /^[\w!#$%&'*+.^`|~-]+$/

/**
 * What a client's handshake must say. Of its key as little as Chromium asks: there are clients that send no Base64, and
 * the key proves nothing but that the answer belongs to the question.
 */
export function checkHandshake(headers: IncomingHttpHeaders): void {
  const refuse = (reason: string) => {
    throw new BerthError('bad_request', { reason })
  }
  if (headers.upgrade?.toLowerCase() !== 'websocket') refuse('upgrade: must be websocket.')
  if (headers['sec-websocket-version'] !== '13') refuse('sec-websocket-version: must be 13.')
  if (!headers['sec-websocket-key']) refuse('sec-websocket-key: must not be empty.')
}

/** The handshake that the agent gets. Of the client's it holds the path and the protocols, and no token. */
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

/** The answer that opens the client's websocket, all of it ours; a protocol only if the client has offered it. */
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
