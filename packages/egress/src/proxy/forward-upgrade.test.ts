import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { startHttpServer, startTcpServer } from '../testing/loopback-server.ts'
import { fetchThrough, sendRaw, textOf } from '../testing/proxy-client.ts'
import { startEgress } from '../testing/started-egress.ts'

const asWebsocket = { connection: 'keep-alive, Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'key' }

function askForUpgrade(socketPath: string, url: string, headers: Record<string, string> = asWebsocket) {
  const outgoing = request({ socketPath, path: url, headers, agent: false })
  outgoing.end()
  return outgoing
}

test('upgrades a request that does not use a tunnel, and copies bytes from then on', async () => {
  const seen: string[][] = []
  await using server = await startHttpServer(() => {})
  server.server.on('upgrade', (incoming: IncomingMessage, socket: Socket) => {
    seen.push(incoming.rawHeaders)
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-More: yes\r\n\r\nhello',
    )
    socket.pipe(socket)
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const outgoing = askForUpgrade(egress.socketPath, `http://${server.authority}/chat`)
  const [answer, socket, head] = (await once(outgoing, 'upgrade')) as [IncomingMessage, Socket, Buffer]
  const greeting = head.length > 0 ? head : (await once(socket, 'data'))[0]
  socket.write('ping')
  const [echo] = await once(socket, 'data')
  socket.destroy()
  await server.untilAbandoned()

  assert.deepEqual([String(greeting), String(echo)], ['hello', 'ping'])
  assert.deepEqual(
    [answer.headers.upgrade, answer.headers.connection, answer.headers['x-more']],
    ['websocket', 'Upgrade', 'yes'],
  )
  assert.deepEqual(seen, [
    ['connection', 'Upgrade', 'upgrade', 'websocket', 'sec-websocket-key', 'key', 'Host', server.authority],
  ])
})

test('passes on the answer of a server that does not upgrade', async () => {
  await using server = await startHttpServer((_request, response) =>
    response.writeHead(426, { 'x-why': 'old' }).end('no'),
  )
  server.server.on('upgrade', (incoming: IncomingMessage, socket: Socket) => {
    socket.end(`HTTP/1.1 404 Not Found\r\nX-Path: ${incoming.url}\r\nContent-Length: 4\r\n\r\nlost`)
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const [answer] = (await once(askForUpgrade(egress.socketPath, `http://${server.authority}/chat`), 'response')) as [
    IncomingMessage,
  ]
  const body = await textOf(answer)

  assert.deepEqual(
    [answer.statusCode, answer.headers['x-path'], answer.headers.connection, body],
    [404, '/chat', 'close', 'lost'],
  )
})

test('answers an upgrade that it refuses, or cannot make, with a status', async () => {
  await using silent = await startTcpServer((socket) => void socket.once('data', () => socket.destroy()))
  await using egress = await startEgress({ allow: [silent.authority] })

  const [refused] = (await once(askForUpgrade(egress.socketPath, 'http://127.0.0.1:1/'), 'response')) as [
    IncomingMessage,
  ]
  const [closed] = (await once(askForUpgrade(egress.socketPath, `http://${silent.authority}/`), 'response')) as [
    IncomingMessage,
  ]
  const [nonsense] = (await once(askForUpgrade(egress.socketPath, '/chat'), 'response')) as [IncomingMessage]

  assert.deepEqual([refused.statusCode, refused.headers['x-berth-egress']], [403, 'refused'])
  assert.deepEqual([closed.statusCode, closed.headers['x-berth-egress']], [502, 'connection-closed'])
  assert.equal(nonsense.statusCode, 400)
})

test('takes a request that only offers HTTP/2, or has a body, for a plain one', async () => {
  await using server = await startHttpServer((incoming, response) => {
    void textOf(incoming).then((body) => response.end(JSON.stringify([incoming.rawHeaders.includes('Upgrade'), body])))
  })
  await using egress = await startEgress({ allow: [server.authority] })
  const url = `http://${server.authority}/`

  const offer = await fetchThrough(egress.socketPath, url, {
    headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'x' },
  })
  const withBody = await sendRaw(
    egress.socketPath,
    `POST ${url} HTTP/1.1\r\nConnection: Upgrade, close\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\nbody`,
  )

  assert.equal(offer.body, '[false,""]')
  assert.match(withBody, /\[false,"body"\]$/)
})
