import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { startHttpServer, startTcpServer, unusedPort } from '../testing/loopback-server.ts'
import { closeOf, fetchThrough, greetThrough, openThrough, openTunnelThrough, textOf } from '../testing/proxy-client.ts'
import { proxyAt, startFakeProxy, through } from '../testing/proxy-server.ts'
import { directly, startEgress } from '../testing/started-egress.ts'

const credentials = { username: 'us-er', password: 'p@ss:w%rd/é' }
const authorization = `Basic ${Buffer.from('us-er:p@ss:w%rd/é').toString('base64')}`

test('sends requests whole to an HTTP proxy, and tunnels all else, with the credentials at once', async () => {
  await using proxy = await startFakeProxy('exit')
  await using egress = await startEgress({
    allow: [proxy.authority],
    settings: through(proxy.port, credentials),
  })

  const page = await fetchThrough(egress.socketPath, 'http://Page.test:8080/a%2Fb?c', {
    headers: { 'Proxy-Authorization': 'Basic of-the-client' },
  })
  using tunnel = await openTunnelThrough(egress.socketPath, 'secure.test:443')
  tunnel.socket.write('GET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')

  assert.equal(page.body, 'exit')
  assert.equal(page.headers['x-kernel-proxy-error'], undefined)
  assert.match(await textOf(tunnel.socket), /exit tunnels \/in$/)
  assert.deepEqual(proxy.asked, [
    `GET http://page.test:8080/a%2Fb?c ${authorization}`,
    `CONNECT secure.test:443 ${authorization}`,
  ])
})

test('takes a destination by SOCKS5 before requests in plain HTTP, by a proxy and without', async () => {
  await using server = await startHttpServer((request, response) =>
    response.end(`direct ${request.headers.host} ${request.url}`),
  )
  await using proxy = await startFakeProxy('exit')
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const ask = async (name: string, port: number) => {
    const { socket, code } = await greetThrough(egress.socketPath, name, port)
    socket.write(`GET /one HTTP/1.1\r\nHost: ${name}\r\n\r\nGET /two HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const text = (await textOf(socket)).match(/direct \S+ \/(one|two)|exit/g)
    return { code, text }
  }

  const direct = await ask('127.0.0.1', server.port)
  await egress.change(through(proxy.port))
  const proxied = await ask('page.test', 80)

  const host = `direct 127.0.0.1:${server.port}`
  assert.deepEqual(direct, { code: 0, text: [`${host} /one`, `${host} /two`] })
  assert.deepEqual(proxied, { code: 0, text: ['exit', 'exit'] })
  assert.deepEqual(proxy.asked, ['GET http://page.test/one', 'GET http://page.test/two'])
})

test('survives greetings that are broken off, in pieces, or ask for something else', async () => {
  await using server = await startHttpServer((_request, response) => response.end('served'))
  await using egress = await startEgress({ allow: [server.authority] })
  const name = '127.0.0.1'
  const greeting = [5, 1, 0, 5, 1, 0, 3, name.length, ...Buffer.from(name), server.port >> 8, server.port & 255]
  const send = async (bytes: readonly number[]) => {
    const socket = connect({ path: egress.socketPath, allowHalfOpen: true })
    socket.on('error', () => {})
    for (const byte of bytes) await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve))
    return socket
  }

  for (let length = 1; length < greeting.length; length += 3) {
    const socket = await send(greeting.slice(0, length))
    socket.end()
    await closeOf(socket)
  }
  const bound = await send([5, 1, 0, 5, 2, 0, 1, 1, 2, 3, 4, 0, 80])
  const unknownType = await send([5, 1, 0, 5, 1, 0, 9])
  const withPassword = await send([5, 1, 2])
  const pieces = await send(greeting)
  pieces.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')

  assert.equal((await textOf(bound)).charCodeAt(3), 7)
  assert.equal((await textOf(withPassword)).charCodeAt(1), 255)
  assert.match(await textOf(pieces), /served$/)
  unknownType.end()
  await closeOf(unknownType)
  assert.equal((await fetchThrough(egress.socketPath, `http://${server.authority}/`)).body, 'served')
})

test('tells that there is no connection to a proxy, and never connects directly', async () => {
  await using canary = await startHttpServer((_request, response) => response.end('reached'))
  const port = await unusedPort()
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(port) })

  const { code, socket } = await greetThrough(egress.socketPath, '127.0.0.1', canary.port)
  await closeOf(socket)
  const client = connect(egress.socketPath)
  client.write(`CONNECT ${canary.authority} HTTP/1.1\r\n\r\n`)
  const answer = await fetchThrough(egress.socketPath, `http://${canary.authority}/`)

  assert.equal(code, 1)
  assert.equal(await textOf(client), '')
  assert.equal(answer.status, 502)
  assert.equal(answer.headers['x-kernel-proxy-error'], 'provider_unreachable')
  assert.equal(answer.body, '')
  assert.equal(canary.connections(), 0)
})

