import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AddressFamily,
  type ConnectionClosed,
  type ConnectionFailed,
  type ConnectionFailure,
  type ConnectionOpened,
  type ControlMessage,
  type LookupAnswer,
  type MachineGreeting,
  machineProtocolVersion,
} from '@berth/contract/egress/machine-protocol.ts'
import { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import { connectionFailures } from './connection-failures.ts'
import { readBulkFirstLine, readLines, writeLine } from './json-lines.ts'

/** How long a request to egress waits while egress restarts. */
const restartLimitMilliseconds = 5_000
const firstPauseMilliseconds = 20
const longestPauseMilliseconds = 500
/** More than Chromium sends at once; programs retry further queries. */
const maxLookups = 1_024

export type Ending = ConnectionClosed['how']

/** A connection to a site, opened by egress. */
export interface EgressConnection {
  readonly socket: BulkSocket
  /** Data that has arrived with the reply of egress. */
  readonly received: Buffer
  /** How the remote end has ended its direction. */
  readonly farEnd: Promise<Ending>
  /** Resolves when both directions have broken, also after a normal end; losing egress breaks them too. */
  readonly broken: Promise<void>
  /** Reports how the program is ending its direction. */
  announceEnd(how: Ending): void
}

export class ConnectionRefusal extends Error {
  readonly kind: ConnectionFailure

  constructor(kind: ConnectionFailure) {
    super(`egress does not connect: ${kind}`)
    this.kind = kind
  }
}

/** Egress has ended before its reply. */
class LostEgress extends Error {}

interface Control {
  readonly socket: Socket
  readonly lookups: Promise<LookupLine>
}

/** The agent's requests to egress over the machine's unix socket. Egress may restart at any moment. */
export class EgressUplink {
  readonly #socketPath: string
  #control: Promise<Control> | undefined
  /** Connections for which egress may still send messages. */
  readonly #open = new Map<number, { readonly socket: Socket; readonly onEnd: (how: Ending) => void }>()
  #lastId = 0

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  /** Throws a ConnectionRefusal. */
  connect(host: string, port: number): Promise<EgressConnection> {
    return this.#ask(async (control) => {
      const id = ++this.#lastId
      const socket = new BulkSocket({ allowHalfOpen: true })
      await this.#greet(socket, { type: 'connect', id, host, port })
      const farEnd = Promise.withResolvers<Ending>()
      const broken = Promise.withResolvers<void>()
      let hasEnded = false
      this.#open.set(id, {
        socket,
        onEnd: (how) => {
          hasEnded = true
          farEnd.resolve(how)
          if (how === 'reset') broken.resolve()
          if (how === 'reset' || socket.closed) this.#open.delete(id)
        },
      })
      socket.once('close', () => hasEnded && this.#open.delete(id))
      const { message: answer, rest: received } = await readBulkFirstLine<ConnectionOpened | ConnectionFailed>(socket)
      if (answer?.type !== 'connected') {
        this.#open.delete(id)
        socket.destroy()
        if (answer) throw new ConnectionRefusal(answer.kind)
        throw new LostEgress('egress has not answered')
      }
      return {
        socket,
        received,
        farEnd: farEnd.promise,
        broken: broken.promise,
        announceEnd: (how) => {
          if (!socket.closed) writeLine(control.socket, { type: 'closed', id, how } satisfies ConnectionClosed)
        },
      }
    })
  }

  /** Throws a ConnectionRefusal if there is no egress. */
  async lookup(name: string, family: AddressFamily): Promise<LookupAnswer> {
    const answer = await this.#ask(async ({ lookups }) => (await lookups).ask(name, family))
    if ('failed' in answer && answer.failed === 'refused') {
      connectionFailures.note(name, undefined, { code: 'network_policy_denied', status: 403 })
    }
    return answer
  }

  /** Retries if egress ends meanwhile, up to the time limit. */
  async #ask<Answer>(question: (control: Control) => Promise<Answer>): Promise<Answer> {
    const giveUp = performance.now() + restartLimitMilliseconds
    for (let pause = firstPauseMilliseconds; ; pause = Math.min(pause * 2, longestPauseMilliseconds)) {
      try {
        return await question(await this.#startedControl())
      } catch (error) {
        if (error instanceof ConnectionRefusal) throw error
        if (performance.now() + pause > giveUp) throw new ConnectionRefusal('internal-error')
        await delay(pause)
      }
    }
  }

  #startedControl(): Promise<Control> {
    if (this.#control) return this.#control
    const control = this.#startControl(() => {
      if (this.#control === control) this.#control = undefined
    })
    this.#control = control
    return control
  }

  async #startControl(forget: () => void): Promise<Control> {
    try {
      const socket = await this.#greet(new Socket(), { type: 'control', version: machineProtocolVersion })
      const ready = Promise.withResolvers<void>()
      socket.once('close', () => {
        forget()
        for (const connection of this.#open.values()) {
          connection.onEnd('reset')
          connection.socket.destroy()
        }
        ready.reject(new LostEgress('egress has ended the control connection'))
      })
      readLines<ControlMessage>(socket, (message) => {
        if (message.type === 'ready') ready.resolve()
        if (message.type === 'proxy_failed') {
          connectionFailures.note(message.host, message.port, { code: message.code, status: 502 })
        }
        if (message.type === 'closed') this.#open.get(message.id)?.onEnd(message.how)
      })
      await ready.promise
      const lookups = this.#greet(new Socket(), { type: 'lookup' }).then((line) => {
        socket.once('close', () => line.destroy())
        line.once('close', () => socket.destroy())
        return new LookupLine(line)
      })
      lookups.catch(() => socket.destroy())
      return { socket, lookups }
    } catch (error) {
      forget()
      throw error
    }
  }

  #greet(socket: Socket, greeting: MachineGreeting): Promise<Socket> {
    socket.connect({ path: this.#socketPath })
    writeLine(socket, greeting)
    return new Promise((resolve, reject) => {
      socket.once('connect', () => resolve(socket))
      socket.on('error', reject) // 'close' follows.
    })
  }
}

/** One connection for all lookups: replies arrive in any order. */
class LookupLine {
  readonly #socket: Socket
  readonly #waiting = new Map<number, PromiseWithResolvers<LookupAnswer>>()
  #lastId = 0

  constructor(socket: Socket) {
    this.#socket = socket
    readLines<LookupAnswer>(socket, (answer) => {
      this.#waiting.get(answer.id)?.resolve(answer)
      this.#waiting.delete(answer.id)
    })
    socket.once('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new LostEgress('egress has ended the lookups'))
      this.#waiting.clear()
    })
  }

  async ask(name: string, family: AddressFamily): Promise<LookupAnswer> {
    const id = ++this.#lastId
    if (this.#socket.destroyed) throw new LostEgress('egress has ended the lookups')
    if (this.#waiting.size >= maxLookups) return { id, failed: 'timeout' }
    const answer = Promise.withResolvers<LookupAnswer>()
    this.#waiting.set(id, answer)
    writeLine(this.#socket, { id, name, family })
    return answer.promise
  }
}
