import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import Kernel from '@onkernel/sdk'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'

const berth = await Berth.borrow()
after(() => berth[Symbol.asyncDispose]())

/** Times out after a second and retries. Every operation here takes longer. */
const impatient = { timeout: 1_000, maxRetries: 5 }
const client = new Kernel({ apiKey: berth.apiKey, baseURL: berth.url, ...impatient })
const { session_id: id } = await client.browsers.create({ headless: true, timeout_seconds: 300 }, { timeout: 60_000 })
const { computer, fs, playwright, process } = client.browsers

const count = (name: string) => `echo x >> /tmp/${name}; sleep 2`
const lines = async (path: string) => (await (await fs.readFile(id, { path })).text()).split('\n').length - 1

/** Operations that would take effect twice if repeated, and the number of their effects. */
const operations: Readonly<Record<string, { run: () => Promise<unknown>; effects: () => Promise<number> }>> = {
  'process.exec': {
    run: () => process.exec(id, { command: 'sh', args: ['-c', count('exec')] }),
    effects: () => lines('/tmp/exec'),
  },
  'playwright.execute': {
    run: () =>
      playwright.execute(id, {
        code: `require('node:fs').appendFileSync('/tmp/playwright', 'x\\n'); await new Promise((go) => setTimeout(go, 2000))`,
      }),
    effects: () => lines('/tmp/playwright'),
  },
  'computer.typeText': {
    run: async () => {
      await playwright.execute(id, {
        code: `await page.setContent('<textarea id=t></textarea>'); await page.focus('#t')`,
      })
      return computer.typeText(id, { text: 'x'.repeat(40), delay: 60 })
    },
    effects: async () => {
      const { result } = await playwright.execute(id, { code: `return page.inputValue('#t')` })
      return String(result).length / 40
    },
  },
}

for (const [name, { run, effects }] of Object.entries(operations)) {
  test(`${name} is done once when it is retried while it runs`, async () => {
    await run()

    assert.equal(await effects(), 1)
  })
}

test('a call without a retry ends shortly after its caller has disconnected', async () => {
  const once = new Kernel({ apiKey: berth.apiKey, baseURL: berth.url, maxRetries: 0 })
  const args = ['-c', 'trap "" TERM; while :; do echo x >> /tmp/alone; sleep 0.1; done']
  const leaving = new AbortController()
  const call = once.browsers.process.exec(id, { command: 'sh', args }, { signal: leaving.signal })
  await until('its begin', () => lines('/tmp/alone').catch(() => undefined), { limitSeconds: 30 })
  leaving.abort()
  await assert.rejects(call)

  for (let before = -1, now = await lines('/tmp/alone'); now !== before; ) {
    before = now
    await process.exec(id, { command: 'sleep', args: ['0.5'] })
    now = await lines('/tmp/alone')
  }
})
