import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { MachineId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open({
  reserve: { headless: 1, headful: 1, 'headless-profile': 1 },
  limits: { maxSessions: 3 },
})
server.host.capabilities = { ...server.host.capabilities, hasGpu: true }
after(() => server.close())

/** Refills the reserve, which first waits until no create has been in progress for a moment. */
async function refilled(): Promise<readonly MachineId[]> {
  await until(async () => {
    await server.services.reserve.refill()
    const { headless, headful, 'headless-profile': forProfiles } = server.services.reserve.sizes
    return headless === 1 && headful === 1 && forProfiles === 1
  })
  return waiting()
}

async function waiting(): Promise<readonly MachineId[]> {
  const rows = await server.database.selectFrom('reserve_machines').select('machine_id').orderBy('kind').execute()
  return rows.map(({ machine_id }) => machine_id)
}

async function machineOf({ session_id }: Browser): Promise<MachineId> {
  return (await server.row(session_id)).machine_id
}

/** The fields of a record that do not depend on the individual session. */
function lasting({ session_id, created_at, cdp_ws_url, webdriver_ws_url, base_url, usage, ...others }: Browser) {
  assert.ok(session_id && created_at && cdp_ws_url && webdriver_ws_url && base_url && usage)
  const { browser_live_view_url: _liveView, ...rest } = others as typeof others & { browser_live_view_url?: string }
  return rest
}

test('the machines of the reserve are frozen, have a low priority, and do not count as sessions', async () => {
  const project = await server.project()

  const machines = await refilled()

  assert.equal(machines.length, 3)
  for (const id of machines) {
    assert.ok(server.host.machines.get(id)?.agent.isFrozen)
    assert.ok(server.host.lowPriority.has(id))
  }
  assert.deepEqual((await project.call<unknown[]>('GET', '/browsers?status=all')).body, [])
  assert.equal(server.services.machines.list().length, 0)
  for (let count = 0; count < 3; count++) await project.session({ headless: true })
})

test('a create claims a machine of its kind, and its record equals that of a cold start', async () => {
  const project = await server.project()
  const request = { headless: true, tags: { a: 'b' }, timeout_seconds: 90, viewport: { width: 800, height: 600 } }
  const [, headless] = await refilled()

  const claimed = await project.session(request)
  const cold = await project.session(request)

  assert.equal(await machineOf(claimed), headless)
  assert.notEqual(await machineOf(cold), headless)
  assert.deepEqual(lasting(claimed), lasting(cold))
  const agent = server.host.agentOf(claimed.session_id as SessionId)
  assert.equal(agent.isFrozen, false)
  assert.deepEqual(agent.viewports, [{ width: 800, height: 600, refresh_rate: 60 }])
  assert.equal(server.host.lowPriority.has(headless as MachineId), false)
  assert.equal(server.egress.routes.get(headless as MachineId)?.session_id, claimed.session_id)
})

test('a claimed session is idle from its creation, however long its machine has waited', async () => {
  const project = await server.project()
  server.host.firstState = { idle_since: server.clock.now().getTime() }
  await refilled()
  server.host.firstState = {}
  server.clock.advance(3_000)

  const { session_id, created_at } = await project.session({ headless: true, timeout_seconds: 60 })
  await server.reap()

  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
  assert.equal((await server.row(session_id)).idle_since?.toISOString(), created_at)
})

test('a create without settings sends no requests to its agent or to egress before the response', async () => {
  const project = await server.project()
  const [, headless] = await refilled()
  const asked: string[] = []
  server.egress.onOpen = async ({ session_id }) => void asked.push(`a route of ${session_id}`)
  const agent = server.host.machines.get(headless as MachineId)?.agent
  assert.ok(agent)
  agent.onResize = async () => void asked.push('a size')

  const session = await project.session({ headless: true })

  server.egress.onOpen = async () => {}
  assert.equal(await machineOf(session), headless)
  assert.deepEqual(asked, [])
  assert.equal(agent.isFrozen, false)
  assert.equal(server.egress.routes.get(headless as MachineId)?.session_id, headless)
  await until(async () => !server.host.lowPriority.has(headless as MachineId))
})

test('a create from the reserve is reported to webhooks once, whatever happens to its machine', async () => {
  const project = await server.project()
  const webhook = { url: 'https://receiver.example', event_types: ['session.created'] }
  await project.call('POST', '/webhooks', webhook)
  const told = async () => {
    const deliveries = server.database
      .selectFrom('webhook_deliveries')
      .innerJoin('webhooks', 'webhooks.id', 'webhook_id')
    const rows = await deliveries.select('payload').where('project_id', '=', project.id).execute()
    return rows.map(({ payload }) => JSON.parse(payload).data.session_id)
  }
  const [, headless] = await refilled()
  const claimed = await project.session({ headless: true, name: 'claimed' })
  const [, spoilt] = await refilled()
  await defects['has ended']?.(spoilt as MachineId)

  const replaced = await project.session({ headless: true, name: 'replaced' })

  assert.equal(await machineOf(claimed), headless)
  assert.notEqual(await machineOf(replaced), spoilt)
  assert.deepEqual((await told()).toSorted(), [claimed.session_id, replaced.session_id].toSorted())
})

test('a create whose machine of the reserve was unusable does not count as a reserve hit', async () => {
  const project = await server.project()
  const outcomes: boolean[] = []
  const note = (_project: unknown, { isFromReserve }: { isFromReserve: boolean }) => void outcomes.push(isFromReserve)
  server.services.events.on('createEnded', note)
  const [, first] = await refilled()
  await defects['does not take its settings']?.(first as MachineId)
  await project.session({ headless: true, viewport: otherViewport })
  const [, second] = await refilled()
  await failures['has ended']?.(second as MachineId)
  await project.session({ headless: true })
  await refilled()

  await project.session({ headless: true, viewport: otherViewport })

  server.services.events.off('createEnded', note)
  assert.deepEqual(outcomes, [false, false, true])
})

test('after a kill right after the claim, the next server raises the priority of the session', async () => {
  const project = await server.project()
  await refilled()
  const { session_id } = await project.session({ headless: true })
  const machine = (await server.row(session_id)).machine_id
  await until(async () => !server.host.lowPriority.has(machine))
  server.host.lowPriority.add(machine)

  await server.crash()
  await server.start()

  await until(async () => !server.host.lowPriority.has(machine))
})

test('the reaper does not touch a machine that a create is claiming', async () => {
  const project = await server.project()
  const [, headless] = await refilled()
  const before = server.services.machines.list().length
  let creating: Promise<Browser> | undefined

  // The row of the machine is locked, so that the session has the machine but no row yet when the reaper runs.
  await server.database.transaction().execute(async (database) => {
    await database
      .selectFrom('reserve_machines')
      .select('machine_id')
      .where('machine_id', '=', headless as MachineId)
      .forUpdate()
      .execute()
    creating = project.session({ headless: true })
    await until(async () => server.services.machines.list().length > before)
    await server.reap()
  })

  const session = await creating
  assert.ok(session)
  assert.equal(await machineOf(session), headless)
  assert.ok(server.host.has(headless as MachineId))
  await server.reap()
  assert.equal((await project.call('GET', `/browsers/${session.session_id}`)).status, 200)
})

test('a session with a profile claims a machine that has not launched its browser', async () => {
  const project = await server.project()
  await project.call('POST', '/profiles', { name: 'kept' })
  const [, headless] = await refilled()
  const first = await project.session({ headless: true, profile: { name: 'kept', save_changes: true } })
  await project.call('DELETE', `/browsers/${first.session_id}`)
  assert.equal(await machineOf(first), headless, 'a profile without a state is no reason to wait')
  const [, , forProfiles] = await refilled()

  const viewport = { width: 800, height: 600 }
  const profile = { name: 'kept' }
  const session = await project.session({ headless: true, profile, viewport, start_url: 'about:blank#start' })

  assert.equal(await machineOf(session), forProfiles)
  assert.deepEqual(server.host.agentOf(session.session_id as SessionId).viewports, [{ ...viewport, refresh_rate: 60 }])
  const agent = server.host.agentOf(session.session_id as SessionId)
  assert.deepEqual(agent.loaded, [{ state: 'the state of the fake browser', tabs: 'blank' }])
  assert.deepEqual(agent.navigations, ['about:blank#start'])
})

const chrome_policy = { BookmarkBarEnabled: true }

test('a session with policies claims a machine that has not launched its browser, which is launched with them', async () => {
  const project = await server.project()
  const [, , unlaunched] = await refilled()

  const session = await project.session({ headless: true, stealth: true, chrome_policy })

  assert.equal(await machineOf(session), unlaunched)
  assert.deepEqual(server.host.policies.get(unlaunched as MachineId), chrome_policy)
  const { configurations } = server.host.agentOf(session.session_id as SessionId)
  assert.deepEqual(
    configurations.map(({ stealth, launch, has_new_policies }) => ({ stealth, launch, has_new_policies })),
    [
      { stealth: undefined, launch: undefined, has_new_policies: undefined },
      { stealth: true, launch: true, has_new_policies: true },
    ],
    'after its rehearsal',
  )
})

test('the browser of a stealth session with a profile is launched with both', async () => {
  const project = await server.project()
  await project.call('POST', '/profiles', { name: 'kept' })
  await refilled()
  const profile = { name: 'kept' }
  const first = await project.session({ headless: true, profile: { ...profile, save_changes: true } })
  await project.call('DELETE', `/browsers/${first.session_id}`)
  const [, , unlaunched] = await refilled()

  const session = await project.session({ headless: true, stealth: true, profile, chrome_policy })

  assert.equal(await machineOf(session), unlaunched)
  const agent = server.host.agentOf(session.session_id as SessionId)
  assert.equal(agent.loaded.length, 1)
  const { stealth, has_new_policies } = agent.configurations.at(-1) ?? {}
  assert.deepEqual({ stealth, has_new_policies }, { stealth: true, has_new_policies: true })
  assert.equal(
    agent.configurations.some(({ launch }) => launch),
    false,
    'the profile lets it go ahead',
  )
  assert.deepEqual(server.host.policies.get(unlaunched as MachineId), chrome_policy)
})

const coldRequests: Readonly<Record<string, { readonly request: object; readonly miss: string }>> = {
  'a GPU': { request: { gpu: true }, miss: 'gpu' },
  'more memory': { request: { headless: true, memory: '2GiB' }, miss: 'memory' },
  'a kind that is not kept': { request: { headless: true, stealth: true }, miss: 'empty' },
}

for (const [what, { request, miss }] of Object.entries(coldRequests)) {
  test(`a create with ${what} does not use the reserve`, async () => {
    const project = await server.project()
    const machines = await refilled()
    const missesOf = () => (server.services.reserve.misses as ReadonlyMap<string, number>).get(miss) ?? 0
    const before = missesOf()

    const session = await project.session(request)

    assert.ok(!machines.includes(await machineOf(session)))
    assert.deepEqual(await waiting(), machines)
    assert.equal(missesOf(), before + 1)
  })
}

test('concurrent creates get different machines', async () => {
  const project = await server.project()
  const [, headless] = await refilled()

  const sessions = await Promise.all(Array.from({ length: 3 }, () => project.session({ headless: true })))

  const machines = await Promise.all(sessions.map(machineOf))
  assert.equal(new Set(machines).size, 3)
  assert.equal(machines.filter((id) => id === headless).length, 1)
})

test('a rejected create does not use the reserve', async () => {
  const project = await server.project()
  await project.session({ headless: true, name: 'taken' })
  const machines = await refilled()

  const { status } = await project.call('POST', '/browsers', { headless: true, name: 'taken' })

  assert.equal(status, 409)
  assert.deepEqual(await waiting(), machines)
  assert.ok(server.host.machines.get(machines[1] as MachineId)?.agent.isFrozen)
  assert.equal(await machineOf(await project.session({ headless: true })), machines[1])
})

const otherViewport = { width: 800, height: 600 }

const defects: Readonly<Record<string, (machine: MachineId) => Promise<unknown>>> = {
  'has ended': async (id) => {
    const machine = server.host.machines.get(id)
    machine?.agent.kill()
    await machine?.ended
  },
  'does not take its settings': async (id) => {
    const agent = server.host.machines.get(id)?.agent
    if (agent) agent.onResize = () => Promise.reject(new Error('no size'))
  },
  'ends while it is given its settings': async (id) => {
    const agent = server.host.machines.get(id)?.agent
    if (agent) agent.onResize = () => agent.kill()
  },
}

for (const [what, spoil] of Object.entries(defects)) {
  test(`a create that finds a machine that ${what} gets another one`, async () => {
    const project = await server.project()
    const [, headless] = await refilled()
    await spoil(headless as MachineId)

    const session = await project.session({ headless: true, viewport: otherViewport })

    assert.notEqual(await machineOf(session), headless)
    assert.equal(server.host.has(headless as MachineId), false)
    assert.equal((await project.call('GET', `/browsers/${session.session_id}`)).status, 200)
  })
}

const failures: Readonly<Record<string, (machine: MachineId) => Promise<unknown>>> = {
  'has ended': async (id) => defects['has ended']?.(id),
  'cannot be thawed': async (id) => {
    const agent = server.host.machines.get(id)?.agent
    if (agent) agent.thaw = () => assert.fail('no thaw')
  },
  'gets no route': async (id) => {
    server.egress.onOpen = async () => {
      server.egress.onOpen = async () => {}
      throw new Error(`no route for ${id}`)
    }
  },
}

for (const [what, spoil] of Object.entries(failures)) {
  test(`a create without settings that finds a machine that ${what} gets another one`, async () => {
    const project = await server.project()
    const [, headless] = await refilled()
    await spoil(headless as MachineId)

    const session = await project.session({ headless: true, name: 'kept', disable_default_proxy: true })

    assert.notEqual(await machineOf(session), headless)
    assert.equal(server.host.has(headless as MachineId), false)
    assert.equal((await project.call<Browser>('GET', '/browsers/kept')).body.session_id, session.session_id)
    assert.equal(server.egress.routes.get(await machineOf(session))?.session_id, session.session_id)
    assert.equal(server.egress.routes.has(headless as MachineId), false)
  })
}

test('of concurrent creates for the last slot one succeeds, and the others do not use the reserve', async () => {
  const project = await server.project()
  for (let count = 0; count < 2; count++) await project.session({ headless: true })
  const machines = await refilled()
  const before = server.services.machines.list().length

  const answers = await Promise.all(
    Array.from({ length: 4 }, () => project.call<Browser>('POST', '/browsers', { headless: true })),
  )

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 429, 429, 429])
  const [served] = answers.filter(({ status }) => status === 200)
  assert.ok(served)
  await until(async () => (await waiting()).length >= machines.length - 1)
  const others = (await waiting()).filter((id) => machines.includes(id))
  for (const id of others) assert.equal(server.host.machines.get(id)?.agent.isFrozen, true)
  for (const id of others) assert.equal(server.egress.routes.get(id)?.session_id, id)
  assert.equal(server.services.machines.list().length, before + 1)
})

