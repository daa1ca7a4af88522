import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { startHttpServer, startTcpServer, unusedPort } from '../testing/loopback-server.ts'
import { closeOf, openTunnelThrough, sendRaw, textOf } from '../testing/proxy-client.ts'
import { startEgress } from '../testing/started-egress.ts'

const MiB = 1024 * 1024

test('copies bytes both ways', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: [server.authority] })
  using tunnel = await openTunnelThrough(egress.socketPath, server.authority)

  tunnel.socket.write('there and back')
  const [back] = await once(tunnel.socket, 'data')

  assert.equal(tunnel.status, 200)
  assert.equal(String(back), 'there and back')
})

test('serves a client that does not wait for the tunnel to open', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: [server.authority] })
  const client = connect({ path: egress.socketPath, allowHalfOpen: true })

  client.write(`CONNECT ${server.authority} HTTP/1.1\r\n\r\nearly`)
  client.write(' bird')
  const received = await new Promise<string>((resolve) => {
    let text = ''
    client.on('data', (chunk) => {
      text += chunk
      if (text.endsWith('early bird')) resolve(text)
    })
  })

  assert.match(received, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nearly bird$/)
  client.destroy()
})

test('lets either side end first and still receive', async () => {
  const lastWords = Promise.withResolvers<string>()
  await using answersAtEnd = await startTcpServer((socket) => {
    void textOf(socket).then((heard) => socket.end(`heard ${heard}`))
  })
  await using endsFirst = await startTcpServer((socket) => {
    socket.end('bye')
    lastWords.resolve(textOf(socket))
  })
  await using egress = await startEgress({ allow: ['127.0.0.1'] })

  const client = await openHalf(egress.socketPath, answersAtEnd.authority)
  client.end('question')
  const answer = await textOf(client)
  const lateTalker = await openHalf(egress.socketPath, endsFirst.authority)
  const goodbye = await textOf(lateTalker)
  lateTalker.end('last words')

  assert.equal(answer, 'heard question')
  assert.equal(goodbye, 'bye')
  assert.equal(await lastWords.promise, 'last words')
})

/** A tunnel whose client side stays open when the other side ends. */
async function openHalf(socketPath: string, target: string): Promise<Socket> {
  const client = connect({ path: socketPath, allowHalfOpen: true })
  client.write(`CONNECT ${target} HTTP/1.1\r\n\r\n`)
  const [head] = await once(client, 'data')
  const text = String(head)
  client.pause()
  const rest = text.slice(text.indexOf('\r\n\r\n') + 4)
  if (rest) client.unshift(Buffer.from(rest))
  return client
}

test('refuses with a status, and says why', async () => {
  await using server = await startTcpServer(() => {})
  await using egress = await startEgress({ allow: [`127.0.0.1:${server.port + 1}`] })

  using tunnel = await openTunnelThrough(egress.socketPath, server.authority)

  assert.equal(tunnel.status, 403)
  assert.equal(tunnel.headers['x-berth-egress'], 'refused')
  assert.equal(server.connections(), 0)
})

test('answers with a status when the server cannot be reached', async () => {
  const port = await unusedPort()
  await using egress = await startEgress({ allow: ['127.0.0.1'] })

  using refused = await openTunnelThrough(egress.socketPath, `127.0.0.1:${port}`)
  using unknown = await openTunnelThrough(egress.socketPath, 'nowhere.test:443')

  assert.deepEqual([refused.status, refused.headers['x-berth-egress']], [502, 'connection-refused'])
  assert.deepEqual([unknown.status, unknown.headers['x-berth-egress']], [502, 'name-not-found'])
})

test('tells the server at once that the client has gone', async () => {
  const ended = Promise.withResolvers<void>()
  await using server = await startTcpServer((socket) => void socket.resume().once('end', ended.resolve))
  await using egress = await startEgress({ allow: [server.authority] })

  const tunnel = await openTunnelThrough(egress.socketPath, server.authority)
  tunnel.socket.destroy()

  await ended.promise
})

