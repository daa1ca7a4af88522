import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { mock, test } from 'node:test'
import { CdpPipe } from './cdp-pipe.ts'

function open() {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const say = (message: object) => output.emit('data', Buffer.from(`${JSON.stringify(message)}\0`))
  return { pipe: new CdpPipe(input, output), say, close: () => output.destroy() }
}

test('commands to a target end when it detaches, and no others', async () => {
  const { pipe, say } = open()
  const [gone, other, browser] = [
    pipe.send('Page.enable', {}, 'gone'),
    pipe.send('Page.enable', {}, 'other'),
    pipe.send('Browser.getVersion'),
  ]

  say({ method: 'Target.detachedFromTarget', params: { sessionId: 'gone' } })
  say({ id: 2, result: { of: 'other' } })
  say({ id: 3, result: { of: 'browser' } })

  await assert.rejects(gone, /the page has gone/)
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
  await assert.rejects(short, /there is no answer to Page.enable/)
  assert.equal(ended, 'short ')
  mock.timers.tick(30_000)
  await assert.rejects(usual, /there is no answer to Page.captureScreenshot/)
  assert.equal(ended, 'short usual ')
  close()
  await assert.rejects(own, /has closed its pipe/)
  mock.timers.reset()
})
