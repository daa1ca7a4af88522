import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { startAgent } from '../testing/start-agent.ts'

/** Clears to red and reads one pixel. */
const draw = `(name) => {
  const context = document.createElement('canvas').getContext(name)
  if (!context) return 'no context'
  context.clearColor(1, 0, 0, 1)
  context.clear(context.COLOR_BUFFER_BIT)
  const pixel = new Uint8Array(4)
  context.readPixels(0, 0, 1, 1, context.RGBA, context.UNSIGNED_BYTE, pixel)
  return pixel.join()
}`

for (const [kind, changes] of Object.entries({
  headless: {},
  'stealthy headless': { stealth: true },
  headful: { headless: false },
} satisfies Record<string, Partial<AgentConfig>>)) {
  test(`a ${kind} browser renders WebGL without a GPU`, async () => {
    await using agent = await startAgent(changes)
    await agent.becomesReady()
    const client = await agent.connect()
    const page = await client.attach()

    for (const name of ['webgl', 'webgl2']) {
      assert.equal(await client.evaluate(`(${draw})('${name}')`, page), '255,0,0,255', name)
    }
  })
}
