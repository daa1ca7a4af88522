import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AuditLogEntry } from '@berth/contract/audit/audit-endpoints.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { SharedServers } from '../testing/shared-servers.ts'

const servers = await SharedServers.open()
after(() => servers.close())
const { first, second } = servers

const full = () => new BerthError('capacity_exhausted', { reason: 'no memory is available.' })

test('a create without room on a server is handled by another one with room', async () => {
  const project = await first.project()
  first.host.failNextStart(full())

  const chrome_policy = { HomepageLocation: 'http://size.test/?größe' }
  const created = await project.call<Browser>('POST', '/browsers', { headless: true, name: 'moved', chrome_policy })

  const id = created.body.session_id as SessionId
  assert.deepEqual([created.status, created.body.name], [200, 'moved'])
  assert.deepEqual(created.body.chrome_policy, chrome_policy)
  assert.deepEqual([first.host.has(id), second.host.has(id)], [false, true])
  assert.equal(new URL(created.body.cdp_ws_url).port, String(first.port), 'its addresses are where the client asked')
  assert.equal((await project.call('DELETE', `/browsers/${id}`)).status, 204, 'it is reached through the full server')
  await Promise.all([first.services.audit.flush(), second.services.audit.flush()])
  const { body: log } = await project.call<AuditLogEntry[]>('GET', `/audit-logs?${period()}`)
  assert.deepEqual(log.map(({ method }) => method).toSorted(), ['DELETE', 'POST'])
})

test('a create without a body is also handled by another server', async () => {
  const project = await first.project()
  first.host.failNextStart(full())

  const { status, body } = await project.call<Browser>('POST', '/browsers')

  assert.equal(status, 200)
  assert.ok(second.host.has(body.session_id as SessionId))
})

test('a create is rejected when no server has room, and leaves nothing', async () => {
  const project = await first.project()
  first.host.failNextStart(full())
  second.host.failNextStart(full())

  const refused = await project.call<{ code: string }>('POST', '/browsers', { name: 'full' })

  assert.deepEqual([refused.status, refused.body.code], [529, 'capacity_exhausted'])
  assert.equal(refused.headers.get('x-should-retry'), 'true')
  assert.deepEqual((await project.call<Browser[]>('GET', '/browsers')).body, [])
  assert.equal((await project.call('POST', '/browsers', { name: 'full' })).status, 200, 'its name is free')
})

test('a create is rejected when the only other server cannot be reached', async () => {
  const project = await first.project()
  await first.database
    .updateTable('servers')
    .set({ address: 'http://127.0.0.1:9' })
    .where('id', '=', 'second')
    .execute()
  first.clock.advance(60) // The address that was cached before is outdated.
  first.host.failNextStart(full())

  const refused = await project.call<{ code: string }>('POST', '/browsers', {})

  assert.deepEqual([refused.status, refused.body.code], [529, 'capacity_exhausted'])
})

test('other failures of a create are not forwarded', async () => {
  const project = await first.project()
  first.host.failNextStart('the display is missing')

  const failed = await project.call<{ code: string }>('POST', '/browsers', {})

  assert.deepEqual([failed.status, failed.body.code], [500, 'session_start_failed'])
})

function period(): string {
  const now = first.clock.now().getTime()
  const [start, end] = [now - 86_400_000, now + 86_400_000].map((time) => new Date(time).toISOString())
  return `start=${start}&end=${end}`
}
