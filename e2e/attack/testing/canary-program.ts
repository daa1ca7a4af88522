import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/*
 * Runs in a network namespace, listens on ports of every address, and prints a line for everything that arrives.
 * Arguments: `tcp:80`, `udp:3478`, `dns:100.127.0.2`.
 */

for (const argument of process.argv.slice(2)) {
  const [kind = '', place = ''] = argument.split(':')
  if (kind === 'tcp') await listen(Number(place))
  else if (kind === 'udp') await receive(Number(place))
  else await answerNames(place)
}
print('ready')

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function listen(port: number): Promise<void> {
  const server = createServer(answer)
  server.on('connection', (socket: Socket) => print(`tcp ${plain(socket.localAddress)} ${port}`))
  server.listen(port, '::')
  await once(server, 'listening')
}

/** `/redirect?<address>` redirects. Everything else is a page that names itself and that other origins may read. */
function answer({ url = '/' }: IncomingMessage, response: ServerResponse): void {
  const [path, to = ''] = url.split(/\?(.*)/s)
  const headers = { connection: 'close', 'access-control-allow-origin': '*', 'content-type': 'text/html' }
  if (path === '/redirect') response.writeHead(302, { ...headers, location: decodeURIComponent(to) }).end()
  else response.writeHead(200, headers).end('<title>canary</title>the canary was reached')
}

async function receive(port: number): Promise<void> {
  const socket = createSocket('udp6', () => print(`udp ${port}`))
  socket.bind(port, '::')
  await once(socket, 'listening')
}

/**
 * A name server for names that change: `<label>.public-then-<address>.rebind.test` is public at the first query, and has
 * the other address afterwards. No other name exists.
 */
async function answerNames(address: string): Promise<void> {
  const asked = new Set<string>()
  const socket = createSocket('udp4', (query, { port, address: client }) => {
    const { name, type, end } = questionOf(query)
    print(`dns ${name} ${type}`)
    const [, later] = /^[\w-]+\.public-then-([\d.]+)\.rebind\.test$/.exec(name) ?? []
    const isAddressQuery = type === 1 && later !== undefined
    const found = isAddressQuery ? (asked.has(name) ? later : '45.5.5.5') : undefined
    if (isAddressQuery) asked.add(name)
    socket.send(replyTo(query.subarray(0, end), later !== undefined, found), port, client)
  })
  socket.bind(53, address)
  await once(socket, 'listening')
}

interface Question {
  readonly name: string
  /** 1 requests an IPv4 address, 28 an IPv6 address. */
  readonly type: number
  /** The end of the question within the message. */
  readonly end: number
}

function questionOf(query: Buffer): Question {
  const labels: string[] = []
  let offset = 12
  for (let length = query[offset] ?? 0; length > 0; length = query[offset] ?? 0) {
    labels.push(query.toString('latin1', offset + 1, offset + 1 + length))
    offset += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(offset + 1), end: offset + 5 }
}

function replyTo(question: Buffer, exists: boolean, address: string | undefined): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(exists ? 0x8180 : 0x8183, 2)
  head.writeUInt16BE(address === undefined ? 0 : 1, 6)
  head.fill(0, 8, 12)
  if (address === undefined) return head
  // A record that refers to the name of the question: class IN, TTL 0.
  const record = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]
  return Buffer.concat([head, Buffer.from(record)])
}

function plain(address: string | undefined): string {
  return address?.replace('::ffff:', '') ?? ''
}
