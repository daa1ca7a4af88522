import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InputLock } from './input-lock.ts'

const patient = new AbortController().signal

test('admits callers one after another, in the order of their arrival', async () => {
  const lock = new InputLock()
  const steps: string[] = []
  const act = (name: string) =>
    lock.run(patient, async () => {
      steps.push(`${name} begins`)
      await Promise.resolve()
      steps.push(`${name} ends`)
    })

  await Promise.all([act('first'), act('second'), act('third')])

  const expected = ['first', 'second', 'third'].flatMap((name) => [`${name} begins`, `${name} ends`])
  assert.deepEqual(steps, expected)
})

test('a caller that leaves while it waits gives up its place, and the others keep their order', async () => {
  const lock = new InputLock()
  const steps: string[] = []
  const first = Promise.withResolvers<void>()
  const leaving = new AbortController()
  const acting = lock.run(patient, () => first.promise)
  const left = lock.run(leaving.signal, async () => void steps.push('left'))
  const waiting = lock.run(patient, async () => void steps.push('third'))

  leaving.abort()
  await assert.rejects(left, { name: 'AbortError' })
  assert.deepEqual(steps, [])
  first.resolve()
  await Promise.all([acting, waiting])

  assert.deepEqual(steps, ['third'])
})

test('a failed caller admits the next one', async () => {
  const lock = new InputLock()

  const failing = lock.run(patient, () => Promise.reject(new Error('no')))
  const next = lock.run(patient, async () => 'yes')

  await assert.rejects(failing, /no/)
  assert.equal(await next, 'yes')
})

test('a caller that leaves while it acts stops, or loses its turn a moment later', async () => {
  const lock = new InputLock()
  const leaving = new AbortController()
  const stuck = lock.run(leaving.signal, () => new Promise(() => {}))
  const next = lock.run(patient, async () => 'acts')

  leaving.abort(new Error('left'))

  await assert.rejects(stuck, { message: 'left' })
  assert.equal(await next, 'acts')
})
