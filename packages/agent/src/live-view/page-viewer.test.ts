import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { Computer } from '../computer/computer.ts'
import type { Screen } from '../computer/screen.ts'
import type { Screencast } from '../screencast/screencast.ts'
import { RfbClient } from '../testing/rfb-client.ts'
import { PageViewer } from './page-viewer.ts'
import { ViewerSocket } from './viewer-socket.ts'

/** A screen that records all actions. */
const done: string[] = []
const changes = new Changes()
let keyMilliseconds = 0
const screen = new Proxy({} as Screen, {
  get:
    (_target, name) =>
    async (...args: unknown[]) => {
      if (name === 'pressKey') await delay(keyMilliseconds)
      done.push([String(name), ...args.map((arg) => JSON.stringify(arg))].join(' '))
      changes.notify()
    },
})
const computer = {
  use: (_signal: AbortSignal, work: (screen: Screen) => unknown) => work(screen),
  readClipboard: () => screen.readClipboard(),
} as unknown as Computer
const screencast = {
  frame: { jpeg: Buffer.from('jpeg'), width: 200, height: 100, scale: 2 },
  changes: new Changes(),
} as unknown as Screencast

const server = createServer().on('upgrade', async (request, socket, head) => {
  const viewer = await ViewerSocket.accept(request, socket as Socket, head)
  new PageViewer(viewer, { screencast, computer, isReadOnly: request.url === '/read-only' })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
after(() => server.close())
const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`

const input = Buffer.concat([
  Buffer.from([5, 0, 0, 10, 0, 20, 5, 1, 0, 10, 0, 20, 5, 0, 0, 10, 0, 20]),
  Buffer.from([5, 16, 0, 10, 0, 20, 5, 0, 0, 10, 0, 20]),
  Buffer.from([4, 1, 0, 0, 0, 0, 0, 0x61, 4, 0, 0, 0, 0, 0, 0, 0x61]),
  Buffer.from([6, 0, 0, 0, 0, 0, 0, 2, 0x68, 0x69]),
])

async function isDone(last: string): Promise<void> {
  while (done.at(-1) !== last) await changes.next(AbortSignal.timeout(60_000))
}

test('a viewer gets the picture, and its mouse, keys, text and clipboard reach the page in order', async () => {
  const viewer = await RfbClient.connect(url)
  const before = viewer.received

  viewer.send(Buffer.from([2, 0, 0, 1, 0, 0, 0, 7, 3, 0, 0, 0, 0, 0, 0, 200, 0, 100]))
  await viewer.receive(before + 16 + 4 + 4)
  viewer.send(input)
  viewer.socket.send(JSON.stringify({ type: 'text', text: '😀' }))
  viewer.strike(0xff0d)
  await isDone('releaseKey {"keysym":65293}')

  assert.deepEqual(
    done.filter((step) => !step.startsWith('moveTo')),
    [
      ...['press "left"', 'release "left"', 'turnWheel "down"'],
      ...['pressKey {"keysym":97}', 'releaseKey {"keysym":97}', 'writeClipboard "hi"'],
      ...['insertText "😀"', 'pressKey {"keysym":65293}', 'releaseKey {"keysym":65293}'],
    ],
  )
  assert.ok(done.filter((step) => step.startsWith('moveTo')).every((step) => step === 'moveTo {"x":20,"y":40}'))
  viewer.close()
})

test('what the page copies is read after a busy page has taken the keys', async () => {
  const viewer = await RfbClient.connect(url)
  // Tight, and the extended clipboard.
  viewer.send(Buffer.from([2, 0, 0, 2, 0, 0, 0, 7, 0xc0, 0xa1, 0xe5, 0xce]))
  done.length = 0
  keyMilliseconds = 400

  viewer.press(0xffe3, true)
  viewer.strike(0x63)
  await isDone('readClipboard')

  keyMilliseconds = 0
  const keys = ['pressKey {"keysym":65507}', 'pressKey {"keysym":99}', 'releaseKey {"keysym":99}']
  assert.deepEqual(done, [...keys, 'readClipboard'])
  viewer.close()
})

test('a viewer that disconnects releases its keys and buttons, and a read-only viewer presses none', async () => {
  const watching = await RfbClient.connect(`${url}/read-only`)
  watching.send(input)
  watching.close()
  done.length = 0
  const viewer = await RfbClient.connect(url)
  viewer.send(Buffer.from([5, 1, 0, 10, 0, 20, 4, 1, 0, 0, 0, 0, 0, 0x61]))
  await isDone('pressKey {"keysym":97}')

  viewer.close()
  await isDone('releaseKey {"keysym":97}')

  assert.deepEqual(
    done.filter((step) => !step.startsWith('moveTo')),
    ['press "left"', 'pressKey {"keysym":97}', 'release "left"', 'releaseKey {"keysym":97}'],
  )
})