test('a waiting machine that ends, or that runs older programs, is replaced', async () => {
  const [headful, headless] = await refilled()
  await defects['has ended']?.(headful as MachineId)
  await until(async () => (await refilled())[0] !== headful)
  assert.equal((await waiting())[1], headless)

  server.host.programVersion = '2'

  await until(async () => (await refilled())[1] !== headless)
  for (const id of [headful, headless]) assert.equal(server.host.has(id as MachineId), false)
})

test('the reserve is not filled while a create is in progress', async () => {
  const project = await server.project()
  await refilled()
  await project.session({ headless: true })

  const create = server.services.reserve.noteCreate('headless')
  await delay(700)
  await server.services.reserve.refill()
  assert.equal(server.services.reserve.sizes.headless, 0)
  create[Symbol.dispose]()

  await refilled()
})

test('a create without room gets that of the reserve', async () => {
  const project = await server.project()
  const machines = await refilled()
  server.host.failNextStart(new BerthError('capacity_exhausted', { reason: 'no memory.' }))

  const session = await project.session({ gpu: true })

  assert.equal((await project.call('GET', `/browsers/${session.session_id}`)).status, 200)
  for (const id of machines) assert.equal(server.host.has(id), false)
  assert.deepEqual(await waiting(), [])
  await server.crash()
  await server.start()
})

