import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { AgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { StateFeed } from './state-feed.ts'

const never = new AbortController().signal
const mockedClock = { now: () => new Date() }

test('a busy session sends few states, and the last one is current', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const feed = new StateFeed(mockedClock)
  const told = collect(feed)
  feed.becomeReady()
  await turn()
  told.length = 0

  // Ten seconds of 200 operations a second.
  for (let count = 0; count < 2_000; count++) {
    const end = feed.activity.begin()
    mock.timers.tick(2)
    end()
    mock.timers.tick(3)
    await turn()
  }
  mock.timers.tick(1_000)
  await turn()

  assert.ok(told.length > 10 && told.length < 60, String(told.length))
  assert.deepEqual(told.at(-1), feed.state)
  assert.equal(feed.state.idle_since, Date.now() - 1_003)
  mock.timers.reset()
})

test('ready and failed are sent at once', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const feed = new StateFeed(mockedClock)
  const told = collect(feed)
  feed.activity.begin()
  await turn()

  feed.becomeReady()
  await turn()
  feed.activity.begin()()
  feed.fail('a reason')
  await turn()

  assert.deepEqual(
    told.slice(-2).map(({ state }) => state),
    ['ready', 'failed'],
  )
  mock.timers.reset()
})

test('a slow reader gets only the newest state', async () => {
  const feed = new StateFeed(mockedClock)
  const reader = feed.follow(never)
  await reader.next()

  for (let count = 0; count < 500; count++) feed.becomeReady()
  feed.fail('the end')
  const { value: next } = await reader.next()

  assert.equal(next.state, 'failed')
  const nothing = await Promise.race([reader.next(), turn('nothing more')])
  assert.equal(nothing, 'nothing more')
})

/** The states in order. */
function collect(feed: StateFeed): AgentState[] {
  const told: AgentState[] = []
  void (async () => {
    for await (const state of feed.follow(never)) told.push(state)
  })()
  return told
}
