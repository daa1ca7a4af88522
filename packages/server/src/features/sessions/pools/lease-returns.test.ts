import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import type { Session } from '../records/session.ts'
import { LeaseReturns } from './lease-returns.ts'

test('a browser that is leased and returned again, before its return resolves, becomes idle', async () => {
  const id = 'session' as SessionId
  let state = 'returning'
  let again: Promise<void> | undefined
  const returns = new LeaseReturns({
    store: {
      findReturning: async () =>
        state === 'returning' ? { session: { pool_id: 'pool' } as unknown as Session, isChanged: false } : undefined,
      restoreDefaults: async () => undefined,
      finishReturn: async () => {
        state = again ? 'idle' : 'returning'
        again ??= returns.finish(id)
      },
    },
    connections: { cut: () => {} },
    machines: { endClients: async () => {} },
    locks: { run: async (_id, work) => work() },
    restores: [],
    terminator: { end: async () => assert.fail('a browser that can be returned is not ended') },
    clock: systemClock,
    logger: createLogger({ name: 'test', level: 'silent', json: true }),
  })

  await returns.finish(id)
  await again

  assert.equal(state, 'idle')
})
