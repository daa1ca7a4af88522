import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { mock, test } from 'node:test'
import { graceAfter } from './retries.ts'
import { RunningOperation } from './running-operation.ts'
import { Content } from './served-operation.ts'

/** The parts of a response that an operation uses. */
class FakeResponse extends EventEmitter {
  writableFinished = false
  destroyed = false

  static as(): ServerResponse & FakeResponse {
    return new FakeResponse() as unknown as ServerResponse & FakeResponse
  }

  leave(): void {
    this.destroyed = true
    this.emit('close')
  }

  finish(): void {
    this.writableFinished = true
    this.leave()
  }
}

function start() {
  const work = Promise.withResolvers<unknown>()
  let ends = 0
  let runs = 0
  const running = new RunningOperation(
    () => {
      runs += 1
      return work.promise
    },
    () => {
      ends += 1
    },
  )
  return { running, work, counts: () => ({ runs, ends }) }
}

test('a retry joins the running operation of its caller', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { running, work, counts } = start()
  const [first, second] = [FakeResponse.as(), FakeResponse.as()]
  const answered = running.answerFor({ response: first, graceMilliseconds: 2_000 })

  first.leave()
  mock.timers.tick(1_900)
  const joined = running.answerFor({ response: second, graceMilliseconds: 2_000 })
  mock.timers.tick(60_000)
  work.resolve('the answer')

  assert.equal(await joined, 'the answer')
  assert.equal(await answered, 'the answer')
  assert.equal(running.signal.aborted, false)
  second.finish()
  assert.equal(running.signal.aborted, true)
  assert.deepEqual(counts(), { runs: 1, ends: 1 })
  mock.timers.reset()
})

test('a response whose caller has disconnected waits for a retry', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { running, work, counts } = start()
  const first = FakeResponse.as()
  const answered = running.answerFor({ response: first, graceMilliseconds: 2_000 })
  first.leave()
  work.resolve('late')
  await answered

  mock.timers.tick(1_000)

  assert.equal(counts().ends, 0)
  assert.equal(await running.answerFor({ response: FakeResponse.as(), graceMilliseconds: 2_000 }), 'late')
  mock.timers.reset()
})

test('without a retry it ends at once, or when no retry can be expected', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  for (const graceMilliseconds of [0, 2_500]) {
    const { running, counts } = start()
    const response = FakeResponse.as()
    running.answerFor({ response, graceMilliseconds }).catch(assert.ifError)

    response.leave()
    assert.equal(running.signal.aborted, graceMilliseconds === 0)
    mock.timers.tick(graceMilliseconds)

    assert.equal(running.signal.aborted, true)
    assert.equal(counts().ends, 1)
  }
  mock.timers.reset()
})

test('a streamed response is given once, and ends with its reader', async () => {
  const { running, work } = start()
  const [first, second] = [FakeResponse.as(), FakeResponse.as()]
  const taken = running.answerFor({ response: first, graceMilliseconds: 1_000 })
  const refused = running.answerFor({ response: second, graceMilliseconds: 1_000 })
  work.resolve(new Content((async function* () {})()))

  assert.ok((await taken) instanceof Content)
  await assert.rejects(refused, /given to another/)
  first.leave()
  assert.equal(running.signal.aborted, true)
})

test('waits as long as official clients wait before a retry', () => {
  assert.equal(graceAfter(undefined), 0)
  assert.deepEqual([0, 1, 2, 3, 4, 50].map(graceAfter), [2_500, 3_000, 4_000, 6_000, 10_000, 10_000])
})
