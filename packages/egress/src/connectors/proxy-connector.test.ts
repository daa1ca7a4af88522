import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startHttpServer, startTcpServer, unusedPort } from '../testing/loopback-server.ts'
import { proxyAt, startFakeProxy, startSocksProxy, through } from '../testing/proxy-server.ts'
import { directly, startEgress } from '../testing/started-egress.ts'
import { closeOf, type TestMachine, textOf } from '../testing/test-machine.ts'

const credentials = { username: 'us-er', password: 'p@ss:w%rd/é' }
const authorization = `Basic ${Buffer.from('us-er:p@ss:w%rd/é').toString('base64')}`

/** Opens a connection that does not use HTTP, and returns how it was closed. It must end without data. */
async function brokenBy(machine: TestMachine, destination: string): Promise<string> {
  const connection = await machine.connect(destination)
  connection.socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, ...Buffer.alloc(32)]))
  const how = await machine.closed(connection)
  return `${await textOf(connection.socket).catch(() => '')}${how}`
}

test('tunnels everything through an HTTP proxy, and sends the credentials at once', async () => {
  await using proxy = await startFakeProxy('exit')
  await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port, credentials) })

  const page = await egress.machine.fetch('http://Page.test:8080/a%2Fb?c')
  using tunnel = await egress.machine.connect('secure.test:443')
  tunnel.socket.write('GET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')

  assert.equal(page.body, 'exit tunnels /a%2Fb?c')
  assert.match(await textOf(tunnel.socket), /exit tunnels \/in$/)
  assert.deepEqual(tunnel.opened, { type: 'connected' })
  assert.deepEqual(proxy.requests, [
    `CONNECT page.test:8080 ${authorization}`,
    `CONNECT secure.test:443 ${authorization}`,
  ])
})

test('tunnels everything through a SOCKS5 proxy, which resolves names', async () => {
  await using proxy = await startSocksProxy(credentials)
  await using egress = await startEgress({
    allow: ['127.0.0.1'],
    settings: through(proxy.port, { protocol: 'socks5', ...credentials }),
  })

  const page = await egress.machine.fetch('http://page.test/a')
  await egress.change(through(proxy.port, { protocol: 'socks5', username: 'us-er', password: 'wrong' }))
  const refused = await egress.machine.fetch('http://page.test/a')

  assert.equal(page.body, 'socks page.test:80 /a')
  assert.deepEqual([refused.status, refused.headers['x-kernel-proxy-error']], [502, 'provider_rejected'])
})

test('reports an unreachable proxy, and never connects directly', async () => {
  await using canary = await startHttpServer((_request, response) => response.end('reached'))
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(await unusedPort()) })

  const page = await egress.machine.fetch(`http://${canary.authority}/`)
  const secure = await brokenBy(egress.machine, canary.authority)

  assert.deepEqual([page.status, page.headers['x-kernel-proxy-error'], page.body], [502, 'provider_unreachable', ''])
  assert.equal(secure, 'reset')
  assert.equal(canary.connections(), 0)
  const failures = egress.machine.messages.filter(({ type }) => type === 'proxy_failed')
  const event = { type: 'proxy_failed', code: 'provider_unreachable', host: '127.0.0.1', port: canary.port }
  assert.deepEqual(failures, [event, event])
})

const refusals = { 407: 'provider_rejected', 502: 'upstream_connect_failed', 504: 'upstream_timeout' }
for (const [status, code] of Object.entries(refusals)) {
  test(`treats ${status} as a response of the proxy, which the machine never sees`, async () => {
    await using proxy = await startFakeProxy('exit', { connectStatus: Number(status) })
    await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })

    const page = await egress.machine.fetch('http://page.test/')
    const secure = await brokenBy(egress.machine, 'page.test:443')

    assert.deepEqual([page.status, page.headers['x-kernel-proxy-error'], secure], [502, code, 'reset'])
    assert.deepEqual(proxy.requests, ['CONNECT page.test:80', 'CONNECT page.test:443'])
    await proxy.untilAbandoned()
  })
}

for (const connectStatus of [400, 403, 405, 501, 0]) {
  test(`sends requests whole to a proxy that answers CONNECT with ${connectStatus || 'nothing'}`, async () => {
    await using proxy = await startFakeProxy('exit', { connectStatus })
    await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port, credentials) })

    const page = await egress.machine.fetch('http://page.test:81/a%2Fb?c', {
      method: 'POST',
      headers: { 'Proxy-Authorization': 'Basic of-the-client', 'X-Two': ' as it is' },
      body: 'a body',
    })
    const secure = await brokenBy(egress.machine, 'page.test:443')

    assert.deepEqual([page.status, page.body, secure], [200, 'exit', 'reset'])
    assert.deepEqual(proxy.requests, [
      `CONNECT page.test:81 ${authorization}`,
      `POST http://page.test:81/a%2Fb?c ${authorization} a body`,
      `CONNECT page.test:443 ${authorization}`,
    ])
    const codes = egress.machine.messages.flatMap((message) => (message.type === 'proxy_failed' ? [message.port] : []))
    assert.deepEqual(codes, [443])
  })
}