test('breaks off a server that goes on sending to a client that has gone', async () => {
  const chunk = Buffer.alloc(64 * 1024)
  await using server = await startTcpServer((socket) => {
    Readable.from(endlessly(chunk)).pipe(socket)
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const tunnel = await openTunnelThrough(egress.socketPath, server.authority)
  await once(tunnel.socket, 'data')
  tunnel.socket.destroy()

  await server.untilAbandoned()
})

test('breaks off a server that sends to a client that had ended its side and then goes', async () => {
  const chunk = Buffer.alloc(64 * 1024)
  await using server = await startTcpServer((socket) => {
    socket.resume().once('end', () => Readable.from(endlessly(chunk)).pipe(socket))
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const client = await openHalf(egress.socketPath, server.authority)
  client.end()
  await once(client.resume(), 'data')
  client.destroy()

  await server.untilAbandoned()
})

function* endlessly(chunk: Buffer): Generator<Buffer> {
  for (;;) yield chunk
}

test('breaks off the client when the server breaks off', async () => {
  await using server = await startTcpServer((socket) => void socket.resume())
  await using egress = await startEgress({ allow: [server.authority] })
  const connection = server.nextConnection()
  const tunnel = await openTunnelThrough(egress.socketPath, server.authority)

  const serverSide = await connection
  serverSide.resetAndDestroy()

  await closeOf(tunnel.socket)
})

test('connects to nothing for a client that has gone while its name was looked up', async () => {
  await using server = await startTcpServer(() => {})
  const lookups: ((addresses: string[]) => void)[] = []
  const arrivals = new EventEmitter()
  const lookup = () => {
    setImmediate(() => arrivals.emit('lookup'))
    return new Promise<string[]>((resolve) => lookups.push(resolve))
  }
  await using egress = await startEgress({ allow: ['127.0.0.1'], lookup })
  const target = `slow.test:${server.port}`

  for (const text of [`CONNECT ${target} HTTP/1.1\r\n\r\n`, `GET http://${target}/ HTTP/1.1\r\n\r\n`]) {
    const client = connect(egress.socketPath)
    client.write(text)
    await once(arrivals, 'lookup')
    client.end()
    await closeOf(client)
  }
  for (const answer of lookups) answer(['127.0.0.1'])
  using after = await openTunnelThrough(egress.socketPath, server.authority)

  assert.deepEqual([after.status, lookups.length, server.connections()], [200, 2, 1])
})

test('carries a websocket as any other bytes', async () => {
  await using server = await startHttpServer(() => {})
  server.server.on('upgrade', (incoming: IncomingMessage, socket: Socket) => {
    const accept = createHash('sha1')
      .update(`${incoming.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.pipe(socket)
  })
  await using egress = await startEgress({ allow: [server.authority] })
  using tunnel = await openTunnelThrough(egress.socketPath, server.authority)
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }

  const outgoing = request({ createConnection: () => tunnel.socket, headers })
  outgoing.end()
  const [answer, socket] = (await once(outgoing, 'upgrade')) as [IncomingMessage, Socket]
  socket.write(Buffer.from([0x81, 0x02, 0x68, 0x69]))
  const [frame] = await once(socket, 'data')

  assert.equal(answer.headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
  assert.deepEqual([...frame], [0x81, 0x02, 0x68, 0x69])
})

test('passes much data both ways unchanged', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: [server.authority] })
  using tunnel = await openTunnelThrough(egress.socketPath, server.authority)
  const chunks = Array.from({ length: 32 }, (_, index) => Buffer.alloc(MiB, `part ${index}`))
  const sent = createHash('sha256')
  const received = createHash('sha256')
  for (const chunk of chunks) sent.update(chunk)

  Readable.from(chunks).pipe(tunnel.socket)
  for await (const chunk of tunnel.socket) received.update(chunk as Buffer)

  assert.equal(received.digest('hex'), sent.digest('hex'))
})

test('takes no second request on a connection whose tunnel failed', async () => {
  await using server = await startHttpServer((_request, response) => response.end('reached'))
  await using egress = await startEgress({ allow: [server.authority] })

  const answer = await sendRaw(
    egress.socketPath,
    `CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\nGET http://${server.authority}/ HTTP/1.1\r\n\r\n`,
  )

  assert.match(answer, /^HTTP\/1\.1 403 /)
  assert.doesNotMatch(answer, /reached/)
})
