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
  const { socket, gone } = client
  const bytes = new ByteReader(socket)
  const [, methodCount = 0] = await bytes.take(2)
  const methods = await bytes.take(methodCount)
  if (!methods.includes(withoutCredentials)) return undefined
  socket.write(Buffer.from([version, withoutCredentials]))

  const [, command, , addressType = 0] = await bytes.take(4)
  const destination = await takeAddress(bytes, addressType)
  if (command !== connectCommand) return answers.commandNotSupported
  if (!destination) return answers.addressNotSupported
  bytes.giveBackRest()
  try {
    await client.pin(destination)
    return answers.granted
  } catch (error) {
    gone.throwIfAborted()
    return client.failureOf(error).isOfProxyItself ? answers.proxyUnreachable : answers.granted
  }
}

async function takeAddress(bytes: ByteReader, type: number): Promise<HostAndPort | undefined> {
  let text: string
  if (type === nameType) {
    const [length = 0] = await bytes.take(1)
    text = (await bytes.take(length)).toString('latin1')
  } else if (type === 1 || type === 4) {
    const address = await bytes.take(addressBytes[type])
    text = type === 1 ? address.join('.') : address.toString('hex').replaceAll(/(....)(?!$)/g, '$1:')
  } else return undefined
  const port = (await bytes.take(2)).readUInt16BE()
  const host = parseHost(text.includes(':') ? `[${text}]` : text)
  return host && port > 0 ? { host, port } : undefined
}

/**
 * Takes exactly so many bytes from a socket. Everything that has come is taken out of it: a socket that is asked for
 * more than it has says again and again that it has some.
 */
class ByteReader {
  readonly #socket: Socket
  #rest = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
  }

  async take(length: number): Promise<Buffer> {
    while (this.#rest.length < length) {
      const chunk: Buffer | null = this.#socket.read()
      if (chunk) this.#rest = Buffer.concat([this.#rest, chunk])
      else if (this.#socket.readableEnded || this.#socket.destroyed)
        throw new Error('the client has ended in the middle of a greeting')
      else await this.#change()
    }
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }

  /** What follows the greeting is for whoever reads next. */
  giveBackRest(): void {
    if (this.#rest.length > 0) this.#socket.unshift(this.#rest)
  }

  /** Resolves with more bytes, or an end. */
  #change(): Promise<void> {
    const events = ['readable', 'end', 'close']
    return new Promise((resolve) => {
      const settle = () => {
        for (const event of events) this.#socket.off(event, settle)
        resolve()
      }
      for (const event of events) this.#socket.on(event, settle)
    })
  }
}
