import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { FindFormFieldsReply } from '@berth/contract/agent/login/form-fill-endpoints.ts'
import type { SessionId, VaultOperationId } from '@berth/contract/common/ids.ts'
import type { FillResult } from '@berth/contract/vaults/item-operation.ts'
import type { VaultItemEvent } from '@berth/contract/vaults/vault-item.ts'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'
import { bindValues, withoutTexts } from './bind-values.ts'
import { denialOf } from './destination.ts'
import { operationTransitions, statesBefore } from './operation-state.ts'
import { OperationStore } from './operation-store.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

const path = '/vaults/v/items/login'
const found: FindFormFieldsReply = {
  outcome: 'found',
  fill_id: 'fill',
  page_url: 'https://shop.example.com/login',
  origins: ['https://shop.example.com', 'https://shop.example.com'],
}

interface Linked {
  readonly project: TestProject
  readonly sessionId: SessionId
  readonly agent: FakeAgent
  fill(change?: object): ReturnType<typeof fillOf>
  eventNames(): Promise<readonly string[]>
}

const fillOf = (project: TestProject, body: object) =>
  project.call<FillResult & Failure>('POST', `${path}/operations`, body)

/** A project with an item, and a session that is linked to its vault and whose machine finds all elements. */
async function linked(spec: object = {}): Promise<Linked> {
  const { project, sessionId, agent, body: usual } = await linkedOn(server, spec)
  return {
    project,
    sessionId,
    agent,
    fill: (change = {}) => fillOf(project, { ...usual, ...change }),
    async eventNames() {
      const { body } = await project.call<VaultItemEvent[]>('GET', `${path}/events`)
      assert.doesNotMatch(JSON.stringify(body), /planted/)
      return body.map(({ name }) => name)
    },
  }
}

async function linkedOn(host: TestServer, spec: object = {}) {
  const project = await host.project()
  await project.call('POST', '/vaults', { name: 'v' })
  const fields = [
    { name: 'user', type: 'text', value: 'ann' },
    { name: 'password', type: 'password', value: 'planted' },
    { name: 'code', type: 'totp', required: false, value: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' },
    { name: 'note', type: 'text', required: false },
  ]
  const made = await project.call('PUT', path, { type: 'credential', spec: { fields, ...spec } })
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const { session_id } = await project.session({ headless: true, vaults: [{ name: 'v' }] })
  const sessionId = session_id as SessionId
  const agent = host.host.agentOf(sessionId)
  agent.findFormFields = async ({ selectors }) => ({
    ...found,
    origins: selectors.map(() => 'https://shop.example.com'),
  })
  const body = {
    type: 'fill',
    browser_id: sessionId,
    fields: [
      { field: 'user', selector: '#user' },
      { field: 'password', selector: '#password' },
    ],
  }
  return { project, sessionId, agent, body }
}

test('a fill first finds the elements, and then sends the values if their destination is permitted', async () => {
  const { agent, fill, eventNames } = await linked()

  const { status, body } = await fill()

  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body, {
    type: 'fill',
    status: 'completed',
    fields: [
      { index: 0, status: 'filled' },
      { index: 1, status: 'filled' },
    ],
  })
  assert.deepEqual(agent.filled, [{ fill_id: 'fill', values: ['ann', 'planted'], timeout_ms: 10_000 }])
  assert.deepEqual(await eventNames(), ['item.created', 'fill.started', 'fill.completed'])
})

test('for a TOTP secret, a fresh code is written', async () => {
  const { agent, fill } = await linked()
  server.clock.advance(59 - server.clock.now().getTime() / 1000)

  await fill({ fields: [{ field: 'code', selector: '#code' }] })
  server.clock.advance(Date.now() / 1000 - server.clock.now().getTime() / 1000)

  assert.deepEqual(agent.filled[0]?.values, ['287082'])
})

test('an operation that is rejected before writing sends no values', async () => {
  const { project, agent, fill, sessionId } = await linked()
  const other = await project.session()
  const stranger = await (await server.project()).session()
  const one = [{ field: 'user', selector: '#user' }]

  for (const [status, code, change, reply] of [
    [404, 'session_not_found', { browser_id: 'brw0123456789abcdefghijk' }, found],
    [404, 'session_not_found', { browser_id: stranger.session_id }, found],
    [409, 'vault_not_linked', { browser_id: other.session_id }, found],
    [400, 'field_unavailable', { fields: [{ field: 'note', selector: '#note' }] }, found],
    [400, 'field_unavailable', { fields: [{ field: 'nothing', selector: '#note' }] }, found],
    [400, 'invalid_input', { fields: [{ ...one[0], format: 'MM/YY' }] }, found],
    [400, 'invalid_input', { fields: [] }, found],
    [400, 'invalid_input', { timeout_ms: 30_001 }, found],
    [400, 'invalid_input', {}, { outcome: 'invalid_selector', index: 1 }],
    [400, 'page_not_found', {}, { outcome: 'no_page' }],
    [400, 'ambiguous_page', {}, { outcome: 'several_pages' }],
    [403, 'destination_denied', {}, { ...found, page_url: 'chrome://settings/' }],
    [403, 'destination_denied', {}, { ...found, origins: ['https://shop.example.com', 'null'] }],
    [403, 'destination_denied', {}, { ...found, origins: ['https://shop.example.com', 'https://ads.test'] }],
  ] as const) {
    agent.findFormFields = async () => reply as FindFormFieldsReply
    const refused = await fill({ browser_id: sessionId, ...change })
    assert.deepEqual([refused.status, refused.body.code], [status, code], JSON.stringify(change))
  }

  agent.findFormFields = async () => ({ outcome: 'not_found', index: 1, error_code: 'element_not_found' })
  assert.deepEqual((await fill()).body, {
    type: 'fill',
    status: 'failed',
    fields: [
      { index: 0, status: 'not_attempted' },
      { index: 1, status: 'failed', error_code: 'element_not_found' },
    ],
  })
  assert.deepEqual(agent.filled, [])
})

