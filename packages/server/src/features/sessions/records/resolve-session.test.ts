import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../../../testing/server-test.ts'
import type { SessionState } from './session-state.ts'

const server = await TestServer.open()
after(() => server.close())
const { resolver } = server.services
const [project, other] = [await server.project(), await server.project()]
const id = (await project.session({ name: 'its-name' })).session_id as SessionId
// Its name is the id of another session, which takes precedence.
const namesake = (await project.session({ name: id })).session_id as SessionId
const owner = { projectId: project.id }

function setState(state: SessionState) {
  const deletedAt = state === 'ending' || state === 'deleted' ? new Date() : null
  return server.database
    .updateTable('sessions')
    .set({ state, deleted_at: deletedAt, uptime_ms: state === 'deleted' ? 1 : null })
    .where('id', '=', id)
    .execute()
}

for (const [how, caller, asked, found] of [
  ['its project, by id', owner, id, id],
  ['its project, by name', owner, 'its-name', id],
  ['its project, by the id that is also a name', owner, namesake, namesake],
  ['another project, by id', { projectId: other.id }, id, undefined],
  ['another project, by name', { projectId: other.id }, 'its-name', undefined],
  ['the bearer of its token', { sessionId: id }, id, id],
  ['the bearer of its token, by name', { sessionId: id }, 'its-name', id],
  ['the bearer of another token', { sessionId: namesake }, 'its-name', undefined],
  ['its project, by another name', owner, 'ITS-NAME', undefined],
] as const) {
  test(`${how} finds ${found === undefined ? 'nothing' : 'the session'}`, async () => {
    const resolving = resolver.resolve(caller, asked)

    const whole = { id: found, project_id: owner.projectId, state: 'active', driver_id: 'test' }
    if (found !== undefined) assert.partialDeepStrictEqual(await resolving, whole)
    else await assert.rejects(resolving, { code: 'session_not_found' })
  })
}

for (const [state, active, orStarting] of [
  ['starting', false, true],
  ['active', true, true],
  ['ending', false, false],
  ['deleted', false, false],
] as const) {
  test(`a session that is ${state} is ${active ? '' : 'not '}found, and ${orStarting ? '' : 'not '}by who may delete it`, async () => {
    await setState(state)

    const isFound = (options?: { orStarting: boolean }) =>
      resolver.resolve({ sessionId: id }, id, options).then(
        () => true,
        () => false,
      )

    assert.deepEqual([await isFound(), await isFound({ orStarting: true })], [active, orStarting])
  })
}
