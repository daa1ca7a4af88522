import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SingleFlight } from './single-flight.ts'

test('concurrent callers of one key share one run, and a later one starts again', async () => {
  const flight = new SingleFlight<string, number>()
  let runs = 0
  const work = async () => ++runs

  const together = [flight.run('a', work), flight.run('a', work), flight.run('b', work)]
  assert.deepEqual(await Promise.all(together), [1, 1, 2])

  assert.equal(await flight.run('a', work), 3)
})

test('a failed run rejects for all who share it, and for no later caller', async () => {
  const flight = new SingleFlight<string, string>()
  const fails = () => Promise.reject(new Error('no'))

  const outcomes = await Promise.allSettled([flight.run('a', fails), flight.run('a', fails)])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected'],
  )

  assert.equal(await flight.run('a', async () => 'yes'), 'yes')
})

test('is idle when all runs have settled', async () => {
  const flight = new SingleFlight<string, void>()
  const end = Promise.withResolvers<void>()
  const running = flight.run('a', () => end.promise)
  let isIdle = false
  const idle = flight.idle().then(() => {
    isIdle = true
  })

  await new Promise(setImmediate)
  assert.equal(isIdle, false)
  end.reject(new Error('it failed'))
  await assert.rejects(running)

  await idle
})
