import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LookupAnswer } from '@berth/contract/egress/machine-protocol.ts'
import { decode, encode, type Packet } from 'dns-packet'
import fc from 'fast-check'
import { NameServer } from './name-server.ts'
import { NameTable } from './name-table.ts'

type Answer = LookupAnswer extends infer Each ? (Each extends { id: number } ? Omit<Each, 'id'> : never) : never

const answers: Record<string, Answer> = {
  'real.test 4': { addresses: ['192.0.2.1', '192.0.2.2'], ttl: 7 },
  'real.test 6': { addresses: ['2001:db8::1'], ttl: 8 },
  'ipv4.test 6': { addresses: [], ttl: 9 },
  'named.test 4': { by_name: true },
  'named.test 6': { by_name: true },
  'absent.test 4': { failed: 'name-not-found' },
  'slow.test 4': { failed: 'timeout' },
  'forbidden.test 4': { failed: 'refused' },
  'large.test 4': { addresses: Array.from({ length: 60 }, (_, index) => `192.0.2.${index}`), ttl: 1 },
}

function server(): NameServer {
  const lookup = async (name: string, family: 4 | 6) => {
    const answer = answers[`${name.toLowerCase()} ${family}`]
    if (!answer) throw new Error('egress has gone')
    return { id: 1, ...answer } as LookupAnswer
  }
  return new NameServer({ egress: { lookup }, names: new NameTable(), onLookup: () => {} })
}

async function ask(name: string, type: string, changes: Partial<Packet> = {}, asked = server()) {
  const query = { type: 'query', id: 4711, flags: 0x0100, questions: [{ name, type }], ...changes } as Packet
  const bytes = await asked.answerDatagram(encode(query))
  const answer = decode(Buffer.from(bytes ?? [])) as unknown as Packet & { rcode: string; flag_tc: boolean }
  assert.equal(answer.id, 4711)
  assert.deepEqual(
    answer.questions?.map((question) => question.name),
    [name],
  )
  const data = (answer.answers ?? []).map((record) => ('data' in record ? String(record.data) : ''))
  return {
    code: answer.rcode,
    data,
    ttl: (answer.answers?.[0] as { ttl?: number })?.ttl,
    isCut: answer.flag_tc,
    answer,
  }
}

test('answers every type of query as name servers do', async () => {
  const table: readonly (readonly [name: string, type: string, code: string, data: readonly string[]])[] = [
    ['real.test', 'A', 'NOERROR', ['192.0.2.1', '192.0.2.2']],
    ['ReAl.TeSt', 'A', 'NOERROR', ['192.0.2.1', '192.0.2.2']],
    ['real.test', 'AAAA', 'NOERROR', ['2001:db8::1']],
    ['ipv4.test', 'AAAA', 'NOERROR', []],
    ['named.test', 'A', 'NOERROR', ['198.18.0.1']],
    ['named.test', 'AAAA', 'NOERROR', []],
    ['named.test', 'UNKNOWN_65', 'NOERROR', []],
    ['named.test', 'UNKNOWN_64', 'NOERROR', []],
    ['absent.test', 'A', 'NXDOMAIN', []],
    ['slow.test', 'A', 'SERVFAIL', []],
    ['forbidden.test', 'A', 'REFUSED', []],
    ['unknown-to-the-test.test', 'A', 'SERVFAIL', []],
    ['real.test', 'MX', 'NOTIMP', []],
  ]

  for (const [name, type, code, data] of table) {
    const answer = await ask(name, type)
    assert.deepEqual([answer.code, answer.data], [code, data], `${name} ${type}`)
  }
  assert.equal((await ask('real.test', 'A')).ttl, 7)
  const two = [
    { name: 'real.test', type: 'A' },
    { name: 'named.test', type: 'A' },
  ] as Packet['questions']
  assert.equal((await server().answerDatagram(encode({ type: 'query', id: 1, questions: two ?? [] })))?.[3], 0x84)
})

test('truncates an answer that is too large for the client', async () => {
  const extension = (udpPayloadSize: number) => ({
    additionals: [
      { type: 'OPT', name: '.', udpPayloadSize, flags: 0, options: [] },
    ] as unknown as Packet['additionals'] & object,
  })

  const plain = await ask('large.test', 'A')
  const small = await ask('large.test', 'A', extension(600))
  const large = await ask('large.test', 'A', extension(4_096))

  assert.deepEqual([plain.isCut, plain.data.length], [true, 0])
  assert.deepEqual([small.isCut, small.data.length], [true, 0])
  assert.deepEqual([large.isCut, large.data.length], [false, 60])
  assert.deepEqual(
    large.answer.additionals?.map(({ type }) => type),
    ['OPT'],
  )
  assert.deepEqual(plain.answer.additionals, [])
})

test('ignores malformed queries', async () => {
  const asked = server()
  const answer = encode({ type: 'response', id: 1, questions: [] })
  const question = encode({ type: 'query', id: 1, questions: [{ name: 'real.test', type: 'A' }] })

  assert.equal(await asked.answerDatagram(Buffer.from('no question')), undefined)
  assert.equal(await asked.answerDatagram(answer), undefined)
  await fc.assert(
    fc.asyncProperty(fc.nat(question.length - 1), fc.nat(255), async (offset, value) => {
      const changed = Buffer.from(question)
      changed[offset] = value
      await asked.answerDatagram(changed)
    }),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 100 }),
      async (bytes) => void (await asked.answerDatagram(Buffer.from(bytes))),
    ),
  )
})
