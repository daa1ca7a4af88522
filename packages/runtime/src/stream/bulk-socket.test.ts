import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { BulkSocket } from './bulk-socket.ts'

const pieces = Array.from({ length: 400 }, (_, index) => randomBytes(index % 3 === 0 ? 100_000 : index + 1))
const sent = hashOf(pieces)

function hashOf(chunks: readonly Buffer[]): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Connects to a server that sends the pieces one by one. */
async function openSocket(): Promise<BulkSocket> {
  const server = createServer(async (socket) => {
    for (const piece of pieces) if (!socket.write(piece)) await once(socket, 'drain')
    socket.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = new BulkSocket()
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.once('close', () => server.close())
  await once(socket, 'connect')
  return socket
}

test('a consumer that copies gets every byte, in chunks that grow', async () => {
  const socket = await openSocket()
  const copies: Buffer[] = []
  socket.consume((chunk) => {
    copies.push(Buffer.from(chunk))
    return true
  })
  socket.resume()
  await once(socket, 'end')

  assert.equal(hashOf(copies), sent)
  assert.ok(copies.some(({ length }) => length > 64 * 1024))
})

test('memory that the consumer keeps is not written to again', async () => {
  const socket = await openSocket()
  const kept: Buffer[] = []
  socket.consume((chunk) => {
    kept.push(chunk)
    return false
  })
  socket.resume()
  await once(socket, 'end')

  assert.equal(hashOf(kept), sent)
})

test('nothing is read before the first resume, and while it is paused', async () => {
  const socket = await openSocket()
  const copies: Buffer[] = []
  socket.consume((chunk) => {
    copies.push(Buffer.from(chunk))
    socket.pause()
    return true
  })
  await delay(50)
  assert.equal(copies.length, 0)
  socket.resume()
  while (copies.length === 0) await delay(5)
  await delay(50)
  assert.equal(copies.length, 1)

  const ended = once(socket, 'end')
  const pump = setInterval(() => socket.resume(), 1)
  await ended
  clearInterval(pump)
  assert.equal(hashOf(copies), sent)
})