test('an item without its values is not filled in', async () => {
  const { project, fill } = await linked()
  await project.call('PATCH', path, { type: 'credential', version: 1, spec: { fields: { user: { value: null } } } })

  const refused = await fill()

  assert.deepEqual([refused.status, refused.body.code], [409, 'vault_operation_not_available'])
})

test('the domains of an item apply to the page and to the frames of its elements', async () => {
  const { agent, fill, eventNames } = await linked({ allowed_domains: ['example.com', 'Login.Test'] })

  assert.equal((await fill()).status, 200)
  agent.findFormFields = async () => ({ ...found, origins: ['https://login.test', 'https://a.login.test'] })
  assert.equal((await fill()).status, 200)
  agent.findFormFields = async () => ({ ...found, origins: ['https://notexample.com', 'https://shop.example.com'] })
  assert.equal((await fill()).body.code, 'destination_denied')
  assert.equal((await eventNames()).at(-1), 'fill.denied')
  assert.equal(agent.filled.length, 2)
})

test('a fill without a response after the values were sent has an unknown outcome', async () => {
  const { agent, fill, eventNames } = await linked()
  agent.fillFormFields = async () => {
    throw new Error('the agent has failed')
  }

  const { status, body } = await fill()

  assert.deepEqual([status, body.status], [200, 'unknown'])
  assert.deepEqual(
    body.fields.map((field) => field.status),
    ['unknown', 'unknown'],
  )
  assert.equal((await eventNames()).at(-1), 'fill.unknown')
})

