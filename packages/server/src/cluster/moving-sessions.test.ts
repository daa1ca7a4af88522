import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { after, beforeEach, test } from 'node:test'
import type { Invocation } from '@berth/contract/apps/app.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { MachineId, SessionId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import WebSocket from 'ws'
import type { TestServer } from '../testing/server-test.ts'
import { SharedServers } from '../testing/shared-servers.ts'
import { TestApps } from '../testing/test-apps.ts'

const servers = await SharedServers.open({ sharesMachines: true })
after(() => servers.close())
const { first, second } = servers
const { database } = first

/** Both servers have run for a while. */
beforeEach(async () => {
  await first.tell()
  await second.tell()
  await changeServers('true', { up_since: "now() - interval '1 hour'" })
})

async function changeServers(condition: string, columns: Record<string, string>): Promise<void> {
  const changes = Object.entries(columns).map(([name, value]) => `${name} = ${value}`)
  await sql.raw(`update servers set ${changes.join(', ')} where ${condition}`).execute(database)
}

const killed = (id: string) => changeServers(`id = '${id}'`, { seen_at: "now() - interval '9 seconds'" })

async function sessionOn(server: TestServer) {
  const project = await server.project()
  const session = await project.session()
  const id = session.session_id as SessionId
  return { project, session, id, machineId: (await server.row(id)).machine_id }
}

/** The address of the session for a client of the other server. */
function at(server: TestServer, address: string): string {
  const url = new URL(address)
  url.port = String(server.port)
  return url.href
}

/** The sessions of the first server move when the second has looked one up. */
function moveAtFirstLookup() {
  const { store } = second.services
  const { resolve } = store
  const restore = () => void Object.assign(store, { resolve })
  const moves = { lookups: 0, [Symbol.dispose]: restore }
  store.resolve = async (...args) => {
    const found = await resolve.apply(store, args)
    moves.lookups += 1
    if (moves.lookups === 1) await first.services.handovers?.handOverAll()
    return found
  }
  return moves
}

