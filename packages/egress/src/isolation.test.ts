import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type EgressProcess, startEgressProcess } from './testing/egress-process.ts'
import { type Canary, createNetworks, type Networks, networksProblem, startCanary } from './testing/networks.ts'
import { NotConnected, type TestMachine, textOf } from './testing/test-machine.ts'

const ownPublicAddress = '45.0.0.1'
const ownPublicIPv6Address = '2a00:45::1'
const unlistedAddress = '45.1.0.1'

/** The guard takes these for public. Only the canary in the outside namespace answers on them. */
const publicAddresses = words('8.8.8.8 1.1.1.1:8080 [2606:4700::1111] [64:ff9b::8.8.8.8] public.test mixed.test')

const forbiddenAddresses = words(`
  127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.254 192.168.0.1 100.64.0.1 100.127.0.2
  169.254.169.254 169.254.170.2 168.63.129.16 0.0.0.0 0.0.0.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
  192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1
  [::1] [::] [fe80::1] [fd00::1] [fd00:ec2::254] [fc00::1] [fec0::1] [ff02::1] [2001:db8::1] [4000::1] [5000::1] [5000::2]
  [::ffff:127.0.0.1] [::ffff:10.0.0.1] [::ffff:a9fe:a9fe] [::127.0.0.1] [::10.0.0.1] [::ffff:0:10.0.0.1]
  [64:ff9b::10.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::169.254.169.254] [64:ff9b:1::10.0.0.1]
  [2002:0a00:0001::] [2002:7f00:0001::1] [2001:0:0a00:0001::]
  ${ownPublicAddress} [${ownPublicIPv6Address}] [64:ff9b::${ownPublicAddress}]
`)

const unusualSpellings = words(`
  0177.0.0.1 0x7f.0.0.1 0x7f000001 2130706433 017700000001 127.1 127.0.1 0x7F.0x0.0x0.0x1 0 0x0 00.0 127.0.0.1. 127.0.0.0x
  0xa.0.0.1 10.1 167772161 012.0.0.1 0xa9fea9fe 2852039166 169.254.43518 0251.0376.0251.0376 169.254.169.254.
  %31%32%37.0.0.1 %EF%BC%91%EF%BC%92%EF%BC%97.0.0.1 127%2E0%2E0%2E1 127%E3%80%820%E3%80%820%E3%80%821 %31%30.0.0.1
  [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::FFFF:7F00:1] [0:0:0:0:0:ffff:a9fe:a9fe] [::ffff:0a00:0001]
`)

const unreadable = words(`
  127.0.0.1.. 256.0.0.1 1.2.3.4.5 08.0.0.1 1.2.3.4294967296 4294967296 [fe80::1%25uplink] [fe80::1%uplink] [::1%lo]
  [127.0.0.1] [::1 ::1 127.0.0.1%00 127.0.0.1%20 127.0.0.1%0a user@127.0.0.1 127.0.0.1# a..b \u00ef\u00bc\u0091.0.0.1
`)

const names = {
  localhost: ['127.0.0.1', '::1'],
  'public.test': ['9.9.9.9'],
  'mixed.test': ['10.0.0.1', '::1', '9.9.9.10', '169.254.169.254'],
  'loopback.test': ['127.0.0.1'],
  'loopback6.test': ['::1'],
  'private.test': ['10.0.0.1', '192.168.0.1', 'fd00::1'],
  'metadata.test': ['169.254.169.254'],
  'mapped.test': ['::ffff:10.0.0.1'],
  'translated.test': ['64:ff9b::10.0.0.1'],
  'own.test': [ownPublicAddress],
}
const forbiddenNames = words(`
  localhost LOCALHOST. loopback.test loopback6.test private.test private.test. metadata.test mapped.test translated.test own.test
`)

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