test('sends every request of a connection to its destination, whatever its host is', async () => {
  await using proxy = await startFakeProxy('exit', { connectStatus: 405 })
  await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })
  const { socket } = await egress.machine.connect('page.test:80')

  socket.write(
    'GET /1 HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n' +
      'POST /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n' +
      'PUT /3 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nde' +
      'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
  const text = await textOf(socket)

  assert.equal(text.match(/exit/g)?.length, 4)
  assert.deepEqual(proxy.requests.slice(1).toSorted(), [
    'GET http://page.test/1',
    'OPTIONS http://page.test',
    'POST http://page.test/2 abc',
    'PUT http://page.test/3 de',
  ])
})

const refusedRequests = {
  'TRACE / HTTP/1.1\r\nMax-Forwards: 0\r\n\r\n': 405,
  'trace / HTTP/1.1\r\n\r\n': undefined,
  'GET http://elsewhere.test/ HTTP/1.1\r\n\r\n': 400,
  'CONNECT elsewhere.test:443 HTTP/1.1\r\n\r\n': 400,
  'GET / HTTP/1.1\r\nfolded: a\r\n TRACE\r\n\r\n': 400,
  'POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n': 400,
  'POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n': 400,
  'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n': 400,
}
for (const [request, status] of Object.entries(refusedRequests)) {
  test(`does not give the password to a proxy that could be made to reveal it: ${JSON.stringify(request)}`, async () => {
    await using proxy = await startFakeProxy('exit', { connectStatus: 405 })
    await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port, credentials) })
    const { socket } = await egress.machine.connect('page.test:80')

    socket.write(request)
    const answer = await textOf(socket).catch(() => '')

    assert.equal(Number(answer.slice(9, 12)) || undefined, status)
    assert.equal(proxy.requests.filter((asked) => !asked.startsWith('CONNECT page')).length, 0)
  })
}

test('supports upgrades through a proxy without tunnels', async () => {
  await using proxy = await startHttpServer(() => {})
  proxy.server.on('connect', (_request, socket: Socket) => socket.end('HTTP/1.1 405 No\r\n\r\n'))
  proxy.server.on('upgrade', (request, socket: Socket) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nX-Url: ${request.url}\r\n\r\n`)
    socket.pipe(socket)
  })
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(proxy.port) })
  const { socket } = await egress.machine.connect('page.test:80')

  socket.write('GET /ws HTTP/1.1\r\nHost: page.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const [head] = await once(socket, 'data')
  socket.write('TRACE / HTTP/1.1\r\n\r\n')
  const [echoed] = await once(socket, 'data')

  assert.match(String(head), /^HTTP\/1\.1 101 [\s\S]*X-Url: http:\/\/page\.test\/ws/)
  assert.equal(String(echoed), 'TRACE / HTTP/1.1\r\n\r\n')
  socket.destroy()
})

test('a challenge of the proxy to a request does not reach the machine', async () => {
  await using proxy = await startFakeProxy('exit', { connectStatus: 405, status: 407 })
  await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })

  const { status, headers, body } = await egress.machine.fetch('http://page.test/')

  assert.deepEqual(
    [status, headers['x-kernel-proxy-error'], headers['proxy-authenticate'], body],
    [502, 'provider_rejected', undefined, ''],
  )
})

test('malformed and incomplete responses are failures of the proxy', async () => {
  for (const answer of ['SSH-2.0-nonsense\r\n', '', 'HTTP/1.1 200']) {
    await using proxy = await startTcpServer((socket) => void socket.once('data', () => socket.end(answer)))
    await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })

    assert.equal(await brokenBy(egress.machine, 'secure.test:443'), 'reset')
    const failed = await egress.machine.untilMessage(({ type }) => type === 'proxy_failed')
    assert.equal('code' in failed && failed.code, 'upstream_connect_failed', JSON.stringify(answer))
  }
})

test("a caller's proxy needs a permitted address, and an operator's does not", async () => {
  await using proxy = await startFakeProxy('exit')
  await using egress = await startEgress({ settings: through(proxy.port) })

  const ofCaller = await egress.machine.fetch('http://page.test/')
  const before = proxy.connections()
  await egress.change(through(proxy.port, {}, { is_operators: true }))
  const ofOperator = await egress.machine.fetch('http://page.test/')
  const inner = await egress.machine.fetch('http://169.254.169.254/')
  const mapped = await brokenBy(egress.machine, '[::ffff:10.0.0.1]:443')

  assert.deepEqual([ofCaller.status, ofCaller.headers['x-kernel-proxy-error']], [502, 'proxy_unavailable'])
  assert.equal(before, 0)
  assert.equal(ofOperator.body, 'exit tunnels /')
  assert.deepEqual([inner.status, inner.headers['x-kernel-proxy-error']], [502, 'destination_blocked'])
  assert.equal(mapped, 'reset')
  assert.deepEqual(proxy.requests, ['CONNECT page.test:80'])
})

test('private hosts come before routes, routes before the proxy, and the bypass of each is its own', async () => {
  await using top = await startFakeProxy('top')
  await using routed = await startFakeProxy('routed')
  await using egress = await startEgress({
    allow: ['127.0.0.1'],
    settings: {
      proxy: proxyAt(top.port, {}, { bypass_hosts: ['*.routed.test', 'bypassed.test'] }),
      private_hosts: ['private.routed.test:81', '10.0.0.0/8'],
      routes: [
        { hosts: ['*.routed.test'], proxy: proxyAt(routed.port, {}, { bypass_hosts: ['inner.routed.test'] }) },
        { hosts: ['gone.routed.test', '*.gone.test'], proxy: null },
      ],
    },
  })
  const ends: Record<string, string> = {
    'a.routed.test': 'routed tunnels /',
    'a.b.routed.test': 'routed tunnels /',
    'a.routed.test:8080': 'routed tunnels /',
    'routed.test': 'top tunnels /',
    'inner.routed.test': 'name-not-found',
    'bypassed.test': 'name-not-found',
    'private.routed.test:81': 'name-not-found',
    'private.routed.test': 'routed tunnels /',
    'gone.routed.test': 'destination_route_unavailable',
    'x.gone.test': 'destination_route_unavailable',
    'gone.test': 'top tunnels /',
    'elsewhere.test': 'top tunnels /',
    '10.1.2.3': 'refused',
    '192.168.1.1': 'top tunnels /',
  }

  const found: Record<string, string> = {}
  for (const authority of Object.keys(ends)) {
    found[authority] = await egress.machine.fetch(`http://${authority}/`).then(
      ({ body, headers }) => String(headers['x-kernel-proxy-error'] ?? body),
      ({ kind }) => kind,
    )
  }

  assert.deepEqual(found, ends)
})