async function request(address: string, { cdp_ws_url }: Browser, method: string, body: string) {
  const url = new URL(address)
  url.searchParams.set('jwt', new URL(cdp_ws_url).searchParams.get('jwt') ?? '')
  const response = await fetch(url, { method, ...(body !== '' && { body }) })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

async function closed(socket: WebSocket): Promise<number> {
  const [code] = (await once(socket, 'close')) as [number]
  return code
}

async function connect(server: TestServer, address: string): Promise<WebSocket> {
  const socket = new WebSocket(at(server, address))
  await once(socket, 'open')
  return socket
}

test('another server takes over the sessions of a killed one, with their machines', async () => {
  const { project, session, id, machineId } = await sessionOn(first)
  await first.crash()
  await killed('test')

  await second.reap()
  const socket = await connect(second, session.cdp_ws_url)
  const changed = await project.on(second).call('PATCH', `/browsers/${id}`, { name: 'moved' })

  const row = await second.row(id)
  assert.deepEqual([row.driver_id, row.machine_id, row.state], ['second', machineId, 'active'])
  assert.deepEqual([changed.status, changed.body.name], [200, 'moved'])
  socket.terminate()
  assert.equal((await project.on(second).call('DELETE', `/browsers/${id}`)).status, 204)
  assert.equal(first.host.machines.has(machineId), false)
  await first.start()
})

/** The agent of the session. The fake machine keeps it, whichever server serves it. */
function echo(machineId: MachineId, server: TestServer): void {
  const { agent } = server.host.machines.get(machineId) ?? {}
  if (agent) agent.operate = (request, response) => void request.pipe(response.writeHead(200))
}

const megabytes = 'x'.repeat(3_000_000)
const requests = [
  ['GET', '/fs/file_info?path=/tmp', undefined],
  ['PUT', '/fs/write_file?path=/tmp/a', 'a small body'],
  ['PUT', '/fs/write_file?path=/tmp/a', megabytes],
  ['POST', '/process/exec', '{"command":"true"}'],
] as const

for (const [method, path, body = ''] of requests) {
  const what = `a ${method} with ${body.length} bytes`

  test(`${what} for a session of a lost server waits until another one has adopted it`, async () => {
    const { session, id, machineId } = await sessionOn(first)
    await first.crash()
    echo(machineId, first)

    const answer = request(at(second, `${session.base_url}${path}`), session, method, body)
    await killed('test')
    await second.services.handovers?.moveFromGone()

    const { status, text } = await answer
    assert.deepEqual([status, text.length], [200, body.length])
    assert.equal((await second.row(id)).driver_id, 'second')
    await first.start()
  })

  test(`${what} reaches the new server when its session moves meanwhile`, async () => {
    const { session, id, machineId } = await sessionOn(first)
    echo(machineId, first)
    await first.services.heartbeat.drain()
    using moves = moveAtFirstLookup()

    const { status, text } = await request(at(second, `${session.base_url}${path}`), session, method, body)

    assert.deepEqual([status, text.length], [200, body.length])
    assert.ok(moves.lookups > 1)
    assert.ok(second.services.machines.has(id))
  })
}

for (const [method, path, expected] of [
  ['POST', '/process/exec', [502, 'operation_interrupted', undefined]],
  ['PUT', '/fs/write_file?path=/tmp/a', [503, 'session_moving', '1']],
] as const) {
  test(`a ${method} whose server is killed while it reads the body is answered with ${expected[1]}`, async () => {
    const { session, id, machineId } = await sessionOn(first)
    const begun = Promise.withResolvers<void>()
    const { agent } = first.host.machines.get(machineId) ?? {}
    if (agent) agent.operate = (incoming) => void incoming.once('data', () => begun.resolve())

    const answer = request(at(second, `${session.base_url}${path}`), session, method, '{"command":"true"}')
    await begun.promise
    await first.crash()

    const { status, text, headers } = await answer
    assert.deepEqual([status, JSON.parse(text).code, headers.get('retry-after') ?? undefined], expected)
    await first.start()
    await first.services.terminator.end(id)
  })
}

test('a client that waits for 100 Continue gets it from the server that reads the body, or an error', async () => {
  const { session } = await sessionOn(first)
  const ask = async (server: TestServer, token: string) => {
    const path = `${new URL(`${session.base_url}/process/exec`).pathname}${token}`
    const headers = { expect: '100-continue', 'content-length': '2' }
    const asking = httpRequest({ port: server.port, method: 'POST', path, headers, agent: false })
    const seen: string[] = []
    asking.on('continue', () => {
      seen.push('continue')
      asking.end('{}')
    })
    asking.flushHeaders()
    const [answer] = await once(asking, 'response')
    answer.resume()
    asking.destroy()
    return [...seen, answer.statusCode]
  }
  const { search } = new URL(session.cdp_ws_url)

  // The fake agent does not have this command.
  assert.deepEqual(await ask(first, search), ['continue', 404])
  assert.deepEqual(await ask(second, search), ['continue', 404])
})

const seenAgo = (seconds: number) => ({ seen_at: `now() - interval '${seconds} seconds'` })
for (const [why, owner, witness] of [
  ['it was heard of a moment ago', seenAgo(6), seenAgo(0)],
  ['the one that looks has only just come', seenAgo(9), { up_since: 'now()' }],
  ['the one that looks was away itself', seenAgo(9), seenAgo(6)],
] as const) {
  test(`a server keeps its sessions when ${why}`, async () => {
    const { id } = await sessionOn(first)
    await changeServers("id = 'test'", owner)
    await changeServers("id = 'second'", witness)

    await second.reap()

    assert.equal((await second.row(id)).driver_id, 'test')
  })
}

test('several servers share the sessions, and each session has one server', async () => {
  const ids = []
  for (let count = 0; count < 4; count += 1) ids.push((await sessionOn(first)).id)
  const third = await first.sibling('third')
  await changeServers("id = 'third'", { up_since: "now() - interval '1 hour'" })
  await killed('test')

  const moves = [second, third, second, third].map((server) => server.services.handovers?.moveFromGone())
  await Promise.all(moves)
  await Promise.all([second.reap(), third.reap()])

  const owners = await Promise.all(ids.map(async (id) => (await second.row(id)).driver_id))
  assert.deepEqual([...new Set(owners)].toSorted(), ['second', 'third'])
  for (const [index, id] of ids.entries()) {
    const owner = owners[index] === 'second' ? second : third
    assert.ok(owner.services.machines.has(id))
    await owner.services.terminator.end(id)
  }
  await third.close()
  await database.deleteFrom('servers').where('id', '=', 'third').execute()
})

test('a server that counted as gone detaches from its sessions, and ends none of them', async () => {
  const { session, id, machineId } = await sessionOn(first)
  const socket = await connect(first, session.cdp_ws_url)
  const end = closed(socket)
  await killed('test')
  await second.reap()

  assert.equal(await first.services.terminator.end(id, 'machine_ended'), false)
  await first.reap()

  await end
  assert.deepEqual([first.services.machines.has(id), second.services.machines.has(id)], [false, true])
  assert.ok(first.host.machines.has(machineId))
  assert.equal((await second.row(id)).state, 'active')
  const again = await connect(first, session.cdp_ws_url)
  again.terminate()
})

test('a session that was starting on a lost server is removed with its machine', async () => {
  const { id, machineId } = await sessionOn(first)
  await first.crash()
  await database.updateTable('sessions').set({ state: 'starting' }).where('id', '=', id).execute()
  await killed('test')

  await second.reap()

  await assert.rejects(second.row(id))
  assert.equal(first.host.machines.has(machineId), false)
  await first.start()
})

test('the end of a session is completed by another server', async () => {
  const { id, machineId } = await sessionOn(first)
  await first.crash()
  await database.updateTable('sessions').set({ state: 'ending', deleted_at: new Date() }).where('id', '=', id).execute()
  await killed('test')

  await second.reap()
  await second.reap()

  assert.equal((await second.row(id)).state, 'deleted')
  assert.equal(first.host.machines.has(machineId), false)
  await first.start()
})

test('a session ends when its machine is lost together with its server', async () => {
  const { id, machineId } = await sessionOn(first)
  await first.crash()
  const { agent } = first.host.machines.get(machineId) ?? {}
  agent?.kill()
  await agent?.ended
  first.host.machines.delete(machineId)
  await killed('test')

  await second.reap()

  const row = await second.row(id)
  assert.deepEqual([row.state, row.end_reason], ['deleted', 'machine_ended'])
  await first.start()
})

test('a stopping server hands its sessions over, and open connections of clients continue', async () => {
  const { project, session, id } = await sessionOn(first)
  const socket = await connect(first, session.cdp_ws_url)

  await first.services.heartbeat.drain()
  const given = await first.services.handovers?.handOverAll()
  await first.reap()

  assert.equal(given, 1)
  assert.equal((await second.row(id)).driver_id, 'second')
  const answer = once(socket, 'message')
  socket.send('still there')
  assert.equal(String((await answer)[0]), 'still there')
  // The first request adopts it, on whichever server it arrives.
  assert.equal((await project.call('PATCH', `/browsers/${id}`, { name: 'given' })).status, 200)
  assert.ok(second.services.machines.has(id))
  const end = closed(socket)
  first.services.relay.restart()
  assert.equal(await end, 1012)
  await second.services.terminator.end(id)
})

type Moment = 'resolve' | 'updateHere' | 'beginEndHere'

/** The sessions of the first server move right before its first call of this method of the store. */
function moveBefore(moment: Moment) {
  const { store, handovers } = first.services
  const ask = store[moment] as (...args: unknown[]) => Promise<unknown>
  let isMoved = false
  const restore = () => void Object.assign(store, { [moment]: ask })
  const moveAndAsk = async (...args: unknown[]) => {
    if (!isMoved) {
      isMoved = true
      await handovers?.handOverAll()
    }
    return ask.apply(store, args)
  }
  Object.assign(store, { [moment]: moveAndAsk })
  return { [Symbol.dispose]: restore }
}

for (const [method, moment, expected] of [
  ['PATCH', 'resolve', 200],
  ['PATCH', 'updateHere', 200],
  ['DELETE', 'resolve', 204],
  ['DELETE', 'beginEndHere', 204],
] as const) {
  test(`a ${method} whose session moves just before ${moment} can be repeated, and succeeds then`, async () => {
    const { project, id, machineId } = await sessionOn(first)
    const body = method === 'PATCH' ? { name: `moved-${moment}`, tags: { at: moment } } : undefined
    const change = () => project.call<Browser & { code?: string }>(method, `/browsers/${id}`, body)
    await first.services.heartbeat.drain()
    using _move = moveBefore(moment)

    const refused = await change()
    const before = await second.row(id)
    const done = await change()

    const { headers } = refused
    assert.deepEqual(
      [refused.status, refused.body.code, headers.get('x-should-retry'), headers.get('retry-after')],
      [503, 'session_moving', 'true', '1'],
    )
    assert.deepEqual([before.driver_id, before.state, before.name], ['second', 'active', null])
    assert.equal(done.status, expected)
    if (method === 'PATCH') {
      assert.deepEqual([done.body.name, (await second.row(id)).name], [body?.name, body?.name])
      await second.services.terminator.end(id)
    }
    assert.deepEqual([(await second.row(id)).state, first.host.machines.has(machineId)], ['deleted', false])
  })
}

test('sessions stay on their server when there is no other one', async () => {
  const { id } = await sessionOn(first)
  await killed('second')
  await first.services.heartbeat.drain()

  assert.equal(await first.services.handovers?.handOverAll(), 0)
  assert.ok(first.services.machines.has(id))
})

test('sessions of a stopped server move immediately', async () => {
  const { id } = await sessionOn(first)
  await changeServers("id = 'second'", { up_since: 'now()' })
  await first.services.servers.leave('test')

  await second.reap()

  assert.equal((await second.row(id)).driver_id, 'second')
  await second.services.terminator.end(id)
})

test('machines without a session are removed when the server that started them is lost', async () => {
  const { id, machineId } = await sessionOn(first)
  const stray = (await sessionOn(first)).id
  const { machine_id: strayMachine } = await first.row(stray)
  await database.deleteFrom('sessions').where('id', '=', stray).execute()

  await second.services.lostSessions.end()
  const before = first.host.machines.has(strayMachine)
  await first.crash()
  await changeServers("id = 'test'", { seen_at: "now() - interval '2 minutes'" })
  await second.services.lostSessions.end()

  assert.deepEqual([before, first.host.machines.has(strayMachine)], [true, false])
  assert.ok(first.host.machines.has(machineId), 'it has a session')
  assert.equal((await second.row(id)).state, 'active')
  await first.start()
})

test('invocations of a lost server fail, and those of others continue', async () => {
  const apps = new TestApps(first)
  const project = await first.project()
  const deployment = await apps.serving(project, 'app')
  const lost = await apps.running(project, deployment.id, 'app', { server_id: 'lost' })
  const other = await apps.running(project, deployment.id, 'app', { server_id: 'test' })
  await sql`insert into servers (id, driver, up_since, seen_at)
    values ('lost', 'fake', now() - interval '1 hour', now() - interval '2 minutes')`.execute(database)

  await second.services.lostSessions.end()
  await second.services.invocationRunner.failOverdue()

  const { body } = await project.call<Invocation[]>('GET', '/invocations')
  const statuses = new Map(body.map(({ id, status }) => [id, status]))
  assert.deepEqual([statuses.get(lost.id), statuses.get(other.id)], ['failed', 'running'])
})

test('a connection that is being opened when the session moves reaches the new server', async () => {
  const { session, id } = await sessionOn(first)
  await first.services.heartbeat.drain()
  using moves = moveAtFirstLookup()

  const socket = await connect(second, session.cdp_ws_url)

  assert.ok(moves.lookups > 1)
  assert.ok(second.services.machines.has(id))
  socket.terminate()
})
