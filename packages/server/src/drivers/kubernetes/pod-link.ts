import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import { machineIdentity, type PodProtocol, podPorts, podProtocols } from '@berth/contract/agent/machine/machine-pod.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { type CertificateAuthority, identityLifetimeMilliseconds } from './certificates.ts'

const connectLimitMilliseconds = 10_000
const answerLimitMilliseconds = 10_000
const maxAnswerBytes = 8 * 1024 * 1024

export interface PodAddress {
  readonly machineId: MachineId
  readonly host: string
  readonly port?: number
}

/** Connects to pods with the identity of this server. */
export class PodLink {
  readonly #authority: Pick<CertificateAuthority, 'issueToServer'>
  readonly #clock: Clock
  /** Shared by all connections: a separate one would take 100 KiB and time to read the keys again. */
  #context: Promise<SecureContext> | undefined
  #renewAt = 0

  constructor(authority: Pick<CertificateAuthority, 'issueToServer'>, clock: Clock) {
    this.#authority = authority
    this.#clock = clock
  }

  /** Rejects when the listener is not the gateway of this machine. */
  async connect({ machineId, host, port = podPorts.servers }: PodAddress, protocol: PodProtocol): Promise<Duplex> {
    const secureContext = await this.#currentContext()
    const limit = AbortSignal.timeout(connectLimitMilliseconds)
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
    try {
      await once(socket, 'connect', { signal: limit })
      return await handshake(socket, limit, {
        secureContext,
        ALPNProtocols: [protocol],
        checkServerIdentity: (_host, { subjectaltname }) =>
          subjectaltname === `URI:${machineIdentity(machineId)}`
            ? undefined
            : new Error(`this is not the machine ${machineId}`),
      })
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  /** Sends a request to the first process of the machine's container. */
  async ask(address: PodAddress, request: string, body = ''): Promise<string> {
    const connection = await this.connect(address, podProtocols.supervisor)
    const timer = setTimeout(
      () => connection.destroy(new Error('the machine does not respond')),
      answerLimitMilliseconds,
    )
    try {
      connection.write(`${request}\n${body}`)
      return readAnswer(await readAll(connection))
    } finally {
      clearTimeout(timer)
      connection.destroy()
    }
  }

  #currentContext(): Promise<SecureContext> {
    const now = this.#clock.now()
    if (!this.#context || now.getTime() >= this.#renewAt) {
      this.#renewAt = now.getTime() + identityLifetimeMilliseconds / 2
      const context = this.#newContext(now)
      this.#context = context
      context.catch(() => {
        this.#context = undefined
      })
    }
    return this.#context
  }

  async #newContext(now: Date): Promise<SecureContext> {
    const { authority, certificate, key } = await this.#authority.issueToServer(now)
    return createSecureContext({ ca: authority, cert: certificate, key, minVersion: 'TLSv1.3' })
  }
}

async function handshake(socket: Socket, signal: AbortSignal, options: ConnectionOptions): Promise<Duplex> {
  const secured = connectTls({ ...options, socket })
  try {
    await once(secured, 'secureConnect', { signal })
    return secured
  } catch (error) {
    secured.destroy()
    throw error
  }
}

async function readAll(connection: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of connection as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) throw new Error('the response of the machine is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function readAnswer(answer: Buffer): string {
  const end = answer.indexOf('\n')
  const [, length] = /^ok (\d+)$/.exec(answer.toString('utf8', 0, Math.max(end, 0))) ?? []
  if (length !== undefined && answer.length === end + 1 + Number(length)) return answer.toString('utf8', end + 1)
  throw new Error(answer.toString('utf8', 0, 200).trim() || 'the machine closed the connection')
}
