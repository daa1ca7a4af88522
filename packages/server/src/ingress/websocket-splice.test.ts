import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import WebSocket, { WebSocketServer } from 'ws'
import { WebSocketSplice } from './websocket-splice.ts'

/** A client of a WebSocket server through a splice. */
async function open(context: TestContext) {
  const upstream = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
  await once(upstream, 'listening')
  const splices: { splice: WebSocketSplice; socket: Socket }[] = []
  const ended = Promise.withResolvers<void>()
  const proxy = createServer((client) => {
    const peer = connect((upstream.address() as AddressInfo).port, '127.0.0.1')
    for (const socket of [client, peer]) socket.on('error', () => socket.destroy())
    const splice = new WebSocketSplice({ client, upstream: peer, hasHead: true, onEnd: ended.resolve })
    splices.push({ splice, socket: client })
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${(proxy.address() as AddressInfo).port}`, { maxPayload: 0 })
  context.after(() => {
    client.terminate()
    for (const peer of upstream.clients) peer.terminate()
    upstream.close()
    proxy.close()
  })
  const [[server]] = (await Promise.all([once(upstream, 'connection'), once(client, 'open')])) as [[WebSocket], unknown]
  const [{ splice, socket }] = splices as [(typeof splices)[number]]
  /** Resolves when more of a message has arrived than the client reads. */
  const isUnderWay = async () => {
    while (socket.writableLength === 0) await delay(5)
  }
  return { client, server, splice, isUnderWay, ended: ended.promise }
}

test('a client is told to reconnect immediately between messages', async (context) => {
  const { client, splice, ended } = await open(context)

  splice.restart()

  const [code, reason] = (await once(client, 'close')) as [number, Buffer]
  assert.deepEqual([code, String(reason)], [1012, 'the server restarts'])
  await ended
})

test('a client gets the rest of its message before it is told to reconnect', async (context) => {
  const { client, server, splice, isUnderWay } = await open(context)
  const closed = once(client, 'close')
  const message = once(client, 'message')
  const size = 20_000_000
  // The client stops reading after the start of the message, long before its end.
  client.pause()
  server.send(Buffer.alloc(size))
  await isUnderWay()

  splice.restart()
  client.resume()

  const [data] = (await message) as [Buffer]
  const [code] = (await closed) as [number]
  assert.deepEqual([data.length, code], [size, 1012])
})

test('a client that does not read its message is disconnected', { timeout: 30_000 }, async (context) => {
  const { client, server, splice, isUnderWay, ended } = await open(context)
  client.pause()
  server.send(Buffer.alloc(20_000_000))
  await isUnderWay()

  splice.restart()

  await ended
})