const refusals = {
  407: 'provider_rejected',
  403: 'provider_rejected',
  502: 'upstream_connect_failed',
  504: 'upstream_timeout',
}
for (const [status, code] of Object.entries(refusals)) {
  test(`a proxy that answers CONNECT with ${status} is an error of the proxy, without a challenge for the client`, async () => {
    await using proxy = await startFakeProxy('exit', Number(status))
    await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })

    using tunnel = await openTunnelThrough(egress.socketPath, 'secure.test:443')

    assert.equal(tunnel.status, 502)
    assert.equal(tunnel.headers['x-kernel-proxy-error'], code)
    assert.equal(tunnel.headers['proxy-authenticate'], undefined)
    await proxy.untilAbandoned()
  })
}

test('a challenge of the proxy to a request does not reach the client', async () => {
  await using proxy = await startHttpServer((_request, response) => {
    response.writeHead(407, { 'proxy-authenticate': 'Basic realm="x"' }).end('who are you?')
  })
  await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })

  const { status, headers, body } = await fetchThrough(egress.socketPath, 'http://page.test/')

  assert.deepEqual(
    [status, headers['x-kernel-proxy-error'], headers['proxy-authenticate'], body],
    [502, 'provider_rejected', undefined, ''],
  )
})

test('what is no HTTP, or breaks off, is a failure of the proxy', async () => {
  for (const answer of ['SSH-2.0-nonsense\r\n', '', 'HTTP/1.1 200']) {
    await using proxy = await startTcpServer((socket) => void socket.once('data', () => socket.end(answer)))
    await using egress = await startEgress({ allow: [proxy.authority], settings: through(proxy.port) })

    using tunnel = await openTunnelThrough(egress.socketPath, 'secure.test:443')

    assert.equal(tunnel.headers['x-kernel-proxy-error'], 'upstream_connect_failed', JSON.stringify(answer))
  }
})

test("a caller's proxy must not stand where sessions may not connect to, and an operator's may", async () => {
  await using proxy = await startFakeProxy('exit')
  await using egress = await startEgress({ settings: through(proxy.port) })

  const ofCaller = await fetchThrough(egress.socketPath, 'http://page.test/')
  const before = proxy.connections()
  await egress.change(through(proxy.port, {}, { is_operators: true }))
  const ofOperator = await fetchThrough(egress.socketPath, 'http://page.test/')
  const inner = await fetchThrough(egress.socketPath, 'http://169.254.169.254/')
  using tunnel = await openTunnelThrough(egress.socketPath, '[::ffff:10.0.0.1]:443')

  assert.deepEqual([ofCaller.status, ofCaller.headers['x-kernel-proxy-error']], [502, 'proxy_unavailable'])
  assert.equal(before, 0)
  assert.equal(ofOperator.body, 'exit')
  assert.deepEqual([inner.status, inner.headers['x-kernel-proxy-error']], [403, 'destination_blocked'])
  assert.equal(tunnel.status, 403)
  assert.deepEqual(proxy.asked, ['GET http://page.test/'])
})

