import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'

export interface ReceivedLog {
  readonly eventName: string
  readonly severity: string
  readonly timeNanoseconds: bigint
  readonly attributes: Readonly<Record<string, string | number>>
}

/** An OTLP/HTTP receiver for logs as protobuf. */
export class OtlpCollector implements AsyncDisposable {
  readonly logs: ReceivedLog[] = []
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = []
  /** Statuses of the next responses, before requests are accepted. */
  readonly refusals: number[] = []
  /** Whether requests stay without a response. */
  hangs = false
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const body = await buffer(request)
      this.requests.push({ path: request.url ?? '', headers: request.headers })
      if (this.hangs) return
      const refusal = this.refusals.shift()
      if (refusal !== undefined) {
        response.writeHead(refusal).end()
        return
      }
      const bytes = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
      this.logs.push(...readLogs(bytes))
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  static async open(): Promise<OtlpCollector> {
    const collector = new OtlpCollector()
    collector.#server.listen(0, '127.0.0.1')
    await once(collector.#server, 'listening')
    return collector
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Responds again, and cuts off pending requests. */
  stopHanging(): void {
    this.hangs = false
    // `closeAllConnections` ignores a connection that its client has left without a response.
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.stopHanging()
    await closed
  }
}

/** Numbers are those of the fields in opentelemetry/proto/logs/v1/logs.proto. */
function readLogs(request: Buffer): readonly ReceivedLog[] {
  const records = messages(request, 1)
    .flatMap((resource) => messages(resource, 2))
    .flatMap((scope) => messages(scope, 2))
  return records.map((record) => ({
    eventName: messages(record, 12)[0]?.toString() ?? '',
    severity: messages(record, 3)[0]?.toString() ?? '',
    timeNanoseconds: messages(record, 1)[0]?.readBigUInt64LE() ?? 0n,
    attributes: Object.fromEntries(
      messages(record, 6).map((attribute) => {
        const [name = '', value] = [messages(attribute, 1)[0]?.toString(), messages(attribute, 2)[0]]
        const text = value && messages(value, 1)[0]?.toString()
        return [name, text ?? Number(value && messages(value, 3)[0]?.readBigUInt64LE())]
      }),
    ),
  }))
}

/** The values of a field. A varint is returned as eight bytes. */
function messages(message: Buffer, field: number): readonly Buffer[] {
  const found: Buffer[] = []
  let offset = 0
  const readNumber = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[offset++] ?? 0
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  while (offset < message.length) {
    const tag = Number(readNumber())
    const type = tag & 7
    let value: Buffer
    if (type === 0) {
      value = Buffer.alloc(8)
      value.writeBigUInt64LE(BigInt.asUintN(64, readNumber()))
    } else {
      const length = type === 1 ? 8 : type === 5 ? 4 : Number(readNumber())
      value = message.subarray(offset, offset + length)
      offset += length
    }
    if (tag >> 3 === field) found.push(value)
  }
  return found
}