test('allowed hosts exclude everything but private hosts, by name and by address, with any proxy', async () => {
  await using proxy = await startFakeProxy('exit')
  const rules = {
    private_hosts: ['private.test'],
    routes: [],
    allowed_hosts: ['good.test', '*.wide.test', '8.8.4.0/24', '9.9.9.9', '[2001:4860:4860::8888]'],
  }
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: { ...through(proxy.port), ...rules } })
  const ends: Record<string, string> = {
    'good.test': 'exit tunnels /',
    'good.test:8443': 'exit tunnels /',
    'a.b.wide.test': 'exit tunnels /',
    '8.8.4.4': 'exit tunnels /',
    '9.9.9.9:81': 'exit tunnels /',
    '[2001:4860:4860::8888]': 'exit tunnels /',
    'private.test': 'name-not-found',
    'bad.test': '403 network_policy_denied',
    'sub.good.test': '403 network_policy_denied',
    'wide.test': '403 network_policy_denied',
    '8.8.8.8': '403 network_policy_denied',
    '[2001:4860:4860::8844]': '403 network_policy_denied',
  }

  const found: Record<string, string> = {}
  for (const authority of Object.keys(ends)) {
    found[authority] = await egress.machine.fetch(`http://${authority}/`).then(
      ({ status, body, headers: { 'x-kernel-proxy-error': code } }) => (code ? `${status} ${code}` : body),
      ({ kind }) => kind,
    )
  }
  const secure = await brokenBy(egress.machine, 'bad.test:443')
  await egress.change({ ...directly, ...rules })
  const direct = await brokenBy(egress.machine, 'bad.test:443')

  assert.deepEqual(found, ends)
  assert.deepEqual([secure, direct], ['reset', 'reset'])
  assert.deepEqual(await egress.machine.lookup('bad.test'), { id: egress.machine.lastId, by_name: true })
})

