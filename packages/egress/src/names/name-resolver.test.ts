import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { hostUsing, startNameServer } from '../testing/name-server.ts'
import { startEgress } from '../testing/started-egress.ts'
import type { NameSource } from './host-files.ts'
import { NameResolver } from './name-resolver.ts'

function resolverOf(source: NameSource, clock = systemClock): NameResolver & Disposable {
  const resolver = new NameResolver({ source, clock })
  return Object.assign(resolver, { [Symbol.dispose]: () => resolver.close() })
}

test('resolves every name that the host resolves', async () => {
  await using server = await startNameServer({
    'plain.test': ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
    'only-six.test': ['2001:db8::6'],
    'under_score.a-_b.test': ['192.0.2.3'],
    'intranet.corp.test': ['192.0.2.4'],
    'wiki.lab.test': ['192.0.2.5'],
    'deep.name': ['192.0.2.6'],
    'deep.name.corp.test': ['192.0.2.7'],
    'only.relative.corp.test': ['192.0.2.8'],
    'xn--bcher-kva.test': ['192.0.2.9'],
    'large.test': { truncated: ['192.0.2.10'] },
    tld: ['192.0.2.11'],
  })
  using names = resolverOf(
    hostUsing([server.authority], {
      hosts: { 'known.test': ['10.1.1.1', 'fd00::1'], printer: ['10.1.1.2'] },
      search: ['corp.test', 'lab.test'],
    }),
  )
  const addresses: Record<string, string> = {
    'plain.test': '192.0.2.1 192.0.2.2 | 2001:db8::1',
    'PLAIN.test.': '192.0.2.1 192.0.2.2 | 2001:db8::1',
    'only-six.test': ' | 2001:db8::6',
    'under_score.a-_b.test': '192.0.2.3 | ',
    intranet: '192.0.2.4 | ',
    'intranet.': 'name-not-found | name-not-found',
    wiki: '192.0.2.5 | ',
    'deep.name': '192.0.2.6 | ',
    'only.relative': '192.0.2.8 | ',
    'only.relative.': 'name-not-found | name-not-found',
    'xn--bcher-kva.test': '192.0.2.9 | ',
    'large.test': '192.0.2.10 | ',
    'known.test': '10.1.1.1 | fd00::1',
    printer: '10.1.1.2 | ',
    tld: '192.0.2.11 | ',
    localhost: '127.0.0.1 | ::1',
    'a.localhost': '127.0.0.1 | ::1',
    'nowhere.test': 'name-not-found | name-not-found',
  }

  const found: Record<string, string> = {}
  for (const name of Object.keys(addresses)) {
    const answers = await Promise.all([names.lookup(name, 4), names.lookup(name, 6)])
    found[name] = answers
      .map((answer) => ('addresses' in answer ? answer.addresses.join(' ') : answer.failed))
      .join(' | ')
  }

  assert.deepEqual(found, addresses)
  assert.ok(server.queries.includes('tcp large.test A'))
  assert.ok(!server.queries.some((question) => question.includes('localhost')))
})

test('queries names with enough dots first, and the search domains first otherwise', async () => {
  await using server = await startNameServer({})
  const orderOf = async (name: string, ndots: number) => {
    using names = resolverOf(hostUsing([server.authority], { search: ['corp.test'], ndots }))
    const before = server.queries.length
    await names.lookup(name, 4)
    return server.queries.slice(before)
  }

  assert.deepEqual(await orderOf('a.b', 1), ['a.b A', 'a.b.corp.test A'])
  assert.deepEqual(await orderOf('a.b', 2), ['a.b.corp.test A', 'a.b A'])
  assert.deepEqual(await orderOf('a.b.', 2), ['a.b A'])
})

test('shares concurrent queries, and queries again only after an answer has expired', async () => {
  await using server = await startNameServer({ 'one.test': ['192.0.2.1'] })
  let now = 0
  using names = resolverOf(hostUsing([server.authority]), { now: () => new Date(now) })
  const ask = async (name: string) => {
    const before = server.queries.length
    await Promise.all(Array.from({ length: 50 }, () => names.lookup(name, 4)))
    return server.queries.length - before
  }

  const first = await ask('one.test')
  now += 59_000
  const later = await ask('one.test')
  const left = await names.lookup('one.test', 4)
  now += 2_000
  const over = await ask('one.test')
  const unknown = await ask('unknown.test')
  const stillUnknown = await ask('unknown.test')
  now += 6_000
  const askedAgain = await ask('unknown.test')

  assert.deepEqual([first, later, over, unknown, stillUnknown, askedAgain], [1, 0, 1, 1, 0, 1])
  assert.deepEqual(left, { addresses: ['192.0.2.1'], ttl: 1 })
})

