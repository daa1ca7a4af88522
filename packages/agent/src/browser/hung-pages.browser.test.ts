import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ComputerPage } from '../testing/computer-page.ts'
import { startFakeEgress } from '../testing/fake-egress.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

/** Every operation of the group with minimal parameters. */
const operations: Readonly<Record<string, object | undefined>> = {
  click_mouse: { x: 640, y: 400, hold_keys: ['Shift'] },
  move_mouse: { x: 300, y: 300 },
  type: { text: 'Hello, page!' },
  press_key: { keys: ['a', 'Ctrl+b'], duration: 50 },
  scroll: { x: 640, y: 400, delta_y: 5 },
  drag_mouse: {
    path: [
      [100, 300],
      [700, 500],
    ],
  },
  screenshot: undefined,
  cursor: { hidden: false },
  get_mouse_position: undefined,
  batch: {
    actions: [
      { type: 'move_mouse', move_mouse: { x: 20, y: 300 } },
      { type: 'press_key', press_key: { keys: ['c'] } },
      { type: 'scroll', scroll: { x: 20, y: 300, delta_y: 1 } },
    ],
  },
  'clipboard/read': undefined,
  'clipboard/write': { text: 'text' },
}

/** One for each path to the browser. */
const unlikeOperations = ['click_mouse', 'type', 'screenshot', 'clipboard/read']

/** Waits for answers that never come, because a loop alone would take a processor. */
const endless = `for (;;) {
  const ask = new XMLHttpRequest()
  ask.open('GET', 'http://never.test/', false)
  try { ask.send() } catch {}
}`

const isDeep = process.env.BERTH_DEEP === '1'
const names = isDeep ? Object.keys(operations) : unlikeOperations

/** Limit for an operation on a page or browser that never answers; the operation itself takes a second. */
const limitMilliseconds = 30_000

for (const headless of [true, false]) {
  describe(headless ? 'without a display' : 'with a display', () => {
    // A display shows these, as it shows all windows.
    const onPages = ['a dialog that was open before', 'an open dialog']
    for (const situation of ['a tab that never answers', ...(headless ? onPages : [])]) {
      describe(`with ${situation} in front`, () => {
        let agent: StartedAgent
        let egress: AsyncDisposable
        let page: ComputerPage

        before(async () => {
          agent = await startAgent({ headless })
          egress = await startFakeEgress(agent, () => {})
          await agent.becomesReady()
          page = await ComputerPage.open(agent)
          if (situation === 'an open dialog') await page.operate('screenshot')
          if (situation === 'a tab that never answers') {
            await page.evaluate(`void setTimeout(() => { ${endless} }, 0)`)
          } else {
            await page.client.send('Page.enable', {}, page.session)
            const opening = page.client.nextEvent('Page.javascriptDialogOpening')
            await page.evaluate(`void setTimeout(() => alert('Wait!'), 0)`)
            await opening
          }
        })

        after(async () => {
          await agent[Symbol.asyncDispose]()
          await egress[Symbol.asyncDispose]()
        })

        for (const name of names) {
          test(`${name} answers`, async () => {
            const { status, json } = await inTime(page.operate(name, operations[name]))

            if (status !== 200) assert.equal(json.code, 'computer_action_failed', JSON.stringify(json))
          })
        }

        test('the next operation on a healthy tab works', async () => {
          await worksOnAHealthyTab(agent)
        })
      })
    }

    // With a display, operations act on the display and ask little of the browser.
    const skip = !headless && !isDeep && 'only with ./berth test --deep'
    // Each one kills and restarts the browser.
    for (const group of groupsOf(4, names)) {
      test(`${group.join(', ')} answer when the browser is killed`, { skip }, async () => {
        await using agent = await startAgent({ headless })
        await agent.becomesReady()

        for (const name of group) {
          const page = await ComputerPage.open(agent)
          const answer = page.operate(name, operations[name])
          for (const pid of agent.children('chromium')) process.kill(pid, 'SIGKILL')
          const { status, json } = await inTime(answer)

          if (status !== 200) assert.equal(json.code, 'computer_action_failed', JSON.stringify(json))
          await page.client.closed
        }
        await worksOnAHealthyTab(agent)
      })
    }
  })
}

async function worksOnAHealthyTab(agent: StartedAgent): Promise<void> {
  const healthy = await ComputerPage.open(agent)
  await healthy.operate('click_mouse', healthy.at(100, 60))
  assert.equal((await healthy.operate('type', { text: 'well', smooth: false })).status, 200)
  assert.equal(await healthy.becomes(`text.value.endsWith('well')`, 'text.value.slice(-4)'), 'well')
  assert.equal((await healthy.operate('screenshot')).status, 200)
}

async function inTime<Value>(answer: Promise<Value>): Promise<Value> {
  const limit = Promise.withResolvers<never>()
  const timer = setTimeout(() => limit.reject(new Error('there is no answer in time')), limitMilliseconds)
  try {
    return await Promise.race([answer, limit.promise])
  } finally {
    clearTimeout(timer)
  }
}

function groupsOf(size: number, names: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(names.length / size)
  return Array.from({ length: count }, (_, index) => names.slice(index * size, (index + 1) * size))
}