test('a change of settings closes connections that would now leave differently, and no others', async () => {
  await using one = await startFakeProxy('one')
  await using two = await startFakeProxy('two')
  await using direct = await startTcpServer((socket) => void socket.pipe(socket))
  const private_hosts = ['direct.test']
  await using egress = await startEgress({
    allow: ['127.0.0.1'],
    settings: { ...through(one.port), private_hosts },
    lookup: async () => ['127.0.0.1'],
  })
  using kept = await egress.machine.connect(`direct.test:${direct.port}`)
  using old = await egress.machine.connect('old.test:443')
  const cut = egress.machine.closed(old)

  await egress.change({ ...through(one.port), private_hosts })
  old.socket.write('GET /still HTTP/1.1\r\nHost: x\r\n\r\n')
  const [still] = await once(old.socket, 'data')
  await egress.change({ ...through(two.port), private_hosts })

  assert.equal(await cut, 'reset')
  await one.untilAbandoned()
  kept.socket.write('still here')
  assert.match(String(still), /one tunnels \/still/)
  assert.equal(String((await once(kept.socket, 'data'))[0]), 'still here')
  assert.equal((await egress.machine.fetch('http://page.test/')).body, 'two tunnels /')
})

test('a connection that is opening during a change uses the new settings', async () => {
  const asked = Promise.withResolvers<void>()
  await using silent = await startTcpServer((socket) => {
    socket.once('end', () => socket.end()).once('data', () => asked.resolve())
  })
  await using two = await startFakeProxy('two')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(silent.port) })

  const page = egress.machine.fetch('http://page.test/')
  await asked.promise
  await egress.change(through(two.port))

  assert.equal((await page).body, 'two tunnels /')
  await silent.untilAbandoned()
})

test('a failed connection that is still answered closes when its settings change', async () => {
  await using egress = await startEgress({ settings: { ...directly, proxy: null } })
  const connection = await egress.machine.connect('page.test:80')

  await egress.change({ ...directly, allowed_hosts: ['page.test'] })
  const said = await textOf(connection.socket)

  assert.equal(said, '')
})

test('an address that was returned for a name counts as that name when the settings change', async () => {
  await using server = await startHttpServer((_request, response) => response.end('direct'))
  await using proxy = await startFakeProxy('exit')
  const addresses: Record<string, string> = {
    'one.test': '127.0.0.1',
    'two.test': '127.0.0.2',
    'three.test': '127.0.0.2',
  }
  await using egress = await startEgress({ allow: ['127.0.0.0/8'], lookup: async (name) => [addresses[name] ?? ''] })
  const { machine } = egress
  for (const name of Object.keys(addresses)) await machine.lookup(name)
  const fetchKind = (url: string) =>
    machine.fetch(url).then(
      ({ body }) => body,
      ({ kind }) => kind,
    )

  const before = await machine.fetch(`http://${server.authority}/`)
  await egress.change({ ...directly, routes: [{ hosts: ['one.test', 'two.test'], proxy: proxyAt(proxy.port) }] })
  const routed = await fetchKind(`http://${server.authority}/`)
  const ambiguous = await fetchKind('http://127.0.0.2/')
  const lookups = [await machine.lookup('one.test'), await machine.lookup('three.test')]

  assert.equal(before.body, 'direct')
  assert.deepEqual([routed, ambiguous], ['exit tunnels /', 'refused'])
  assert.deepEqual(proxy.requests, [`CONNECT one.test:${server.port}`])
  assert.deepEqual(
    lookups.map((answer) => 'by_name' in answer),
    [true, false],
  )
})

test('a gentle change waits for the given connection, and lets it finish', async () => {
  await using one = await startHttpServer(() => {})
  one.server.on('connect', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    socket.once('data', () => one.server.once('finish', () => socket.end('HTTP/1.1 200 OK\r\n\r\nslowly')))
  })
  await using two = await startFakeProxy('two')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(one.port) })

  const change = egress.change(through(two.port), { after_request_to: 'start.test:80' })
  const started = one.nextConnection()
  const page = egress.machine.fetch('http://start.test/')
  await started
  await change
  const next = await egress.machine.fetch('http://start.test/')
  one.server.emit('finish')

  assert.equal(next.body, 'two tunnels /')
  assert.equal((await page).body, 'slowly')
})

test('a gentle change waits for a slow response', async () => {
  const asked = Promise.withResolvers<Socket>()
  await using one = await startHttpServer(() => {})
  one.server.on('connect', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    socket.once('data', () => asked.resolve(socket))
  })
  await using two = await startFakeProxy('two')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(one.port) })
  const page = egress.machine.fetch('http://start.test/')
  const socket = await asked.promise

  await egress.change(through(two.port), {})
  await delay(2_000)
  socket.end('HTTP/1.1 200 OK\r\n\r\nslowly')

  assert.equal((await page).body, 'slowly')
})

test('a gentle change closes idle connections', async () => {
  await using one = await startFakeProxy('one')
  await using two = await startFakeProxy('two')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(one.port) })
  const connection = await egress.machine.connect('start.test:80')
  connection.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(connection.socket, 'data')

  await egress.change(through(two.port), {})

  await closeOf(connection.socket)
  assert.equal(await egress.machine.closed(connection), 'reset')
})
