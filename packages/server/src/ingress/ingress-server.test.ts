import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { clientOf } from './connection-limits.ts'
import { createIngressServer, type IngressServerOptions } from './ingress-server.ts'

const stallLimits = { unreadMilliseconds: 300, lateBodyMilliseconds: 300 }
/** For bodies that come as fast as a busy machine lets them. */
const patient = { stallLimits: { unreadMilliseconds: 60_000, lateBodyMilliseconds: 60_000 } }

async function serve(
  context: TestContext,
  onRequest: RequestListener,
  options: Partial<IngressServerOptions> = {},
): Promise<() => Socket> {
  const limits = { total: 100, perAddress: 100 }
  const onUpgrade = (_request: unknown, socket: { end(text: string): void }) => socket.end('upgraded')
  const server = createIngressServer({ http: {}, limits, stallLimits, onRequest, onUpgrade, ...options })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    context.after(() => socket.destroy())
    return socket
  }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

test('pipelined requests are served one at a time, in order', {
  timeout: 10_000,
}, async (context) => {
  let atOnce = 0
  let most = 0
  const open = await serve(context, async ({ url }, response) => {
    most = Math.max(most, ++atOnce)
    await new Promise(setImmediate)
    atOnce -= 1
    response.end(url)
  })
  const socket = open()

  socket.write([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => get(`/${n}`)).join(''))
  socket.write('GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')

  assert.deepEqual((await text(socket)).match(/\/(\d(?!\.)|last)/g)?.join(''), '/1/2/3/4/5/6/7/8/9/last')
  assert.equal(most, 1)
})

test('a client that pipelines too many requests is disconnected', { timeout: 10_000 }, async (context) => {
  let served = 0
  const open = await serve(context, () => {
    served += 1
  })
  const socket = open()

  socket.write(get('/').repeat(1_000))
  await once(socket, 'close')

  assert.equal(served, 1)
})

for (const [protocol, header] of [
  ['HTTP/1.1', 'connection: close\r\n'],
  ['HTTP/1.0', ''],
]) {
  test(`a client of ${protocol} that wants no other response sees the one to a body that is still arriving`, {
    timeout: 10_000,
  }, async (context) => {
    const answer: RequestListener = (_request, response) => response.writeHead(413, { 'content-length': 4 }).end('much')
    const open = await serve(context, answer, patient)
    const socket = open()
    const bytes = 20_000_000
    socket.write(`POST / ${protocol}\r\nhost: x\r\n${header}content-length: ${bytes}\r\n\r\n`)

    // Reads nothing before everything is sent.
    await new Promise((resolve) => socket.write(Buffer.alloc(bytes), resolve))
    const seen = await text(socket)

    assert.match(seen, /^HTTP\/1\.1 413 .*\r\n\r\nmuch$/s)
  })
}

test('a slow body after its response does not keep the connection open', { timeout: 10_000 }, async (context) => {
  const open = await serve(context, (_request, response) => response.writeHead(401).end())
  const socket = open()
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n')
  const drip = setInterval(() => socket.write('x'), 20)
  context.after(() => clearInterval(drip))
  // A byte that arrives after the close is answered with a reset.
  const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve))

  const [answer] = await once(socket, 'data')
  await closed

  assert.match(String(answer), /^HTTP\/1\.1 401 /)
})

test('a body that completes after the response keeps the connection open', { timeout: 10_000 }, async (context) => {
  const respond: RequestListener = ({ method }, response) => response.writeHead(method === 'POST' ? 401 : 200).end()
  const open = await serve(context, respond, patient)
  const socket = open()
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nx')

  const [refusal] = await once(socket, 'data')
  socket.write(`x${get('/')}`)
  const [answer] = await once(socket, 'data')

  assert.match(String(refusal), /^HTTP\/1\.1 401 /)
  assert.match(String(answer), /^HTTP\/1\.1 200 /)
})

test('an unread response closes its connection', { timeout: 10_000 }, async (context) => {
  const closed = Promise.withResolvers<void>()
  const open = await serve(context, ({ socket }, response) => {
    socket.once('close', () => closed.resolve())
    response.end(Buffer.alloc(50_000_000))
  })
  const socket = open().pause()
  socket.write(get('/'))

  await closed.promise
})

test('a slow request does not count as idle', { timeout: 10_000 }, async (context) => {
  const open = await serve(context, (_request, response) => {
    setTimeout(() => response.end('late'), 4 * stallLimits.unreadMilliseconds)
  })
  const socket = open()
  socket.write(get('/'))

  assert.match(String((await once(socket, 'data'))[0]), /late$/)
})

test('an upgrade after a pending request is disconnected', { timeout: 10_000 }, async (context) => {
  const open = await serve(context, () => {})
  const socket = open()
  socket.write(`${get('/')}GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`)

  assert.equal(await text(socket), '')
})

test('the connections of an address are limited, and a closed one makes room', {
  timeout: 10_000,
}, async (context) => {
  const limits = { total: 100, perAddress: 3 }
  const open = await serve(context, (_request, response) => response.end('served'), { limits })
  const first = [open(), open(), open()]
  await Promise.all(first.map((socket) => once(socket, 'connect')))

  const refused = await text(open())
  first[0]?.destroy()
  let answer = ''
  while (!answer.endsWith('served')) {
    const next = open()
    next.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    answer = await text(next).catch(() => '')
  }

  assert.match(refused, /^HTTP\/1\.1 429 .*"code":"too_many_connections"/s)
})

test('all connections together are limited', { timeout: 10_000 }, async (context) => {
  const limits = { total: 2, perAddress: 100 }
  const open = await serve(context, (_request, response) => response.end('served'), { limits })
  await Promise.all([open(), open()].map((socket) => once(socket, 'connect')))

  assert.equal(await text(open()).catch(() => ''), '')
})

test('a client is an IPv4 address, or the /64 of an IPv6 address', () => {
  const clients = [
    '192.0.2.1',
    '::ffff:192.0.2.1',
    '2001:db8::1',
    '2001:db8::ffff:1',
    '2001:db8:0:0:5::',
    '2001:db8:1::1',
    '::1',
  ]

  assert.deepEqual(
    clients.map((remoteAddress) => clientOf({ remoteAddress })),
    ['192.0.2.1', '192.0.2.1', '2001:db8:0:0', '2001:db8:0:0', '2001:db8:0:0', '2001:db8:1:0', '0:0:0:0'],
  )
})
