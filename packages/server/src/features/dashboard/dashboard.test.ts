import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Overview } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { eventDataOf } from '@berth/runtime/http/event-stream.ts'
import { sql } from 'kysely'
import { TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const own = { 'x-berth-dashboard': '1' }
const maxFirstViewBytes = 250 * 1024

function post(body: object, headers: Record<string, string> = own): Promise<Response> {
  return fetch(`${server.url}/dashboard/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function signIn(body: object): Promise<string> {
  const response = await post(body)
  assert.equal(response.status, 204)
  return (response.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
}

function ask(cookie: string, path: string, init: RequestInit & { headers?: Record<string, string> } = {}) {
  return fetch(server.url + path, { ...init, headers: { cookie, ...own, ...init.headers } })
}

test('a key is exchanged for a cookie that only the dashboard can use', async () => {
  const project = await server.project()
  await project.session({ name: 'seen' })

  const response = await post({ api_key: project.key })
  const cookie = response.headers.get('set-cookie') ?? ''
  const [pair = ''] = cookie.split(';', 1)

  assert.match(cookie, /^berth_dashboard_\d+=[\w-]{43}; Path=\/dashboard; Max-Age=604800; HttpOnly; SameSite=Strict$/)
  const [session] = (await (await ask(pair, '/dashboard/api/browsers')).json()) as [{ name: string }]
  assert.equal(session.name, 'seen')
  for (const [path, headers] of [
    ['/dashboard/api/browsers', { 'x-berth-dashboard': undefined }],
    ['/dashboard/api/browsers', { ...own, 'sec-fetch-site': 'cross-site' }],
    ['/dashboard/api/browsers', { ...own, 'sec-fetch-site': 'same-site' }],
    ['/browsers', own],
    ['//dashboard/api/browsers', own],
  ] as const) {
    const given = Object.fromEntries(Object.entries({ cookie: pair, ...headers }).filter(([, value]) => value))
    const refused = await fetch(server.url + path, { headers: given as Record<string, string> })
    assert.equal(refused.status, 401, `${path} ${JSON.stringify(headers)}`)
  }
})

test('a preflight of another origin gives no permission to send the cookie', async () => {
  const response = await fetch(`${server.url}/dashboard/api/browsers`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://evil.test',
      'access-control-request-method': 'DELETE',
      'access-control-request-headers': 'x-berth-dashboard',
    },
  })

  assert.equal(response.headers.get('access-control-allow-credentials'), null)
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
})

test('a session of the dashboard ends by signing out, with its key, and after its time', async () => {
  const project = await server.project()
  const other = await project.call<{ id: string; key: string }>('POST', '/org/api_keys', { name: 'other' })
  const [first, second, third] = await Promise.all([
    signIn({ api_key: project.key }),
    signIn({ api_key: other.body.key }),
    signIn({ api_key: project.key }),
  ])
  const statusOf = async (cookie: string) => (await ask(cookie, '/dashboard/api/browsers')).status
  assert.deepEqual(await Promise.all([first, second, third].map(statusOf)), [200, 200, 200])

  const left = await ask(first, '/dashboard/api/dashboard/session', { method: 'DELETE' })
  assert.equal(left.status, 204)
  assert.match(left.headers.get('set-cookie') ?? '', /Max-Age=0/)
  await project.call('DELETE', `/org/api_keys/${other.body.id}`)
  assert.deepEqual(await Promise.all([first, second, third].map(statusOf)), [401, 401, 200])

  server.clock.advance(8 * 24 * 60 * 60)
  assert.equal(await statusOf(third), 401)
})

test('a link signs in once, also with concurrent uses', async () => {
  const project = await server.project()
  const code = (await server.services.signIns.createLink(project.key)) ?? ''

  const statuses = await Promise.all([post({ code }), post({ code })])
  const late = (await server.services.signIns.createLink(project.key)) ?? ''
  server.clock.advance(25 * 60 * 60)

  assert.deepEqual(statuses.map(({ status }) => status).sort(), [204, 401])
  assert.equal((await post({ code: late })).status, 401)
})

test('wrong sign-ins are counted, and other pages cannot sign in at all', async () => {
  const project = await server.project()
  server.clock.advance(120)
  assert.equal((await post({ api_key: project.key }, {})).status, 401)
  assert.equal((await post({})).status, 400)

  const statuses: number[] = []
  for (let count = 0; count < 11; count++) statuses.push((await post({ api_key: `sk_${count}` })).status)

  assert.deepEqual(statuses, [...Array(10).fill(401), 429])
  assert.equal((await post({ api_key: project.key })).status, 429)
  server.clock.advance(61)
  assert.equal((await post({ api_key: project.key })).status, 204)
})

test('the changes of a project are reported, and those of another are not', async () => {
  const [project, other] = [await server.project(), await server.project()]
  const cookie = await signIn({ api_key: project.key })
  const leaving = new AbortController()
  const stream = await ask(cookie, '/dashboard/api/dashboard/changes', { signal: leaving.signal })
  const lines = stream.body?.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>
  const told: string[] = []
  const followed = (async () => {
    for await (const text of lines) {
      const events = text.split('\n').flatMap((line) => eventDataOf(line) ?? [])
      told.push(...events.flatMap((data) => JSON.parse(data).sessions))
      if (told.filter((id) => id === told[0]).length >= 2) return
    }
  })()

  const foreign = await other.session()
  const session = await project.session()
  await project.call('DELETE', `/browsers/${session.session_id}`)
  await followed
  leaving.abort()

  assert.ok(told.every((id) => id === session.session_id))
  assert.ok(!told.includes(foreign.session_id))
})

test('the overview counts the sessions of the project by hour, and shows the free resources only to the operator', async () => {
  const project = await server.project()
  const cookie = await signIn({ api_key: project.key })
  const session = await project.session()
  server.clock.advance(90)
  await project.call('DELETE', `/browsers/${session.session_id}`)

  const overview = await (await ask(cookie, '/dashboard/api/dashboard/overview')).json()

  const hours = (overview as { hours: { started: number; sessions: number; browser_seconds: number }[] }).hours
  const sum = (field: 'started' | 'browser_seconds') => hours.reduce((total, hour) => total + hour[field], 0)
  assert.equal(hours.length, 24)
  assert.deepEqual([sum('started'), sum('browser_seconds')], [1, 90])
  assert.equal((overview as { room: unknown }).room, null)
})

test('the overview counts the results of creates, also after restarts', async () => {
  const project = await server.project()
  const cookie = await signIn({ api_key: project.key })
  const { session_id } = await project.session()
  const refused = await project.call('POST', '/browsers', { proxy_id: 'nothing' })
  await server.services.createStatistics.flush()
  await project.session()
  await server.services.createStatistics.flush()

  const overview = (await (await ask(cookie, '/dashboard/api/dashboard/overview')).json()) as Overview

  const last = overview.hours.findLast(({ create_p50_ms }) => create_p50_ms !== null)
  assert.ok(refused.status >= 400 && refused.status < 500)
  assert.equal(last?.errors, 0)
  assert.ok(last.create_p50_ms !== null && last.create_p50_ms > 0)
  assert.ok(last.create_p99_ms !== null && last.create_p99_ms >= last.create_p50_ms)
  const { rows } = await sql<{ count: number }>`
    select (select sum(times) from unnest(durations) times)::int as count from create_hours
    where project_id = (select project_id from sessions where id = ${session_id})`.execute(server.database)
  assert.deepEqual(rows, [{ count: 2 }])
  assert.equal(overview.findings, null)
})

test('a thumbnail is taken at intervals, however many clients request it', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  const picture = async () =>
    await fetch(`${server.url}/browsers/${session_id}/thumbnail`, {
      headers: { authorization: `Bearer ${project.key}` },
    }).then((response) => response.text())

  const first = await Promise.all([picture(), picture(), picture()])
  const soon = await picture()
  server.clock.advance(6)

  assert.deepEqual([...first, soon], Array(4).fill('picture 1'))
  assert.equal(await picture(), 'picture 2')
})

test('a thumbnail of another project, or of an unknown session, is not found', async () => {
  const [project, other] = [await server.project(), await server.project()]
  const cookie = await signIn({ api_key: project.key })
  const session = await other.session()

  for (const id of [session.session_id, 'nobody']) {
    assert.equal((await ask(cookie, `/dashboard/api/browsers/${id}/thumbnail`)).status, 404)
  }
})

test('the page has a strict policy, and its first view is small', async () => {
  const response = await fetch(`${server.url}/dashboard/sessions/any`)
  const html = await response.text()
  const policy = response.headers.get('content-security-policy') ?? ''
  const scripts = [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+\.js)"/g)].map(([, path]) => path ?? '')
  const files = await Promise.all(scripts.map(async (path) => fetch(server.url + path)))
  const sizes = await Promise.all(files.map(async (file) => gzipSync(Buffer.from(await file.arrayBuffer())).length))
  const total = sizes.reduce((sum, size) => sum + size, 0)

  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /script-src [\w.:]+\/dashboard\/assets\/ 'sha256-[^']+';/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.ok(scripts.length > 0 && total < maxFirstViewBytes, `${total} bytes`)
  assert.ok(files.every(({ headers }) => headers.get('cache-control')?.includes('immutable')))
  assert.equal((await fetch(`${server.url}/dashboard/assets/other.js`)).status, 404)
})
