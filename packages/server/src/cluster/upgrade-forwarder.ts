import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'
import { WebSocketSplice } from '../ingress/websocket-splice.ts'
import { headersWithout } from './end-to-end-headers.ts'
import type { OpenForwards } from './open-forwards.ts'
import { connectToPeer } from './peers/peer-connection.ts'
import { forwardedHeader } from './peers/peer-signature.ts'

/** The other server limits how long an agent may take. */
const answerMilliseconds = 60_000

interface UpgradeForward {
  readonly owner: string
  readonly address: URL
  readonly signature: string
}

/** Forwards WebSockets to other servers: the original request, then bytes in both directions. */
export class UpgradeForwarder {
  readonly #forwards: OpenForwards
  readonly #open = new Set<WebSocketSplice>()

  constructor(forwards: OpenForwards) {
    this.#forwards = forwards
  }

  get openConnections(): number {
    return this.#open.size
  }

  /** Tells every client to reconnect. */
  restart(): void {
    for (const splice of this.#open) splice.restart()
  }

  /** Rejects with `session_unreachable` while an error response is still possible. */
  async forward(
    request: IncomingMessage,
    client: Duplex,
    head: Buffer,
    { owner, address, signature }: UpgradeForward,
  ): Promise<void> {
    const peer = await connectToPeer(address).catch((cause: unknown) => {
      throw new BerthError('session_unreachable', undefined, { cause })
    })
    peer.on('error', () => peer.destroy())
    const open = this.#forwards.add(owner, () => peer.destroy())
    peer.once('close', () => open[Symbol.dispose]())
    client.once('close', () => peer.destroy())
    if (client.destroyed) return void peer.destroy()
    peer.write(headOf(request, signature), 'latin1')
    if (head.length > 0) peer.write(head)
    await answered(peer)
    if (!client.destroyed) this.#splice(client, peer)
  }

  #splice(client: Duplex, peer: Socket): void {
    const onEnd = () => this.#open.delete(splice)
    const splice = new WebSocketSplice({ client, upstream: peer, hasHead: true, onEnd })
    this.#open.add(splice)
  }
}

/** Resolves when there is data to read. */
function answered(peer: Socket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (reason: string) => {
    peer.destroy()
    reject(new BerthError('session_unreachable', undefined, { cause: new Error(reason) }))
  }
  const limit = setTimeout(() => fail('the server does not respond'), answerMilliseconds)
  const onClose = () => fail('the server has hung up')
  peer.once('close', onClose)
  peer.once('readable', () => {
    peer.off('close', onClose)
    // The event also signals the end of the stream.
    if (peer.readableLength > 0) resolve()
    else fail('the server has hung up')
  })
  return promise.finally(() => clearTimeout(limit))
}

function headOf({ method, url, rawHeaders }: IncomingMessage, signature: string): string {
  const lines = headersWithout(rawHeaders, forwardedHeader).map(([name, value]) => `${name}: ${value}`)
  return [`${method} ${url} HTTP/1.1`, ...lines, `${forwardedHeader}: ${signature}`, '', ''].join('\r\n')
}