test('tries another server when one fails, and reports when none responds', async () => {
  await using broken = await startNameServer({ 'one.test': 'fails', 'none.test': 'fails' })
  await using works = await startNameServer({ 'one.test': ['192.0.2.1'], 'none.test': 'fails' })
  using names = resolverOf(hostUsing(['not an address', broken.authority, works.authority]))

  assert.deepEqual(await names.lookup('one.test', 4), { addresses: ['192.0.2.1'], ttl: 60 })
  assert.deepEqual(await names.lookup('none.test', 4), { failed: 'refused' })
  await assert.rejects(names.addresses('none.test'), { kind: 'name-unanswered' })
  await assert.rejects(names.addresses('unknown.test'), { kind: 'name-not-found' })
})

test('waits for a slow name, also if the server is usually fast', async () => {
  const quick = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`quick-${index}.test`, ['192.0.2.1']]))
  await using server = await startNameServer({
    ...quick,
    'slow.test': { slowly: ['192.0.2.2'], milliseconds: 3_000 },
  })
  using names = resolverOf(hostUsing([server.authority]))
  for (const name of Object.keys(quick)) await names.lookup(name, 4)

  assert.deepEqual(await names.lookup('slow.test', 4), { addresses: ['192.0.2.2'], ttl: 60 })
})

test('does not wait for an address family without a response', async () => {
  await using server = await startNameServer({ 'four.test': ['192.0.2.1'] })
  const asked = hostUsing([server.authority])
  using names = resolverOf(asked)
  // Only queries for IPv6 addresses get no response.
  const silent = await startNameServer({ 'four.test': 'silent' })
  const lookup = names.lookup.bind(names)
  using other = resolverOf(hostUsing([silent.authority]))
  names.lookup = (name, family) => (family === 4 ? lookup(name, family) : other.lookup(name, family))

  const startedAt = performance.now()
  const addresses = await names.addresses('four.test')
  await silent[Symbol.asyncDispose]()

  assert.deepEqual(addresses, ['192.0.2.1'])
  // A query without a response is given up after ten seconds.
  assert.ok(performance.now() - startedAt < 8_000)
})

test('unanswered names delay no other name, in the same session or another', async () => {
  const silent = Object.fromEntries(
    Array.from({ length: 300 }, (_, index) => [`silent-${index}.test`, 'silent'] as const),
  )
  await using server = await startNameServer({ ...silent, 'good.test': ['192.0.2.1'], 'other.test': ['192.0.2.2'] })
  const source = hostUsing([server.authority])
  const sessions = await Promise.all(
    Array.from({ length: 5 }, () => startEgress({ names: new NameResolver({ source, clock: systemClock }) })),
  )
  const [last] = sessions
  for (const { machine } of sessions) for (const name of Object.keys(silent)) void machine.lookup(name).catch(() => {})
  while (server.queries.length < 5 * 300) await delay(5)

  const startedAt = performance.now()
  const answer = await last?.machine.lookup('good.test')
  const milliseconds = performance.now() - startedAt
  for (const session of sessions) await session[Symbol.asyncDispose]()

  assert.deepEqual(answer && 'addresses' in answer && answer.addresses, ['192.0.2.1'])
  assert.ok(milliseconds < 8_000, `took ${milliseconds} ms`)
})

test('a lookup without a free slot waits for one', { timeout: 60_000 }, async () => {
  const silent = Array.from({ length: 1_024 + 2_048 }, (_, index) => `silent-${index}.test`)
  await using server = await startNameServer({
    ...Object.fromEntries(silent.map((name) => [name, 'silent'] as const)),
    'good.test': ['192.0.2.1'],
  })
  using names = resolverOf(hostUsing([server.authority]))
  const unanswered = silent.map((name) => names.lookup(`${name}.`, 4))

  const refused = await names.lookup('good.test', 4)
  for (const name of silent) server.records[name] = 'unknown'
  await Promise.all(unanswered)

  assert.deepEqual(refused, { failed: 'timeout' })
  assert.deepEqual(await names.lookup('good.test', 4), { addresses: ['192.0.2.1'], ttl: 60 })
})

test('fails a lookup without a response within ten seconds', { timeout: 30_000 }, async () => {
  await using server = await startNameServer({ 'silent.test': 'silent' })
  using names = resolverOf(hostUsing([server.authority]))

  const startedAt = performance.now()
  const answer = await names.lookup('silent.test', 4)
  const seconds = (performance.now() - startedAt) / 1_000

  assert.deepEqual(answer, { failed: 'timeout' })
  assert.ok(seconds > 9 && seconds < 25, `took ${seconds} s`)
})
