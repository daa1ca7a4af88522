import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const create = (project: TestProject, body: object) =>
  project.call<Browser>('POST', '/browsers', { headless: true, ...body })
const update = (project: TestProject, { session_id }: Browser, body: object) =>
  project.call<Browser>('PATCH', `/browsers/${session_id}`, body)
const messageOf = ({ body }: { readonly body: unknown }) => (body as { message: string }).message
const settingsOf = async (session: Browser) => server.services.egress.settingsOf(await server.row(session.session_id))

test('allowed hosts are returned in canonical form, and apply from the first request', async () => {
  const project = await server.project()
  const written = ['Example.com', '*.Example.COM.', 'example.com', '8.8.8.8', '[2001:4860:4860:0::8888]', ' 8.8.4.0/24']
  let atStart: readonly string[] | undefined
  server.egress.onOpen = async (settings) => {
    atStart = settings.allowed_hosts
  }

  const { status, body } = await create(project, {
    network: { allowed_hosts: written },
    start_url: 'https://www.example.com/',
  })
  server.egress.onOpen = async () => {}

  const told = ['example.com', '*.example.com', '8.8.8.8', '[2001:4860:4860::8888]', '8.8.4.0/24']
  assert.equal(status, 200)
  assert.deepEqual(body.network, { allowed_hosts: told })
  assert.deepEqual(atStart, told)
  assert.deepEqual((await settingsOf(body)).allowed_hosts, told)
})

const refused: Record<string, readonly [body: object, message: RegExp]> = {
  'an empty list': [{ network: { allowed_hosts: [] } }, /^network\.allowed_hosts: /],
  '101 entries': [
    { network: { allowed_hosts: Array.from({ length: 101 }, (_none, index) => `h${index}.test`) } },
    /^network\.allowed_hosts: .*100/,
  ],
  'no list': [{ network: { allowed_hosts: 'a.test' } }, /^network\.allowed_hosts: /],
  'an overlap with a private host': [
    { network: { allowed_hosts: ['a.corp.test'], private_hosts: ['*.corp.test'] } },
    /^network\.allowed_hosts\.0: overlaps/,
  ],
  'a start page that is not allowed': [
    { network: { allowed_hosts: ['a.test'] }, start_url: 'https://b.test/' },
    /^start_url: must be allowed/,
  ],
  'a location': [{ location: { timezone: 'Europe/Berlin' } }, /^location: is not supported/],
  'a border that is not known': [{ network: { blocked_hosts: ['a.test'] } }, /blocked_hosts/],
  ...Object.fromEntries(
    [
      ...['https://a.test', 'a.test:443', 'a.test/x', '*', '*.test', '*.co.uk', '*.github.io', 'a.*.test', ''],
      ...[
        '10.0.0.1',
        '127.0.0.1',
        '169.254.169.254',
        '0.0.0.0/0',
        '8.0.0.0/6',
        '10.0.0.0/8',
        '8.8.8.0/23x',
        '8.8.8.1/24',
      ],
      ...[
        '[::1]',
        '[fd00::1]',
        '2001:4860::8888',
        '2000::/3',
        '[2001:4860::]/32',
        '0x8.8.8.8',
        '8.8.8.8:53',
        '2001:db8::/32',
      ],
    ].map((entry) => [
      `the entry ${JSON.stringify(entry)}`,
      [{ network: { allowed_hosts: ['good.test', entry] } }, /^network\.allowed_hosts\.1: /],
    ]),
  ),
}
for (const [what, [body, message]] of Object.entries(refused)) {
  test(`refuses ${what}, and names it`, async () => {
    const project = await server.project()

    const answer = await create(project, body)

    assert.equal(answer.status, 400)
    assert.match(messageOf(answer), message)
  })
}

test('a list of allowed hosts can be replaced and removed, but not added later', async () => {
  const project = await server.project()
  const { body: session } = await create(project, {
    network: { allowed_hosts: ['a.test'], private_hosts: ['inner.test'] },
  })
  const { body: open } = await create(project, { network: { private_hosts: ['inner.test'] } })
  const change = (body: object) => update(project, session, body)

  const overlap = await change({ network: { allowed_hosts: ['inner.test'] } })
  const unreachable = await change({ start_url: 'https://b.test/' })
  const elsewhere = await change({ network: { allowed_hosts: ['b.test'] }, start_url: 'https://a.test/' })
  const unsupported = await change({
    network: { allowed_hosts: ['b.test'], mutation_id: 'm', expected_allowlist_revision: 'r' },
  })
  const moved = await change({ location: { locale: 'de' } })
  const unchanged = await settingsOf(session)
  const replaced = await change({
    network: { allowed_hosts: ['B.test'] },
    start_url: 'https://b.test/',
    name: 'renamed',
  })
  const inForce = server.egress.settings.get(session.session_id as SessionId)
  const same = await change({ network: {} })
  const removed = await change({ network: { allowed_hosts: null } })
  const again = await change({ network: { allowed_hosts: ['b.test'] } })
  const never = await update(project, open, { network: { allowed_hosts: ['b.test'] } })

  const answers = [overlap, unreachable, elsewhere, unsupported, moved, again, never]
  assert.deepEqual(
    answers.map(({ status }) => status),
    answers.map(() => 400),
  )
  assert.match(
    answers.map(messageOf).join('\n'),
    new RegExp(
      `
network.allowed_hosts.0: overlaps .*
start_url: must be allowed .*
start_url: must be allowed .*
network.expected_allowlist_revision: is not supported .*
location: is not supported .*
network.allowed_hosts: can only be changed .*
network.allowed_hosts: can only be changed .*`.trim(),
    ),
  )
  assert.deepEqual(unchanged.allowed_hosts, ['a.test'])
  assert.deepEqual(replaced.body.network, { private_hosts: ['inner.test'], allowed_hosts: ['b.test'] })
  assert.deepEqual([inForce?.allowed_hosts, same.body.network], [['b.test'], replaced.body.network])
  assert.deepEqual(removed.body.network, { private_hosts: ['inner.test'] })
  assert.deepEqual((await settingsOf(session)).allowed_hosts, undefined)
})

test('a change of proxy and list is one change, and reverted as one', async () => {
  const project = await server.project()
  const { body: session } = await create(project, { network: { allowed_hosts: ['a.test'] } })

  const changed = await update(project, session, {
    proxy: { mode: 'direct' },
    network: { allowed_hosts: ['b.test'] },
  })
  server.egress.nextFailure = new Error('egress is away')
  const failed = await update(project, session, { network: { allowed_hosts: ['c.test'] } })

  assert.deepEqual([changed.body.proxy, changed.body.network], [{ mode: 'direct' }, { allowed_hosts: ['b.test'] }])
  assert.ok(failed.status >= 500)
  assert.deepEqual((await settingsOf(session)).allowed_hosts, ['b.test'])
})
