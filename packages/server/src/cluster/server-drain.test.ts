import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { ServerDrain } from './server-drain.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })

interface Scene {
  readonly limitMilliseconds: number
  /** The number of open requests at each poll. The last one repeats. */
  readonly open: readonly number[]
  readonly isShared?: boolean
  readonly failure?: Error
}

async function drain({ limitMilliseconds, open, isShared = true, failure }: Scene) {
  const steps: string[] = []
  const note = async (step: string) => {
    steps.push(step)
    if (failure) throw failure
    return 0
  }
  const left = [...open]
  const server = new ServerDrain({
    heartbeat: { drain: async () => void (await note('draining')) },
    handovers: isShared ? { handOverAll: () => note('give away') } : undefined,
    limitMilliseconds,
    countOpen: () => (left.length > 1 ? (left.shift() as number) : (left[0] as number)),
    restartClients: () => {
      steps.push('restart')
      left.splice(0, left.length, 0)
    },
    logger,
  })
  const wasOver = server.isOver
  const begunAt = performance.now()
  await server.run()
  return { steps: [...new Set(steps)], milliseconds: performance.now() - begunAt, wasOver, isOver: server.isOver }
}

test('clients that are still connected at the time limit are told to reconnect', async () => {
  const { steps, milliseconds, wasOver, isOver } = await drain({ limitMilliseconds: 600, open: [1] })

  assert.deepEqual(steps, ['draining', 'give away', 'restart'])
  assert.ok(milliseconds >= 600)
  assert.deepEqual([wasOver, isOver], [false, true])
})

test('a server without clients does not wait for the time limit', { timeout: 30_000 }, async () => {
  const { steps } = await drain({ limitMilliseconds: 3_600_000, open: [2, 1, 0] })

  assert.deepEqual(steps, ['draining', 'give away'])
})

test('with a limit of 0, clients are closed immediately', async () => {
  const { steps, wasOver } = await drain({ limitMilliseconds: 0, open: [1], isShared: false })

  assert.deepEqual([steps, wasOver], [[], true])
})

test('sessions are handed over even with a limit of 0', async () => {
  assert.deepEqual((await drain({ limitMilliseconds: 0, open: [1] })).steps, ['draining', 'give away'])
})

test('clients may finish even without a database', async () => {
  const { steps, isOver } = await drain({ limitMilliseconds: 300, open: [1], failure: new Error('no database') })

  assert.deepEqual([steps, isOver], [['draining', 'give away', 'restart'], true])
})
