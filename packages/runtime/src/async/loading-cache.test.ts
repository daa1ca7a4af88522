import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoadingCache } from './loading-cache.ts'

function loader() {
  let loads = 0
  return { load: async () => ++loads, count: () => loads }
}

test('a value is loaded once, also by concurrent callers', async () => {
  const cache = new LoadingCache<string, number>({ maxEntries: 10 })
  const { load } = loader()

  assert.deepEqual(await Promise.all([cache.get('a', load), cache.get('a', load)]), [1, 1])
  assert.equal(await cache.get('a', load), 1)
})

test('the least recently used entry makes room', async () => {
  const cache = new LoadingCache<string, number>({ maxEntries: 2 })
  const { load, count } = loader()

  await cache.get('a', load)
  await cache.get('b', load)
  await cache.get('a', load)
  await cache.get('c', load)

  assert.equal(await cache.get('a', load), 1)
  assert.equal(count(), 3)
  await cache.get('b', load)
  assert.equal(count(), 4)
})

test('a value is used until it expires', async () => {
  let now = 1_000_000
  const clock = { now: () => new Date(now) }
  const cache = new LoadingCache<string, number>({ maxEntries: 2, fresh: { milliseconds: 1_000, clock } })
  const { load } = loader()

  await cache.get('a', load)
  now += 999
  assert.equal(await cache.get('a', load), 1)
  now += 1

  assert.equal(await cache.get('a', load), 2)
})

test('neither failures nor rejected values are cached', async () => {
  const cache = new LoadingCache<string, number>({ maxEntries: 2, keeps: (value) => value > 1 })
  const { load } = loader()

  await assert.rejects(cache.get('a', () => Promise.reject(new Error('no'))))
  assert.equal(await cache.get('a', load), 1)

  assert.equal(await cache.get('a', load), 2)
  assert.equal(await cache.get('a', load), 2)
})
