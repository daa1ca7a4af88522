import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { Queue } from './queue.ts'

test('work runs one after another, in the order of the calls', async () => {
  const queue = new Queue()
  const steps: string[] = []
  const act = (name: string) =>
    queue.run(async () => {
      steps.push(`${name} begins`)
      await Promise.resolve()
      steps.push(`${name} ends`)
      return name
    })

  const results = await Promise.all([act('a'), act('b'), act('c')])

  assert.deepEqual(results, ['a', 'b', 'c'])
  assert.deepEqual(
    steps,
    ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]),
  )
})

test('failed work does not stop the next', async () => {
  const queue = new Queue()

  const failing = queue.run(() => {
    throw new Error('no')
  })
  const next = queue.run(async () => 'yes')

  await assert.rejects(failing, /no/)
  assert.equal(await next, 'yes')
})

test('an aborted caller is rejected immediately, and the others stay in order', async () => {
  const queue = new Queue()
  const steps: string[] = []
  const first = Promise.withResolvers<void>()
  const leaving = new AbortController()
  const running = queue.run(() => first.promise)
  const left = queue.run(async () => void steps.push('left'), leaving.signal)
  const third = queue.run(async () => void steps.push('third'))

  leaving.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  await assert.rejects(
    queue.run(async () => void steps.push('late'), leaving.signal),
    /gone/,
  )
  assert.deepEqual(steps, [])
  first.resolve()
  await Promise.all([running, third])

  assert.deepEqual(steps, ['third'])
})

test('a signal that outlives its calls keeps none of their listeners', async () => {
  const queue = new Queue()
  const { signal } = new AbortController()

  for (let count = 0; count < 20; count++) await queue.run(async () => {}, signal)

  assert.equal(getEventListeners(signal, 'abort').length, 0)
})