const crashes: Readonly<Record<string, (project: TestProject) => Promise<unknown>>> = {
  'while its reserve waits': async () => {},
  'while it gives a claimed machine its settings': async (project) => {
    const [, headless] = await waiting()
    const agent = server.host.machines.get(headless as MachineId)?.agent
    const asked = Promise.withResolvers<void>()
    if (agent) {
      agent.onResize = () => {
        asked.resolve()
        return new Promise(() => {})
      }
    }
    void project.call('POST', '/browsers', { headless: true, viewport: otherViewport }).catch(() => {})
    await asked.promise
  },
  'after it has claimed a machine': async () => {
    await server.database.deleteFrom('reserve_machines').execute()
  },
}

for (const [moment, advance] of Object.entries(crashes)) {
  test(`when the server is killed ${moment}, nothing is left of the reserve`, async () => {
    const project = await server.project()
    const machines = await refilled()
    await advance(project)

    await server.crash()
    await server.start()

    await until(async () => machines.every((id) => !server.host.has(id)))
    assert.deepEqual(await waiting(), [])
    await until(async () => (await project.call<unknown[]>('GET', '/browsers?status=all')).body.length === 0)
  })
}

test('nothing is left of the reserve of a stopped server', async () => {
  const machines = await refilled()

  await server.services.reserve.close()

  for (const id of machines) assert.equal(server.host.has(id), false)
  assert.deepEqual(await waiting(), [])
})

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await isTrue())) {
    assert.ok(performance.now() < deadline, 'it does not come true')
    await delay(20)
  }
}
