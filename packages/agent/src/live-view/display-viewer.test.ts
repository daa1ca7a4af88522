import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { showDisplay } from './display-viewer.ts'
import { ViewerSocket } from './viewer-socket.ts'

/** What reaches the display, and what is typed, in order. */
const done: string[] = []

class FakeDisplay extends Duplex {
  setNoDelay(): this {
    return this
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, written: () => void): void {
    done.push(bytes.toString('hex'))
    written()
  }
}

const server = createServer().on('upgrade', async (request, socket, head) => {
  const viewer = await ViewerSocket.accept(request, socket as Socket, head)
  const typeText = async (text: string) => {
    await setImmediate()
    done.push(text)
    if (text === 'ß') throw new Error('somebody else holds the keyboard')
  }
  showDisplay(viewer, { display: new FakeDisplay() as unknown as Socket, isReadOnly: false, typeText })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
after(() => server.close())

const key = (keysym: number, isDown: boolean) => {
  const message = Buffer.from([4, isDown ? 1 : 0, 0, 0, 0, 0, 0, 0])
  message.writeUInt32BE(keysym, 4)
  return message
}
const qemuKey = (keysym: number, isDown: boolean) => {
  const message = Buffer.alloc(12)
  message[0] = 255
  message.writeUInt16BE(isDown ? 1 : 0, 2)
  message.writeUInt32BE(keysym, 4)
  return message
}
const handshake = Buffer.from('RFB 003.008\n\x01\x01')
const a = key(0x61, true)
const pointer = Buffer.from([5, 0, 0, 1, 0, 1])

test('keys that the display does not have are typed, in order with all other input', async () => {
  const viewer = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await once(viewer, 'open')
  const messages = [a, key(0x20ac, true), key(0x20ac, false), pointer, qemuKey(0xdf, true), qemuKey(0xdf, false), a]
  const sent = Buffer.concat([handshake, ...messages])

  // Messages may arrive in any pieces.
  viewer.send(sent.subarray(0, 20))
  viewer.send(sent.subarray(20))
  viewer.send(pointer)

  const hex = (...parts: readonly Buffer[]) => Buffer.concat(parts).toString('hex')
  const expected = `${hex(handshake, a)}€${hex(pointer)}ß${hex(a, pointer)}`
  for (const end = performance.now() + 10_000; done.join('') !== expected && performance.now() < end; ) {
    await setImmediate()
  }
  viewer.terminate()
  assert.equal(done.join(''), expected)
})
