import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: string
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Readable
}

/** Asks the proxy at the unix socket for a URL. */
export async function fetchThrough(socketPath: string, url: string, options: RequestOptions = {}): Promise<Answer> {
  const answer = await openThrough(socketPath, url, options)
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    rawHeaders: answer.rawHeaders,
    body: await textOf(answer),
  }
}

/** The same, with the body still to be read. */
export async function openThrough(
  socketPath: string,
  url: string,
  { method = 'GET', headers = {}, body }: RequestOptions = {},
): Promise<IncomingMessage> {
  const outgoing = request({ socketPath, path: url, method, headers, agent: false })
  if (typeof body === 'string') outgoing.end(body)
  else if (body) body.pipe(outgoing)
  else outgoing.end()
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  return answer
}

export interface Tunnel extends Disposable {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
}

/** Asks the proxy for a tunnel to `host:port`. */
export async function openTunnelThrough(socketPath: string, target: string): Promise<Tunnel> {
  const outgoing = request({ socketPath, path: target, method: 'CONNECT', headers: { host: target }, agent: false })
  outgoing.end()
  const [answer, socket, head] = (await once(outgoing, 'connect')) as [IncomingMessage, Socket, Buffer]
  if (head.length > 0) socket.unshift(head)
  socket.on('error', () => {})
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    socket,
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** Greets as Chromium does before plain HTTP, and returns the connection with the proxy's answer. */
export async function greetThrough(
  socketPath: string,
  name: string,
  port: number,
): Promise<{ socket: Socket; code: number }> {
  const socket = connect(socketPath)
  socket.on('error', () => {})
  socket.write(Buffer.from([5, 1, 0]))
  await once(socket, 'data')
  socket.write(Buffer.from([5, 1, 0, 3, name.length, ...Buffer.from(name), port >> 8, port & 255]))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.pause()
  return { socket, code: answer[1] ?? -1 }
}

/** Sends exactly these bytes, and returns all that comes until the proxy closes. */
export async function sendRaw(socketPath: string, text: string): Promise<string> {
  const socket = connect(socketPath)
  socket.write(text, 'latin1')
  try {
    return await textOf(socket)
  } finally {
    socket.destroy()
  }
}

export async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** Resolves when the stream is closed, with an error or without. */
export async function closeOf(stream: Readable): Promise<void> {
  await new Promise<void>((resolve) =>
    stream
      .once('close', resolve)
      .on('error', () => {})
      .resume(),
  )
}
