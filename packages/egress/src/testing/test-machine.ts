import { EventEmitter, once } from 'node:events'
import { Agent, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Duplex, Readable } from 'node:stream'
import type {
  AddressFamily,
  ConnectionClosed,
  ConnectionFailed,
  ConnectionOpened,
  ControlMessage,
  LookupAnswer,
} from '@berth/contract/egress/machine-protocol.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** The connection failed; `kind` says why. */
export class NotConnected extends Error {
  readonly kind: ConnectionFailed['kind']

  constructor({ kind }: ConnectionFailed) {
    super(`not connected: ${kind}`)
    this.kind = kind
  }
}

export interface TestConnection extends Disposable {
  readonly id: number
  readonly socket: Socket
  readonly opened: ConnectionOpened
}

/** Talks to egress as the agent of a machine does. */
export class TestMachine {
  readonly socketPath: string
  readonly control: Socket
  /** All messages of egress on the control connection, in order. */
  readonly messages: ControlMessage[] = []
  readonly #events = new EventEmitter()
  #lookups: Promise<Socket> | undefined
  /** Egress refuses an id that is in use, also by a connection that this machine has opened before it reconnected. */
  static #nextId = 1
  #lastId = 0

  private constructor(socketPath: string, control: Socket) {
    this.socketPath = socketPath
    this.control = control
    this.#events.setMaxListeners(0)
    const lines = createInterface({ input: control })
    control.on('error', () => {})
    lines.on('error', () => {})
    lines.on('line', (line) => {
      const message = JSON.parse(line) as ControlMessage
      this.messages.push(message)
      this.#events.emit('message')
      if (message.type === 'closed') this.#events.emit(`closed ${message.id}`, message)
    })
  }

  /** Opens the control connection and waits until egress is ready. Rejects when it cannot connect. */
  static async open(socketPath: string): Promise<TestMachine> {
    const machine = new TestMachine(socketPath, connect(socketPath))
    machine.control.write('{"type":"control","version":1}\n')
    const gone = once(machine.control, 'close').then(() => Promise.reject(new Error('egress has not answered')))
    await Promise.race([machine.untilMessage(({ type }) => type === 'ready'), gone])
    gone.catch(() => {})
    return machine
  }

  async untilMessage<Message extends ControlMessage>(
    matches: (message: ControlMessage) => message is Message,
  ): Promise<Message>
  async untilMessage(matches: (message: ControlMessage) => boolean): Promise<ControlMessage>
  async untilMessage(matches: (message: ControlMessage) => boolean): Promise<ControlMessage> {
    for (;;) {
      const found = this.messages.find(matches)
      if (found) return found
      await once(this.#events, 'message')
    }
  }

  /** Opens a connection to `host:port`, with IPv6 addresses in brackets. Rejects with NotConnected. */
  async connect(destination: string): Promise<TestConnection> {
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(destination) ?? []
    const id = this.#newId()
    const socket = connect({ path: this.socketPath, allowHalfOpen: true })
    socket.on('error', () => {})
    socket.write(`${JSON.stringify({ type: 'connect', id, host, port: Number(port) })}\n`)
    const answer = JSON.parse(await takeLine(socket)) as ConnectionOpened | ConnectionFailed
    if (answer.type === 'failed') {
      socket.destroy()
      throw new NotConnected(answer)
    }
    return { id, socket, opened: answer, [Symbol.dispose]: () => void socket.destroy() }
  }

  /** Announces the end of the machine's direction and ends it. */
  end({ id, socket }: Pick<TestConnection, 'id' | 'socket'>, text = ''): void {
    this.control.write(`${JSON.stringify({ type: 'closed', id, how: 'end' } satisfies ConnectionClosed)}\n`)
    socket.end(text)
  }

  reset({ id, socket }: Pick<TestConnection, 'id' | 'socket'>): void {
    this.control.write(`${JSON.stringify({ type: 'closed', id, how: 'reset' } satisfies ConnectionClosed)}\n`)
    socket.destroy()
  }

  /** Returns how egress closes the connection. */
  async closed({ id }: TestConnection): Promise<ConnectionClosed['how']> {
    const said = (message: ControlMessage): message is ConnectionClosed =>
      message.type === 'closed' && message.id === id
    return (await this.untilMessage(said)).how
  }

  get lastId(): number {
    return this.#lastId
  }

  #newId(): number {
    this.#lastId = TestMachine.#nextId++
    return this.#lastId
  }

  async lookup(name: string, family: AddressFamily = 4): Promise<LookupAnswer> {
    this.#lookups ??= this.#openLookups()
    const socket = await this.#lookups
    const id = this.#newId()
    socket.write(`${JSON.stringify({ id, name, family })}\n`)
    const [answer] = await once(this.#events, `answer ${id}`)
    return answer
  }

  async #openLookups(): Promise<Socket> {
    const socket = connect(this.socketPath)
    socket.write('{"type":"lookup"}\n')
    createInterface({ input: socket }).on('line', (line) => {
      const answer = JSON.parse(line) as LookupAnswer
      this.#events.emit(`answer ${answer.id}`, answer)
    })
    return socket
  }

  /** Sends a plain HTTP request, as a browser without a proxy does. */
  async fetch(url: string, options: RequestOptions = {}): Promise<Answer> {
    const answer = await this.open(url, options)
    return { status: answer.statusCode ?? 0, headers: answer.headers, body: await textOf(answer) }
  }

  /** Like `fetch`, but leaves the body unread. */
  async open(url: string, { method = 'GET', headers = {}, body, path }: RequestOptions = {}): Promise<IncomingMessage> {
    const { host, pathname, search } = new URL(url)
    const connection = await this.connect(/:\d+$/.test(host) ? host : `${host}:80`)
    const agent = new OneConnection(connection.socket, () => this.end(connection))
    const outgoing = request({
      agent,
      host,
      path: path ?? `${pathname}${search}`,
      method,
      headers: { host, ...headers },
    })
    if (typeof body === 'string') outgoing.end(body)
    else if (body) body.pipe(outgoing)
    else outgoing.end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    answer.once('close', () => this.reset(connection))
    return answer
  }
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Readable
  readonly path?: string
}

class OneConnection extends Agent {
  readonly #socket: Socket

  constructor(socket: Socket, _end: () => void) {
    super()
    this.#socket = socket
  }

  override createConnection(): Duplex {
    return this.#socket
  }
}

async function takeLine(socket: Socket): Promise<string> {
  let line = Buffer.alloc(0)
  for (;;) {
    const chunk: Buffer | null = socket.read()
    if (chunk) line = Buffer.concat([line, chunk])
    const end = line.indexOf('\n')
    if (end !== -1) {
      if (end + 1 < line.length) socket.unshift(line.subarray(end + 1))
      return line.toString('utf8', 0, end)
    }
    if (socket.readableEnded || socket.destroyed) throw new Error(`egress has ended without an answer: ${line}`)
    if (!chunk) await Promise.race([once(socket, 'readable'), once(socket, 'end'), once(socket, 'close')])
  }
}

export async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** Resolves when the peer has ended or reset the stream, which is closed then. */
export async function closeOf(stream: Readable): Promise<void> {
  await new Promise<void>((resolve) =>
    stream
      .once('close', resolve)
      .once('end', () => stream.destroy())
      .on('error', () => {})
      .resume(),
  )
}
