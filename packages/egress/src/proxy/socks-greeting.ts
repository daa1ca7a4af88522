import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type HostAndPort, parseHost } from '@berth/contract/egress/host.ts'
import type { ClientConnection } from './client-connection.ts'

const version = 5
const withoutCredentials = 0
const noMethod = 0xff
const connectCommand = 1
const addressBytes = { 1: 4, 4: 16 } as const
const nameType = 3

/** Answers of RFC 1928 to a request. */
const answers = { granted: 0, proxyUnreachable: 1, commandNotSupported: 7, addressNotSupported: 8 } as const

/**
 * Takes the one destination of a connection by SOCKS5, and says whether it can be used; if not, it has been ended.
 * Requests in plain HTTP follow. A proxy that cannot be connected to is refused here: everything else that fails is
 * told as the answer to a request.
 */
export async function takeDestination(client: ClientConnection): Promise<boolean> {
  const { socket } = client
  const answer = await negotiate(client)
  if (answer === undefined) socket.write(Buffer.from([version, noMethod]))
  else socket.write(Buffer.from([version, answer, 0, 1, 0, 0, 0, 0, 0, 0]))
  if (answer === answers.granted) return true
  socket.destroySoon()
  return false
}

async function negotiate(client: ClientConnection): Promise<number | undefined> {
  const { socket, gone: signal } = client
  const [, methodCount = 0] = await take(socket, 2, signal)
  const methods = await take(socket, methodCount, signal)
  if (!methods.includes(withoutCredentials)) return undefined
  socket.write(Buffer.from([version, withoutCredentials]))

  const [, command, , addressType = 0] = await take(socket, 4, signal)
  const destination = await takeAddress(socket, addressType, signal)
  if (command !== connectCommand) return answers.commandNotSupported
  if (!destination) return answers.addressNotSupported
  try {
    await client.pin(destination)
    return answers.granted
  } catch (error) {
    signal.throwIfAborted()
    return client.failureOf(error).isOfProxyItself ? answers.proxyUnreachable : answers.granted
  }
}

async function takeAddress(socket: Socket, type: number, signal: AbortSignal): Promise<HostAndPort | undefined> {
  let text: string
  if (type === nameType) {
    const [length = 0] = await take(socket, 1, signal)
    text = (await take(socket, length, signal)).toString('latin1')
  } else if (type === 1 || type === 4) {
    const bytes = await take(socket, addressBytes[type], signal)
    text = type === 1 ? bytes.join('.') : bytes.toString('hex').replaceAll(/(....)(?!$)/g, '$1:')
  } else return undefined
  const port = (await take(socket, 2, signal)).readUInt16BE()
  const host = parseHost(text.includes(':') ? `[${text}]` : text)
  return host && port > 0 ? { host, port } : undefined
}

/** Exactly so many bytes, as soon as they are there. What follows them stays where it is. */
async function take(socket: Socket, length: number, signal: AbortSignal): Promise<Buffer> {
  if (length === 0) return Buffer.alloc(0)
  for (;;) {
    const bytes: Buffer | null = socket.read(length)
    if (bytes?.length === length) return bytes
    if (bytes || socket.readableEnded) throw new Error('the client has ended in the middle of a greeting')
    await once(socket, 'readable', { signal })
  }
}
