import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, mock, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { TelemetryCollector } from '../telemetry/telemetry-collector.ts'
import { encodeFrame, opcodes } from '../testing/frames.ts'
import { CdpConnection } from './cdp-connection.ts'
import { CommandTap, type DisconnectReason } from './command-tap.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })
const telemetry = new TelemetryCollector(systemClock, logger)
/** Longer than a busy machine keeps a process from answering. */
const keepAlive = { silenceLimitMilliseconds: 2_500, checkIntervalMilliseconds: 20 }
const ping = Buffer.from([0x89, 0])
/** Masked with zeros, which clients may do. */
const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])
const command = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x7b, 0x7d])
/** With a length that no frame may have. */
const longFrame = Buffer.from([0x81, ...Array(9).fill(0xff), 1, 2, 3, 4])
const closed = 'closed' as const

/** Both ends of a connection. */
async function openPair(): Promise<readonly [near: Socket, far: Socket]> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const accepted = once(listener, 'connection')
  const far = connect((listener.address() as { port: number }).port, '127.0.0.1')
  const [near] = (await accepted) as [Socket]
  listener.close()
  return [near, far]
}

/** The client's end of a connection to the agent, with a silent browser. */
async function openClient(hasBrowserEnded = false, usable?: Promise<unknown>) {
  const [client, farClient] = await openPair()
  const [chromium, farChromium] = await openPair()
  const ended = Promise.withResolvers<DisconnectReason>()
  const tap = new CommandTap(telemetry)
  mock.method(tap, 'end', ended.resolve)
  const options = { usable, prepare: () => undefined, tap, hasEnded: async () => hasBrowserEnded, keepAlive }
  const connection = new CdpConnection(client, chromium, options)
  const sent: Buffer[] = []
  farChromium.on('data', (chunk: Buffer) => sent.push(chunk))
  return {
    connection,
    client: farClient,
    chromium: farChromium,
    /** What the browser has received. */
    sent: () => Buffer.concat(sent),
    reason: ended.promise,
    close: () => {
      for (const socket of [client, farClient, chromium, farChromium]) socket.destroy()
    },
  }
}

function commandOf(message: object): Buffer {
  return encodeFrame({ opcode: opcodes.text, payload: Buffer.from(JSON.stringify(message)), mask: Buffer.alloc(4) })
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(5)
}

/** What the client receives next. */
async function nextOf(client: Socket): Promise<Buffer | typeof closed> {
  const next = new AbortController()
  const { signal } = next
  try {
    return await Promise.race([
      once(client, 'data', { signal }).then(([chunk]) => chunk as Buffer),
      once(client, 'close', { signal }).then((): typeof closed => closed),
    ])
  } finally {
    next.abort()
  }
}

type Opened = Awaited<ReturnType<typeof openClient>>

describe('a connection', { concurrency: true }, () => {
  test('a silent client is pinged, and stays connected for as long as it answers', async (context) => {
    const { client, close } = await openClient()
    context.after(close)

    for (let round = 0; round < 2; round++) {
      assert.deepEqual(await nextOf(client), ping)
      client.write(pong)
    }
  })

  test('a client that answers no ping is disconnected', async (context) => {
    const { client, close } = await openClient()
    context.after(close)

    assert.deepEqual(await nextOf(client), ping)
    assert.equal(await nextOf(client), closed)
  })

  test('a client that sends commands stays connected although it answers no pings', async (context) => {
    const { client, close } = await openClient()
    context.after(close)

    for (let round = 0; round < 2; round++) {
      assert.deepEqual(await nextOf(client), ping)
      client.write(command)
    }
  })

  for (const [what, held] of Object.entries({
    'a command': commandOf({ id: 2, method: 'Target.getTargets' }),
    'a long command': commandOf({ id: 2, method: 'Runtime.evaluate', params: { expression: ' '.repeat(5000) } }),
    'another question of the browser': commandOf({ id: 2, method: 'Browser.getWindowForTarget' }),
  })) {
    test(`before the first page has answered, a request for the version is passed on, and ${what} waits`, async (context) => {
      const usable = Promise.withResolvers<void>()
      const { client, sent, close } = await openClient(false, usable.promise)
      context.after(close)
      const version = commandOf({ id: 1, method: 'Browser.getVersion' })

      client.write(Buffer.concat([version, held, version]))
      await until(() => sent().length >= version.length)
      // It is sent before whatever else the connection has read by then.
      await nextOf(client)
      assert.deepEqual(sent(), version)
      usable.resolve()

      await until(() => sent().length >= version.length * 2 + held.length)
      assert.deepEqual(sent(), Buffer.concat([version, held, version]))
    })
  }

  test('a client cannot close the shared browser with a command that has waited', async (context) => {
    const usable = Promise.withResolvers<void>()
    const { client, sent, reason, close } = await openClient(false, usable.promise)
    context.after(close)

    client.write(commandOf({ id: 1, method: 'Browser.close' }))
    usable.resolve()

    assert.equal(await reason, 'client_close')
    assert.equal(sent().length, 0)
  })

  test('a connection ends when its browser does not become usable', async (context) => {
    const usable = Promise.withResolvers<void>()
    const { client, sent, reason, close } = await openClient(false, usable.promise)
    context.after(close)

    client.write(command)
    usable.reject(new Error('no page'))

    assert.equal(await reason, 'context_cancelled')
    assert.equal(sent().length, 0)
  })

  const endings: Readonly<Record<string, readonly [DisconnectReason, (opened: Opened) => void, boolean?]>> = {
    'its client closes it': ['client_close', ({ client }) => client.end()],
    'its browser has ended': ['upstream_changed', ({ chromium }) => chromium.destroy(), true],
    'its browser breaks it off': ['upstream_error', ({ chromium }) => chromium.destroy()],
    'its session is about to end': ['context_cancelled', ({ connection }) => connection.cancel()],
    'its client breaks the protocol': ['context_cancelled', ({ client }) => client.write(longFrame)],
    'its client shows no sign of life': ['context_cancelled', () => {}],
  }
  for (const [name, [reason, end, hasBrowserEnded]] of Object.entries(endings)) {
    test(`a connection that ends because ${name} reports ${reason}`, async (context) => {
      const opened = await openClient(hasBrowserEnded)
      context.after(opened.close)

      end(opened)

      assert.equal(await opened.reason, reason)
    })
  }
})