test('an invalid key of the agent ends a fill before anything is sent', async () => {
  const { agent, fill, eventNames } = await linked()
  agent.makeSealingKey = async () => ({ key_id: 'x', jwk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' } })

  const { status, body } = await fill()

  assert.deepEqual([status, body.code, agent.filled.length], [502, 'session_unreachable', 0])
  assert.equal((await eventNames()).at(-1), 'fill.failed')
})

test('fills of one browser run one after another', async () => {
  const { agent, fill } = await linked()
  let underWay = 0
  let most = 0
  agent.fillFormFields = async ({ values }) => {
    underWay += 1
    most = Math.max(most, underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay -= 1
    return { status: 'completed', fields: values.map((_value, index) => ({ index, status: 'filled' })) }
  }

  const answers = await Promise.all(Array.from({ length: 5 }, () => fill()))

  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  assert.equal(most, 1)
})

test('a fill on another server is forwarded to the server of the session', async () => {
  const first = await TestServer.open({ isShared: true })
  const second = await first.sibling('second')
  try {
    const { project, agent, body } = await linkedOn(first)

    const passedOn = await fillOf(project.on(second), body)
    assert.deepEqual([passedOn.status, passedOn.body.status], [200, 'completed'], JSON.stringify(passedOn.body))
    assert.deepEqual(agent.filled[0]?.values, ['ann', 'planted'])
    const large = await fillOf(project.on(second), { ...body, page_url: 'x'.repeat(140_000) })
    const unknown = await fillOf(project.on(second), { ...body, browser_id: 'nothing' })
    const invalid = await fillOf(project.on(second), { ...body, browser_id: 1 })
    assert.deepEqual([large.status, unknown.status, invalid.status], [413, 404, 400])
  } finally {
    await second.close()
    await first.close()
  }
})

for (const [state, event] of [
  ['preparing', 'fill.failed'],
  ['writing', 'fill.unknown'],
] as const) {
  test(`an operation that a killed server was ${state} ends as ${event} and blocks no later fill`, async () => {
    const { project, sessionId, fill, eventNames } = await linked()
    const { id } = await server.database
      .selectFrom('vault_items')
      .innerJoin('vaults', 'vaults.id', 'vault_items.vault_id')
      .select('vault_items.id')
      .where('vaults.project_id', '=', project.id)
      .executeTakeFirstOrThrow()
    const now = server.clock.now()
    const lost = { id: `vop-${sessionId}` as never, item_id: id, session_id: sessionId, type: 'fill' as const }
    await server.database
      .insertInto('vault_operations')
      .values({ ...lost, state, held_until: new Date(now.getTime() + 60_000), created_at: now })
      .execute()
    assert.deepEqual(await eventNames(), ['item.created'])

    server.clock.advance(61)
    assert.equal((await fill()).status, 200)

    assert.deepEqual(await eventNames(), ['item.created', event, 'fill.started', 'fill.completed'])
  })
}

test('an interrupted operation has failed, or has an unknown outcome if values were sent', async () => {
  const { sessionId, project, eventNames } = await linked()
  const operations = new OperationStore(server.database)
  const { item } = await server.services.vaultItems.get({ projectId: project.id, vault: 'v', key: 'login' })
  const now = server.clock.now()
  const event = { name: 'fill.started', at: now } as const
  const begin = () =>
    operations.begin({
      itemId: item.id,
      sessionId,
      type: 'fill',
      now,
      heldUntil: new Date(now.getTime() + 1000),
      event,
    })

  const first = (await begin()) as VaultOperationId
  assert.equal(await begin(), undefined, 'one at a time')
  await operations.giveUp(item.id, first, now)
  assert.equal(await operations.beginWriting(first), false)
  const second = (await begin()) as VaultOperationId
  assert.equal(await operations.beginWriting(second), true)
  await operations.giveUp(item.id, second, now)
  await operations.giveUp(item.id, second, now)

  assert.deepEqual(await eventNames(), ['item.created', 'fill.started', 'fill.failed', 'fill.started', 'fill.unknown'])
})

test('an operation changes only to states that may follow', () => {
  assert.deepEqual(statesBefore('writing'), ['preparing'])
  assert.deepEqual(statesBefore('failed'), ['preparing', 'writing'])
  assert.deepEqual(statesBefore('preparing'), [])
  for (const ended of ['completed', 'failed', 'unknown'] as const) assert.deepEqual(operationTransitions[ended], [])
})

for (const [what, allowedDomains, pageUrl, origins, isAllowed] of [
  ['a page of the web', null, 'https://a.test/x', ['https://a.test'], true],
  ['an element of the same site', null, 'https://www.a.test/x', ['https://id.a.test'], true],
  ['an element of another site', null, 'https://a.test/', ['https://b.test'], false],
  ['another owner below a public suffix', null, 'https://a.github.io/', ['https://b.github.io'], false],
  ['an address', null, 'http://127.0.0.1:80/', ['http://127.0.0.1:80'], true],
  ['another address', null, 'http://10.0.0.1/', ['http://10.0.0.2'], false],
  ['an element that is not encrypted', ['a.test'], 'https://a.test/', ['http://a.test'], false],
  ['a file', null, 'file:///x', ['file://'], false],
  ['an extension', null, 'chrome-extension://x/y', ['chrome-extension://x'], false],
  ['a frame without an origin', ['a.test'], 'https://a.test/', ['null'], false],
  ['a domain below', ['a.test'], 'https://b.a.test/', ['https://c.a.test'], true],
  ['a domain that only ends so', ['a.test'], 'https://ba.test/', ['https://ba.test'], false],
  ['a domain in another script', ['bücher.test'], 'https://xn--bcher-kva.test/', ['https://xn--bcher-kva.test'], true],
] as const) {
  test(`a value may ${isAllowed ? '' : 'not '}go to ${what}`, () => {
    assert.equal(denialOf({ allowedDomains, pageUrl, origins }) === undefined, isAllowed)
  })
}

test('values replace nulls in the input of a tool', () => {
  const input = { user: { 'a/b': null, 'c~d': [1, null] }, other: 'x' }

  assert.deepEqual(bindValues(input, ['/user/a~1b', '/user/c~0d/1'], ['one', 'two']), {
    user: { 'a/b': 'one', 'c~d': [1, 'two'] },
    other: 'x',
  })
  assert.equal(input.user['a/b'], null, 'what was asked for stays as it is')
  for (const pointers of [
    ['/other'],
    ['/nothing'],
    ['/user/c~0d/7'],
    ['/user/c~0d/length'],
    ['/user/a~1b', '/user/a~1b'],
  ]) {
    assert.throws(() => bindValues(input, pointers, ['x', 'y']), /bindings\.\d\.input_path/)
  }
})

test('the response of a page does not contain the values that it received', () => {
  const texts = ['p"s ö', '123456']

  const clean = withoutTexts(
    { echo: 'is p"s ö!', url: `?q=${encodeURIComponent('p"s ö')}`, '123456': [123456, 'x', null, true] },
    texts,
  )

  assert.deepEqual(clean, { echo: 'is [hidden]!', url: '?q=[hidden]', '[hidden]': ['[hidden]', 'x', null, true] })
  assert.equal(withoutTexts(JSON.stringify({ text: 'p"s ö' }), texts), '{"text":"[hidden]"}')
})
