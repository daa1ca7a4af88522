import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { mock, test } from 'node:test'
import { CdpPipe } from './cdp-pipe.ts'

function open() {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const say = (message: object) => output.emit('data', Buffer.from(`${JSON.stringify(message)}\0`))
  const sayBytes = (bytes: Buffer) => output.emit('data', bytes)
  return { pipe: new CdpPipe(input, output), say, sayBytes, close: () => output.destroy() }
}

test('commands to a target fail when it detaches, and others do not', async () => {
  const { pipe, say } = open()
  const [gone, other, browser] = [
    pipe.send('Page.enable', {}, 'gone'),
    pipe.send('Page.enable', {}, 'other'),
    pipe.send('Browser.getVersion'),
  ]

  say({ method: 'Target.detachedFromTarget', params: { sessionId: 'gone' } })
  say({ id: 2, result: { of: 'other' } })
  say({ id: 3, result: { of: 'browser' } })

  await assert.rejects(gone, /the page has closed/)
  assert.deepEqual(await Promise.all([other, browser]), [{ of: 'other' }, { of: 'browser' }])
})

test('every command has a time limit, unless the caller sets one', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { pipe, close } = open()
  const usual = pipe.send('Page.captureScreenshot', {}, 'page')
  const short = pipe.send('Page.enable', {}, { sessionId: 'page', limitMilliseconds: 100 })
  const own = pipe.send('Page.enable', {}, { limitMilliseconds: Number.POSITIVE_INFINITY })
  let ended = ''
  short.catch(() => (ended += 'short '))
  usual.catch(() => (ended += 'usual '))
  own.catch(() => (ended += 'own'))

  mock.timers.tick(100)
  await assert.rejects(short, /Page.enable was not answered in time/)
  assert.equal(ended, 'short ')
  mock.timers.tick(30_000)
  await assert.rejects(usual, /Page.captureScreenshot was not answered in time/)
  assert.equal(ended, 'short usual ')
  close()
  await assert.rejects(own, /has closed its pipe/)
  mock.timers.reset()
})

test('only events with a listener are parsed, however they are split', async () => {
  const { pipe, sayBytes } = open()
  const heard: unknown[] = []
  const leave = pipe.on('Page.loadEventFired', ({ timestamp }) => heard.push(timestamp))
  const answer = pipe.send('Browser.getVersion')
  const told = [
    '{"method":"Network.dataReceived","params":{ this is no JSON',
    '{"method":"Page.loadEventFired","params":{"timestamp":1},"sessionId":"page"}',
    '{"params":{"timestamp":2},"method":"Page.loadEventFired"}',
    '{"id":1,"result":{"product":"Chromium"}}',
    '{"method":"Page.loadEventFired","params":{"timestamp":3}}',
  ]

  for (const byte of Buffer.from(told.map((text) => `${text}\0`).join(''))) sayBytes(Buffer.of(byte))
  sayBytes(Buffer.from(told.map((text) => `${text}\0`).join('')))
  leave()
  sayBytes(Buffer.from('{"method":"Page.loadEventFired", broken\0'))

  assert.deepEqual(heard, [1, 2, 3, 1, 2, 3])
  assert.deepEqual(await answer, { product: 'Chromium' })
})