test('private hosts come before routes, routes before the proxy, and the bypass of each is its own', async () => {
  await using top = await startFakeProxy('top')
  await using routed = await startFakeProxy('routed')
  const names: Record<string, string[]> = {}
  await using egress = await startEgress({
    allow: ['127.0.0.1'],
    lookup: async (name) => names[name] ?? [],
    settings: {
      proxy: proxyAt(top.port, {}, { bypass_hosts: ['*.routed.test', 'bypassed.test'] }),
      private_hosts: ['private.routed.test:81', '10.0.0.0/8'],
      routes: [
        { hosts: ['*.routed.test'], proxy: proxyAt(routed.port, {}, { bypass_hosts: ['inner.routed.test'] }) },
        { hosts: ['gone.routed.test', '*.gone.test'], proxy: null },
      ],
    },
  })
  const ways: Record<string, string> = {
    'a.routed.test': 'routed',
    'a.b.routed.test': 'routed',
    'a.routed.test:8080': 'routed',
    'routed.test': 'top',
    'inner.routed.test': 'upstream_dns_failure',
    'bypassed.test': 'upstream_dns_failure',
    'private.routed.test:81': 'upstream_dns_failure',
    'private.routed.test': 'routed',
    'gone.routed.test': 'destination_route_unavailable',
    'x.gone.test': 'destination_route_unavailable',
    'gone.test': 'top',
    'elsewhere.test': 'top',
    '10.1.2.3': 'destination_blocked',
    '192.168.1.1': 'top',
  }

  const found: Record<string, string> = {}
  for (const authority of Object.keys(ways)) {
    const { body, headers } = await fetchThrough(egress.socketPath, `http://${authority}/`)
    found[authority] = String(headers['x-kernel-proxy-error'] ?? body)
  }

  assert.deepEqual(found, ways)
})

test('a change of the proxy cuts what leaves by the old one, and nothing else', async () => {
  await using one = await startFakeProxy('one')
  await using two = await startFakeProxy('two')
  await using direct = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({
    allow: ['127.0.0.1'],
    settings: { ...through(one.port), private_hosts: ['direct.test'] },
    lookup: async () => ['127.0.0.1'],
  })
  const private_hosts = ['direct.test']
  using kept = await openTunnelThrough(egress.socketPath, `direct.test:${direct.port}`)
  using old = await openTunnelThrough(egress.socketPath, 'old.test:443')
  const { socket: unused } = await greetThrough(egress.socketPath, 'unused.test', 80)
  const cut = Promise.all([closeOf(old.socket), closeOf(unused)])

  await egress.change({ ...through(one.port), private_hosts })
  old.socket.write('GET /still HTTP/1.1\r\nHost: x\r\n\r\n')
  const [still] = await once(old.socket, 'data')
  await egress.change({ ...through(two.port), private_hosts })

  await cut
  await one.untilAbandoned()
  kept.socket.write('still here')
  assert.match(String(still), /one tunnels \/still/)
  assert.equal(String((await once(kept.socket, 'data'))[0]), 'still here')
  assert.equal((await fetchThrough(egress.socketPath, 'http://page.test/')).body, 'two')
})

test('a gentle change lets an answer come to its end, and sends what follows by the new way', async () => {
  await using one = await startHttpServer((request, response) => {
    response.write('begin ')
    one.server.once('finish', () => response.end(`end ${request.url}`))
  })
  await using two = await startFakeProxy('two')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(one.port) })
  const answer = await openThrough(egress.socketPath, 'http://start.test/')
  const idle = await greetThrough(egress.socketPath, 'start.test', 80)
  const idleEnds = closeOf(idle.socket)

  await egress.change(through(two.port), { after_request_to: 'start.test:80' })
  await idleEnds
  const next = await fetchThrough(egress.socketPath, 'http://start.test/')
  one.server.emit('finish')

  assert.equal(next.body, 'two')
  assert.equal(await textOf(answer), 'begin end http://start.test/')
  await one.untilAbandoned()
})

test('a gentle change waits for the request that it is to come after', async () => {
  await using one = await startFakeProxy('one')
  await using two = await startFakeProxy('two')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(one.port) })

  const change = egress.change(through(two.port), { after_request_to: 'start.test:80' })
  const first = await fetchThrough(egress.socketPath, 'http://start.test/')
  await change
  const second = await fetchThrough(egress.socketPath, 'http://start.test/')

  assert.deepEqual([first.body, second.body], ['one', 'two'])
})

test('settings that are the same keep a proxy that has spoken from being taken for dead', async () => {
  await using proxy = await startFakeProxy('exit')
  await using egress = await startEgress({ allow: ['127.0.0.1'], settings: through(proxy.port) })
  const { socket } = await greetThrough(egress.socketPath, 'page.test', 80)

  await egress.change(through(proxy.port))
  await egress.change({ ...through(proxy.port), routes: [{ hosts: ['other.test'], proxy: null }] })
  socket.write('GET / HTTP/1.1\r\nHost: page.test\r\nConnection: close\r\n\r\n')

  assert.match(await textOf(socket), /exit$/)
  assert.equal((await fetchThrough(egress.socketPath, 'http://other.test/')).status, 502)
  await egress.change(directly)
})
