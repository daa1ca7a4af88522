import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { AuthConnectionId, AuthFlowId } from '@berth/contract/common/ids.ts'
import type { FlowStatus, FlowStep } from '@berth/contract/managed-auth/connection.ts'
import { TestServer } from '../../../testing/server-test.ts'
import { connect } from '../testing/logins.ts'
import { FlowStore, type StoredFlow } from './flow-store.ts'

const server = await TestServer.open()
after(() => server.close())
const store = new FlowStore(server.database)
const connectionId = (await connect(await server.project())).id as AuthConnectionId

const now = new Date()
const after20Minutes = new Date(now.getTime() + 20 * 60_000)
const question = 'question'
const newId = () => `afl${randomBytes(12).toString('hex').slice(0, 21)}` as AuthFlowId

type State = `IN_PROGRESS ${Exclude<FlowStep, 'COMPLETED'>}` | `${Exclude<FlowStatus, 'IN_PROGRESS'>} COMPLETED`

const newFlow = (status: FlowStatus, step: FlowStep) => ({
  id: newId(),
  connection_id: connectionId,
  flow_type: 'LOGIN' as const,
  is_attended: true,
  status,
  step,
  server_id: null,
  session_id: null,
  options: JSON.stringify({ record: false, browser: {} }),
  handoff_hash: null,
  sealed_handoff: null,
  interaction_id: step.startsWith('AWAITING') ? question : null,
  waits_until: step.startsWith('AWAITING') ? after20Minutes : null,
  created_at: now,
  updated_at: now,
  expires_at: after20Minutes,
  ended_at: status === 'IN_PROGRESS' ? null : now,
})

const goTo = (step: FlowStep) => (flow: StoredFlow) => store.change(flow, { step }, now)

/** The events of a flow, as the statements that decide them. */
const events: Readonly<Record<string, (flow: StoredFlow) => Promise<unknown>>> = {
  'a page that asks': goTo('AWAITING_INPUT'),
  'a page that waits for a person': goTo('AWAITING_EXTERNAL_ACTION'),
  'a stored value': goTo('SUBMITTING'),
  'an answer': (flow) => store.answer({ ...flow, interaction_id: question }, {}, now),
  'an answer to an earlier question': (flow) => store.answer({ ...flow, interaction_id: 'earlier' }, {}, now),
  'a late answer': (flow) => store.answer({ ...flow, interaction_id: question }, {}, after20Minutes),
  'a step based on an older version': (flow) => store.change({ ...flow, version: flow.version - 1 }, {}, now),
  'the end of its time': () => store.expire(after20Minutes, [connectionId]),
  'the login': (flow) => store.end(flow.id, { status: 'SUCCESS' }, { now }),
  'a failure': (flow) => store.end(flow.id, { status: 'FAILED' }, { now }),
  'another login': () => store.begin(newFlow('IN_PROGRESS', 'DISCOVERING')),
  'a login of a job': () => store.beginUnlessBusy(newFlow('IN_PROGRESS', 'DISCOVERING')),
}

/** The state after each event. Events that are not listed change nothing. */
const ends = {
  'the end of its time': 'EXPIRED COMPLETED',
  'the login': 'SUCCESS COMPLETED',
  'a failure': 'FAILED COMPLETED',
  'another login': 'CANCELED COMPLETED',
} as const
const asks = {
  'a page that asks': 'IN_PROGRESS AWAITING_INPUT',
  'a page that waits for a person': 'IN_PROGRESS AWAITING_EXTERNAL_ACTION',
} as const
const submits = { 'a stored value': 'IN_PROGRESS SUBMITTING' } as const
const answered = { 'an answer': 'IN_PROGRESS SUBMITTING' } as const

const transitions: Readonly<Record<State, Readonly<Record<string, State>>>> = {
  'IN_PROGRESS DISCOVERING': { ...asks, ...submits, ...ends },
  // A question stays until it is answered.
  'IN_PROGRESS AWAITING_INPUT': { ...submits, ...answered, ...ends },
  'IN_PROGRESS AWAITING_EXTERNAL_ACTION': { ...asks, ...submits, ...answered, ...ends },
  'IN_PROGRESS SUBMITTING': { ...asks, ...submits, ...ends },
  'SUCCESS COMPLETED': {},
  'FAILED COMPLETED': {},
  'EXPIRED COMPLETED': {},
  'CANCELED COMPLETED': {},
}

for (const [state, leads] of Object.entries(transitions)) {
  test(`a flow in the state ${state} changes as expected with every event`, async () => {
    const [status, step] = state.split(' ') as [FlowStatus, FlowStep]
    for (const [event, happen] of Object.entries(events)) {
      await server.database.deleteFrom('auth_flows').where('connection_id', '=', connectionId).execute()
      const row = newFlow(status, step)
      const flow = await server.database.insertInto('auth_flows').values(row).returningAll().executeTakeFirstOrThrow()

      await happen(flow).catch((error: Error) => assert.match(error.message, /^a flow cannot change from/))

      const left = await store.find(flow.id)
      assert.equal(`${left?.status} ${left?.step}`, leads[event] ?? state, event)
    }
  })
}
