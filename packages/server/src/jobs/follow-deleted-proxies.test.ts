import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { SessionStore } from '../features/sessions/records/session-store.ts'
import { quickPace } from '../testing/quick-pace.ts'
import { TestServer } from '../testing/server-test.ts'
import { detachProxy } from './declared-jobs.ts'
import { DeletedProxies } from './follow-deleted-proxies.ts'
import { JobRunner } from './job-runner.ts'
import { startJobs } from './start-jobs.ts'

const server = await TestServer.open()
await startJobs(server.jobs, server.services)
const elsewhere = new JobRunner({
  connectionString: server.connectionString,
  serverId: 'elsewhere',
  logger: createLogger({ name: 'test', level: 'silent', json: true }),
  pace: quickPace,
})
after(async () => {
  await elsewhere.close()
  await server.close()
})

test('every server removes a deleted proxy from its sessions, including starting ones', async () => {
  const project = await server.project()
  const config = { host: 'proxy.test', port: 3128 }
  const { body: proxy } = await project.call<{ id: string }>('POST', '/proxies', { type: 'custom', config })
  const sessions = await Promise.all([1, 2, 3].map(() => project.session({ proxy: { id: proxy.id } })))
  const [here, there, starting] = sessions.map(({ session_id }) => session_id as SessionId)
  const move = (id: SessionId | undefined, state: 'starting' | 'active') =>
    server.database
      .updateTable('sessions')
      .set({ driver_id: 'elsewhere', state })
      .where('id', '=', id as SessionId)
      .execute()
  await move(there, 'active')
  await move(starting, 'starting')
  const restored: SessionId[] = []
  const both = Promise.withResolvers<void>()
  const deletedProxies = new DeletedProxies({
    proxies: server.services.proxies,
    sessions: new SessionStore(server.database, 'test'),
    restore: async (id) => {
      restored.push(id)
      if (restored.filter((other) => other === starting).length === 2) both.resolve()
      await move(starting, 'active')
    },
    serverId: 'elsewhere',
    jobs: elsewhere,
  })
  await elsewhere.work(detachProxy, ({ proxyId }) => deletedProxies.detach(proxyId))

  assert.equal((await project.call('DELETE', `/proxies/${proxy.id}`)).status, 204)

  assert.deepEqual(server.egress.settings.get(here as SessionId)?.proxy, undefined, 'at once where it was deleted')
  await both.promise
  assert.deepEqual(new Set(restored), new Set([there, starting]))
})

test('a rejected delete leaves no job', async () => {
  const project = await server.project()

  assert.equal((await project.call('DELETE', '/proxies/prxnone')).status, 404)

  const { rows } = await sql`select from jobs.job where singleton_key = 'prxnone'`.execute(server.database)
  assert.equal(rows.length, 0)
})
