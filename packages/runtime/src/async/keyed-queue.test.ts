import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyedQueue } from './keyed-queue.ts'

test('the work of one key runs in the order of the calls, and a failure does not stop it', async () => {
  const queue = new KeyedQueue<string>()
  const first = Promise.withResolvers<void>()
  const steps: string[] = []
  const work = (name: string, until?: Promise<void>) => async () => {
    steps.push(`${name} begins`)
    await until
    steps.push(`${name} ends`)
    return name
  }

  const results = [
    queue.run('a', work('one', first.promise)),
    queue.run('a', async () => {
      await work('two')()
      throw new Error('two failed')
    }),
    queue.run('a', work('three')),
  ]
  assert.equal(await queue.run('b', work('other key')), 'other key')
  first.resolve()

  assert.equal(await results[0], 'one')
  await assert.rejects(results[1] as Promise<string>, /two failed/)
  assert.equal(await results[2], 'three')
  assert.deepEqual(steps, [
    ...['one begins', 'other key begins', 'other key ends', 'one ends'],
    ...['two begins', 'two ends', 'three begins', 'three ends'],
  ])
})

test('a key without work is removed', async () => {
  const queue = new KeyedQueue<number>()

  const done = Promise.allSettled(
    Array.from({ length: 10 }, (_value, key) =>
      queue.run(key % 3, () => (key % 2 ? Promise.reject(key) : Promise.resolve())),
    ),
  )
  assert.equal(queue.size, 3)
  await done

  assert.equal(queue.size, 0)
})
