import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { Activity } from '../reporting/activity.ts'
import { TelemetryCollector } from '../telemetry/telemetry-collector.ts'
import { CdpRelay } from './cdp-relay.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })
const telemetry = new TelemetryCollector(systemClock, logger)

const upgrade = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'x3JJHMbDL1EzLkh9GBhXDw==',
}

/** Handshakes with a browser that fails. */
describe('a browser that fails', { concurrency: true }, () => {
  for (const [what, answer] of Object.entries({
    'hangs up': (socket: Socket) => socket.destroy(),
    'resets the connection': (socket: Socket) => socket.resetAndDestroy(),
    'breaks off in the middle of a refusal': (socket: Socket) => {
      socket.write('HTTP/1.1 500 Failed\r\ncontent-length: 100\r\n\r\nhalf', () => socket.destroy())
    },
    'resets in the middle of a refusal': (socket: Socket) => {
      socket.write('HTTP/1.1 500 Failed\r\ncontent-length: 100\r\n\r\nhalf', () => socket.resetAndDestroy())
    },
    'speaks another protocol': (socket: Socket) => socket.end('SSH-2.0-x\r\n'),
  })) {
    test(`a browser that ${what} only closes the connection of the client`, async () => {
      const chromium = createTcpServer((socket) => {
        socket.on('error', () => {})
        socket.once('data', () => answer(socket))
      }).listen(0, '127.0.0.1')
      await once(chromium, 'listening')
      const { port } = chromium.address() as AddressInfo
      const endpoint = { port, browserPath: '/devtools/browser/x', ended: new Promise(() => {}) }
      const activity = new Activity(Date.now, () => {})
      const relay = new CdpRelay({
        endpoint: async () => ({ endpoint }),
        activity,
        telemetry,
        prepare: () => undefined,
      })
      const server = createServer().on('upgrade', (incoming, socket, head) => {
        relay.connect(incoming, socket as Socket, head).catch(assert.ifError)
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')

      const asked = request({ port: (server.address() as AddressInfo).port, path: '/cdp', headers: upgrade }).end()
      const [response] = await once(asked, 'response')

      assert.equal(response.statusCode, 503)
      assert.match(await text(response), /session_unreachable/)
      while (activity.idleSince === null) await new Promise(setImmediate)
      server.close()
      chromium.close()
    })
  }
})