suite('egress between networks of its own', { skip: networksProblem(), timeout: 30_000 }, () => {
  let networks: Networks
  let host: Canary
  let world: Canary
  let egress: EgressProcess
  let machine: TestMachine

  before(async () => {
    networks = await createNetworks({
      names,
      ownAddresses: [ownPublicAddress, `${ownPublicIPv6Address}/128`],
      unlistedAddresses: [unlistedAddress],
    })
    ;[host, world, egress] = await Promise.all([
      startCanary(networks.inHost, [80, 8080]),
      startCanary(networks.inWorld, [80, 8080]),
      startEgressProcess({ wrapper: networks.inHost }),
    ])
    machine = await egress.serve('brw_a')
  })

  after(async () => {
    await egress?.[Symbol.asyncDispose]()
    await host?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
    await networks?.[Symbol.asyncDispose]()
  })

  /** Connects to the destination and returns what it sends, or why the connection failed. */
  async function outcomeOf(destination: string): Promise<string> {
    const authority = /^\[.*\]$|^[^:]*$/.test(destination) ? `${destination}:80` : destination
    try {
      using connection = await machine.connect(authority)
      connection.socket.write('GET / HTTP/1.0\r\n\r\n')
      return (await textOf(connection.socket)).slice(-6)
    } catch (error) {
      if (error instanceof NotConnected) return error.kind
      throw error
    }
  }

  /** Returns everything that the canaries received so far. */
  async function reachedSoFar(): Promise<string[]> {
    await outcomeOf('11.11.11.11:8080')
    await world.untilReached('11.11.11.11 8080 said true')
    const reached = [...host.reached, ...world.reached.filter((entry) => !entry.startsWith('11.11.11.11'))]
    host.reached.length = 0
    world.reached.length = 0
    return reached
  }

  test('reaches public addresses, by name and by number, over IPv4 and IPv6', async () => {
    await egress.setPolicy({ allow: [], own_addresses: [] })

    for (const address of publicAddresses) assert.equal(await outcomeOf(address), 'canary', address)

    const reached = new Set((await reachedSoFar()).filter((entry) => !entry.includes('said')))
    assert.deepEqual(
      reached,
      new Set(['8.8.8.8 80', '1.1.1.1 8080', '2606:4700::1111 80', '64:ff9b::808:808 80', '9.9.9.9 80', '9.9.9.10 80']),
    )
  })

  test('reaches none of the addresses that are not public, however they are written', async () => {
    await egress.setPolicy({ allow: [], own_addresses: [] })

    for (const address of [...forbiddenAddresses, ...unusualSpellings, ...forbiddenNames]) {
      assert.equal(await outcomeOf(address), 'refused', address)
      assert.equal(await outcomeOf(`${address}:8080`), 'refused', address)
    }

    assert.deepEqual(await reachedSoFar(), [])
  })

  test('sends no resolver a name that it could take for an address', async () => {
    await egress.setPolicy({ allow: [], own_addresses: [] })

    for (const address of unreadable)
      assert.match(await outcomeOf(address), /^(bad-request|refused)$/, JSON.stringify(address))

    assert.deepEqual(await reachedSoFar(), [])
  })

  test('reports an unknown name', async () => {
    assert.equal(await outcomeOf('unknown.test:443'), 'name-not-found')
  })

  test('sends nothing to unlisted addresses of the host', async () => {
    await egress.setPolicy({ allow: [], own_addresses: [] })

    const refused = await outcomeOf(unlistedAddress)
    await egress.setPolicy({ allow: ['0.0.0.0/0'], own_addresses: ['[::]:8080'] })
    const ofBerth = await outcomeOf(`${unlistedAddress}:8080`)
    const allowed = await outcomeOf(`${unlistedAddress}:80`)

    assert.deepEqual([refused, ofBerth, allowed], ['refused', 'refused', 'canary'])
    const heard = (await reachedSoFar()).filter((entry) => entry.includes('said'))
    assert.deepEqual(heard, [`${unlistedAddress} 80 said true`])
  })

  test('permits exactly what an entry names', async () => {
    await egress.setPolicy({
      allow: ['10.0.0.0/8', '127.0.0.1:80', 'own.test', '[fd00::1]', 'metadata.test:80'],
      own_addresses: [],
    })

    const open = words(
      '10.0.0.1 0xa.1 127.0.0.1 2130706433 loopback.test own.test own.test:8080 [fd00::1] metadata.test private.test',
    )
    const closed = words(
      `172.16.0.1 127.0.0.1:8080 127.0.0.2 [::1] ${ownPublicAddress} [fd00::2] 169.254.169.254 metadata.test:8080`,
    )
    for (const destination of open) assert.equal(await outcomeOf(destination), 'canary', destination)
    for (const destination of closed) assert.equal(await outcomeOf(destination), 'refused', destination)
    assert.equal(await outcomeOf('[64:ff9b::10.0.0.1]'), 'refused')
  })

  test("keeps berth's port closed on every address of the host, unless an entry names it", async () => {
    const own_addresses = ['0.0.0.0:8080']
    const ofHost = words(
      `127.0.0.1 127.8.8.8 [::1] 0x7f.1 localhost own.test ${ownPublicAddress} [${ownPublicIPv6Address}] 100.127.0.1 [5000::1]`,
    )

    await egress.setPolicy({ allow: ['0.0.0.0/0', '::/0', 'own.test', 'localhost', '127.0.0.1'], own_addresses })
    for (const address of ofHost) {
      assert.equal(await outcomeOf(`${address}:80`), 'canary', address)
      assert.equal(await outcomeOf(`${address}:8080`), 'refused', address)
    }
    for (const unspecified of ['0.0.0.0', '[::]', '0']) {
      assert.equal(await outcomeOf(`${unspecified}:80`), 'refused', unspecified)
      assert.equal(await outcomeOf(`${unspecified}:8080`), 'refused', unspecified)
    }
    assert.equal(await outcomeOf('10.0.0.1:8080'), 'canary')

    await egress.setPolicy({ allow: ['own.test:8080'], own_addresses })
    assert.equal(await outcomeOf('own.test:8080'), 'canary')
    assert.equal(await outcomeOf(`${ownPublicAddress}:8080`), 'refused')
  })
})
