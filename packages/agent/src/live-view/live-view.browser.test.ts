import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { keysymOf } from '../computer/keysyms.ts'
import { RfbClient } from '../testing/rfb-client.ts'
import { startAgent } from '../testing/start-agent.ts'

const agent = await startAgent({ headless: false })
after(() => agent[Symbol.asyncDispose]())
await agent.becomesReady()
const client = await agent.connect()
const url = (path: string) => `ws+unix:${agent.socketPath}:${path}`

const { targetInfos } = await client.send('Target.getTargets')
const { targetId } = targetInfos.find(({ type }: { type: string }) => type === 'page')
const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true })
const evaluate = async (expression: string) => {
  const { result } = await client.send('Runtime.evaluate', { expression, awaitPromise: true }, sessionId)
  return result.value
}
await evaluate(`document.body.innerHTML = '<textarea autofocus></textarea>'
  document.querySelector('textarea').focus()`)
await client.send('Page.bringToFront', {}, sessionId)

const hasText = (text: string) => {
  const field = "document.querySelector('textarea')"
  return evaluate(`new Promise((resolve) => {
    const look = () => ${field}.value === ${JSON.stringify(text)} ? resolve(true) : setTimeout(look, 20)
    look()
    setTimeout(() => resolve(${field}.value), 15000)
  })`)
}

/** X11 keysyms: letters of several layouts by their old and their Unicode numbers. */
const keysyms: Readonly<Record<string, number>> = {
  a: 0x61,
  ö: 0xf6,
  ł: 0x1b3,
  ж: 0x6d6,
  λ: 0x7eb,
  ש: 0xcf9,
  '€': 0x20ac,
  ğ: 0x0100_011f,
  ü: 0xfc,
  あ: 0x0100_3042,
}

test('keys of other layouts enter their characters', async () => {
  const viewer = await RfbClient.connect(url('/live'))

  for (const keysym of Object.values(keysyms)) viewer.strike(keysym)

  assert.equal(await hasText(Object.keys(keysyms).join('')), true)
  viewer.close()
})

test('a single key of another layout enters its character, also while AltGr is held', async () => {
  await evaluate("document.querySelector('textarea').value = ''")
  const viewer = await RfbClient.connect(url('/live'))
  const altGraph = 0xfe03

  viewer.strike(keysymOf('õ'))
  assert.equal(await hasText('õ'), true)
  viewer.press(altGraph, true)
  viewer.strike(keysymOf('þ'))
  viewer.press(altGraph, false)
  viewer.strike(keysymOf('ñ'))

  assert.equal(await hasText('õþñ'), true)
  viewer.close()
})

test('viewers that disconnect early do not block others, and only break their own connection', async () => {
  for (let count = 0; count < 12; count++) {
    const broken = await RfbClient.open(url('/live'))
    await broken.receive(12)
    broken.close()
  }

  const viewer = await RfbClient.connect(url('/live'))

  assert.ok(viewer.received > 0)
  viewer.close()
})

for (const [what, bytes] of Object.entries({
  'another version': Buffer.from('RFB 003.003\n'),
  'an unknown message': Buffer.concat([Buffer.from('RFB 003.008\n'), Buffer.from([1, 1, 77])]),
  'a message without end': Buffer.concat([
    Buffer.from('RFB 003.008\n'),
    Buffer.from([1, 1, 6, 0, 0, 0, 0x7f, 0, 0, 0]),
  ]),
})) {
  test(`a read-only viewer that sends ${what} is disconnected`, async () => {
    const viewer = await RfbClient.open(url('/live/read-only'))
    const closed = once(viewer.socket, 'close')

    viewer.send(bytes)

    const [code] = await closed
    assert.equal(code, 1008)
  })
}

test('a connected viewer counts as activity', async () => {
  const idle = (isIdle: boolean) => agent.statesUntil(({ idle_since }) => (idle_since !== null) === isIdle)
  client.terminate()
  await idle(true)

  const viewer = await RfbClient.connect(url('/live/read-only'))
  await idle(false)
  viewer.close()

  await idle(true)
})
