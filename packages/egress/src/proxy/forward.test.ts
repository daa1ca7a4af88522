import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { startHttpServer, startTcpServer, unusedPort } from '../testing/loopback-server.ts'
import { closeOf, fetchThrough, openThrough, sendRaw, textOf } from '../testing/proxy-client.ts'
import { startEgress } from '../testing/started-egress.ts'

const MiB = 1024 * 1024

/** Answers with what arrived. */
function echo(incoming: IncomingMessage, response: ServerResponse): void {
  void textOf(incoming).then((body) =>
    response.end(JSON.stringify({ method: incoming.method, url: incoming.url, headers: incoming.rawHeaders, body })),
  )
}

test('sends a request to an allowed server and its answer back', async () => {
  await using server = await startHttpServer((_request, response) => {
    response.writeHead(418, 'Short And Stout', ['X-Case', 'kept', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'])
    response.end('tea')
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const answer = await fetchThrough(egress.socketPath, `http://${server.authority}/pot?milk`)

  assert.equal(answer.status, 418)
  assert.equal(answer.body, 'tea')
  assert.deepEqual(answer.rawHeaders.slice(0, 6), ['X-Case', 'kept', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'])
})

test('lets the server see no proxy', async () => {
  await using server = await startHttpServer(echo)
  await using egress = await startEgress({ allow: [server.authority] })
  const headers = {
    host: server.authority,
    'Proxy-Connection': 'keep-alive',
    'X-Mine': '1',
    'Proxy-Authorization': 'Basic c2VjcmV0',
  }

  const { body } = await fetchThrough(egress.socketPath, `http://${server.authority}/a//b/../c%2Fd?q`, { headers })

  const seen = JSON.parse(body)
  assert.equal(seen.url, '/a//b/../c%2Fd?q')
  assert.deepEqual(seen.headers, ['host', server.authority, 'Connection', 'keep-alive', 'X-Mine', '1'])
})

test('sends bodies of known, unknown and no length', async () => {
  await using server = await startHttpServer(echo)
  await using egress = await startEgress({ allow: [server.authority] })
  const url = `http://${server.authority}/`

  const known = await fetchThrough(egress.socketPath, url, {
    method: 'POST',
    headers: { 'content-length': 5 },
    body: 'known',
  })
  const unknown = await fetchThrough(egress.socketPath, url, { method: 'POST', body: Readable.from(['un', 'known']) })
  const none = await sendRaw(egress.socketPath, `POST ${url} HTTP/1.0\r\n\r\n`)
  const ofDelete = await fetchThrough(egress.socketPath, url, {
    method: 'DELETE',
    headers: { 'transfer-encoding': 'chunked' },
    body: 'gone',
  })

  assert.equal(JSON.parse(known.body).body, 'known')
  assert.equal(JSON.parse(unknown.body).body, 'unknown')
  assert.match(none, /"Content-Length","0"/)
  assert.doesNotMatch(none, /chunked/)
  assert.equal(JSON.parse(ofDelete.body).body, 'gone')
})

test('passes on answers without a body as they are', async () => {
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.method === 'HEAD') response.writeHead(200, { 'content-length': 1_000 }).end()
    else response.writeHead(304, { etag: 'x' }).end()
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const head = await fetchThrough(egress.socketPath, `http://${server.authority}/`, { method: 'HEAD' })
  const notModified = await fetchThrough(egress.socketPath, `http://${server.authority}/`)

  assert.deepEqual([head.status, head.headers['content-length'], head.body], [200, '1000', ''])
  assert.deepEqual([notModified.status, notModified.headers.etag, notModified.body], [304, 'x', ''])
  assert.equal(notModified.headers['transfer-encoding'], undefined)
})

test('lets a client wait for the permission of the server to send its body', async () => {
  const expectations: string[] = []
  await using server = await startHttpServer(() => {})
  server.server.on('checkContinue', (incoming: IncomingMessage, response: ServerResponse) => {
    expectations.push(incoming.url ?? '')
    if (incoming.url === '/yes') {
      response.writeContinue()
      echo(incoming, response)
    } else {
      response.writeHead(413).end()
    }
  })
  await using egress = await startEgress({ allow: [server.authority] })
  const ask = (path: string) => {
    const headers = { expect: '100-continue', 'content-length': 4 }
    return request({
      socketPath: egress.socketPath,
      path: `http://${server.authority}${path}`,
      method: 'PUT',
      headers,
      agent: false,
    })
  }

  const granted = ask('/yes')
  granted.flushHeaders()
  await once(granted, 'continue')
  granted.end('body')
  const [answer] = await once(granted, 'response')
  const refused = ask('/no')
  refused.flushHeaders()
  const [refusal] = await once(refused, 'response')
  refused.destroy()

  assert.equal(JSON.parse(await textOf(answer)).body, 'body')
  assert.equal(refusal.statusCode, 413)
  assert.deepEqual(expectations, ['/yes', '/no'])
})

test('uses one connection to the server for the requests of one client connection', async () => {
  await using server = await startHttpServer(echo)
  await using egress = await startEgress({ allow: [server.authority] })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = async () => {
    const outgoing = request({ socketPath: egress.socketPath, path: `http://${server.authority}/`, agent })
    outgoing.end()
    const [answer] = await once(outgoing, 'response')
    await textOf(answer)
    return outgoing.reusedSocket
  }

  const reused = [await ask(), await ask(), await ask()]
  const ofAnotherClient = await fetchThrough(egress.socketPath, `http://${server.authority}/`)

  assert.deepEqual(reused, [false, true, true])
  assert.equal(ofAnotherClient.status, 200)
  assert.equal(server.connections(), 2)
  agent.destroy()
})

test('ends an idle client connection when the server ends the connection behind it', async () => {
  await using server = await startHttpServer((_request, response) => response.end('x'))
  await using egress = await startEgress({ allow: [server.authority] })
  const connection = server.nextConnection()
  const client = connect(egress.socketPath)
  client.write(`GET http://${server.authority}/ HTTP/1.1\r\nhost: x\r\n\r\n`)
  await once(client, 'data')

  const serverSide = await connection
  serverSide.end()

  await closeOf(client)
})

test('ends the connection to the server with the client connection that it served', async () => {
  await using server = await startHttpServer((_request, response) => response.end('x'))
  await using egress = await startEgress({ allow: [server.authority] })
  const client = connect(egress.socketPath)
  client.write(`GET http://${server.authority}/ HTTP/1.1\r\nhost: x\r\n\r\n`)
  await once(client, 'data')

  client.destroy()

  await server.untilAbandoned()
})

test('closes the connection with an answer after which the server closes its own', async () => {
  await using server = await startHttpServer((_request, response) =>
    response.writeHead(200, { connection: 'close' }).end('x'),
  )
  await using egress = await startEgress({ allow: [server.authority] })

  const answer = await sendRaw(egress.socketPath, `GET http://${server.authority}/ HTTP/1.1\r\nhost: x\r\n\r\n`)

  assert.match(answer, /\r\nConnection: close\r\n/)
})

test('passes on an answer that ends with its connection', async () => {
  await using server = await startTcpServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.0 200 Fine\nX-Old: yes\n\nto the end'))
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const answer = await fetchThrough(egress.socketPath, `http://${server.authority}/`)

  assert.equal(answer.headers['x-old'], 'yes')
  assert.equal(answer.body, 'to the end')
})

test('breaks off an answer that breaks off', async () => {
  await using server = await startTcpServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart'))
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const answer = await openThrough(egress.socketPath, `http://${server.authority}/`)

  await assert.rejects(textOf(answer), { code: 'ECONNRESET' })
})

test('answers in place of a server that cannot be reached, and says how it failed', async () => {
  await using silent = await startTcpServer((socket) => void socket.once('data', () => socket.destroy()))
  await using nonsense = await startTcpServer(
    (socket) => void socket.once('data', () => socket.end('SSH-2.0-OpenSSH\r\n\r\n')),
  )
  await using asksPassword = await startHttpServer((_request, response) =>
    response.writeHead(407, { 'proxy-authenticate': 'Basic realm="x"' }).end('login'),
  )
  await using switches = await startTcpServer(
    (socket) =>
      void socket.once('data', () => socket.end('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')),
  )
  await using endless = await startTcpServer(
    (socket) => void socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nA: ${'x'.repeat(300_000)}\r\n\r\n`)),
  )
  await using egress = await startEgress({ allow: ['127.0.0.0/8'] })
  const failures: [authority: string, status: number, kind: string][] = [
    [`127.0.0.1:${await unusedPort()}`, 502, 'connection-refused'],
    [silent.authority, 502, 'connection-closed'],
    [nonsense.authority, 502, 'bad-answer'],
    [asksPassword.authority, 502, 'bad-answer'],
    [switches.authority, 502, 'bad-answer'],
    [endless.authority, 502, 'bad-answer'],
    ['nowhere.test', 502, 'name-not-found'],
  ]

  for (const [authority, status, kind] of failures) {
    const answer = await fetchThrough(egress.socketPath, `http://${authority}/`)

    assert.deepEqual([answer.status, answer.headers['x-berth-egress'], answer.body], [status, kind, ''], authority)
    assert.equal(answer.headers['proxy-authenticate'], undefined)
  }
})

test('refuses what is not allowed with a sentence and without a connection', async () => {
  await using server = await startHttpServer(echo)
  await using egress = await startEgress({ allow: [`127.0.0.1:${server.port + 1}`] })

  const answer = await fetchThrough(egress.socketPath, `http://${server.authority}/secret?token=1`)

  assert.equal(answer.status, 403)
  assert.equal(answer.headers['x-berth-egress'], 'refused')
  assert.match(answer.body, /loopback/)
  assert.doesNotMatch(answer.body, /secret|token|127/)
  assert.equal(server.connections(), 0)
})

test('serves a client on after a failure and after a refusal', async () => {
  await using server = await startHttpServer(echo)
  await using egress = await startEgress({ allow: [server.authority] })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: [number | undefined, boolean][] = []

  for (const url of ['http://nowhere.test/', 'http://127.0.0.1:1/', `http://${server.authority}/`]) {
    const outgoing = request({ socketPath: egress.socketPath, path: url, agent })
    outgoing.end()
    const [answer] = await once(outgoing, 'response')
    await textOf(answer)
    statuses.push([answer.statusCode, outgoing.reusedSocket])
  }

  assert.deepEqual(statuses, [
    [502, false],
    [403, true],
    [200, true],
  ])
  agent.destroy()
})

test('looks a name up once and connects to the very address that it checked', async () => {
  await using allowed = await startHttpServer((_request, response) => response.end('allowed'), { address: '127.0.0.2' })
  await using forbidden = await startHttpServer((_request, response) => response.end('forbidden'), {
    address: '127.0.0.3',
    port: allowed.port,
  })
  const answers = ['127.0.0.2', '127.0.0.3', '127.0.0.2', '127.0.0.3']
  const lookedUp: string[] = []
  const lookup = async (name: string) => {
    lookedUp.push(name)
    return answers.splice(0, 1)
  }
  await using egress = await startEgress({ allow: [allowed.authority], lookup })

  const first = await fetchThrough(egress.socketPath, `http://rebind.test:${allowed.port}/`)
  const second = await fetchThrough(egress.socketPath, `http://rebind.test:${allowed.port}/`)

  assert.deepEqual([first.status, first.body], [200, 'allowed'])
  assert.equal(second.status, 403)
  assert.deepEqual(lookedUp, ['rebind.test', 'rebind.test'])
  assert.equal(forbidden.connections(), 0)
})

test('reaches of several addresses one that answers', async () => {
  await using server = await startHttpServer((_request, response) => response.end('here'), { address: '127.0.0.3' })
  const lookup = async () => ['10.0.0.1', '127.0.0.2', '127.0.0.3']
  await using egress = await startEgress({ allow: ['127.0.0.0/8'], lookup })

  const answer = await fetchThrough(egress.socketPath, `http://several.test:${server.port}/`)

  assert.equal(answer.body, 'here')
})

test('opens its own address to nobody unless it is allowed with its port', async () => {
  await using own = await startHttpServer((_request, response) => response.end('berth'))
  await using egress = await startEgress({
    allow: ['127.0.0.0/8', 'berth.test'],
    own: [own.authority],
    lookup: async () => ['127.0.0.1'],
  })
  const urls = [
    `http://${own.authority}/`,
    `http://berth.test:${own.port}/`,
    `http://0x7f.1:${own.port}/`,
    `http://[::ffff:7f00:1]:${own.port}/`,
  ]

  const refused = await Promise.all(urls.map((url) => fetchThrough(egress.socketPath, url)))
  egress.allow(own.authority)
  const allowed = await fetchThrough(egress.socketPath, `http://${own.authority}/`)

  assert.deepEqual(
    refused.map(({ status }) => status),
    [403, 403, 403, 403],
  )
  assert.equal(allowed.body, 'berth')
  assert.equal(own.connections(), 1)
})

test('gives up the server at once when the client goes', async () => {
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.url === '/streams') response.write('begin')
  })
  await using egress = await startEgress({ allow: [server.authority] })

  for (const path of ['/streams', '/waits']) {
    const connection = server.nextConnection()
    const client = connect(egress.socketPath)
    client.write(`GET http://${server.authority}${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
    const serverSide = await connection
    if (path === '/streams') await once(client, 'data')
    else await once(serverSide, 'data')
    client.destroy()
    await server.untilAbandoned()
  }
})

test('gives up the server when the client goes in the middle of its body', async () => {
  await using server = await startHttpServer(() => {})
  await using egress = await startEgress({ allow: [server.authority] })
  const connection = server.nextConnection()
  const client = connect(egress.socketPath)
  client.write(`POST http://${server.authority}/ HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\npart`)

  const serverSide = await connection
  await once(serverSide, 'data')
  client.end()

  await server.untilAbandoned()
})

test('answers nonsense with 400 and goes on', async () => {
  await using server = await startHttpServer(echo)
  await using egress = await startEgress({ allow: [server.authority] })
  const nonsense = [
    ...[
      '\u0016\u0003\u0001\u0002\u0000',
      'HELLO\r\n\r\n',
      'GET / HTTP/1.0\r\n\r\n',
      'OPTIONS * HTTP/1.0\r\n\r\n',
      'GET http://1.2.3.4.5/ HTTP/1.0\r\n\r\n',
    ],
    ...[
      `GET / HTTP/1.1\r\nhost: ${server.authority}\r\nconnection: close\r\n\r\n`,
      `GET https://${server.authority}/ HTTP/1.0\r\n\r\n`,
    ],
    ...[
      `POST http://${server.authority}/ HTTP/1.1\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ...[
      `GET http://${server.authority}/ HTTP/1.1\r\nbad header: x\r\n\r\n`,
      `CONNECT ${server.authority}/ HTTP/1.1\r\n\r\n`,
      'CONNECT * HTTP/1.1\r\n\r\n',
    ],
  ]

  for (const text of nonsense)
    assert.match(await sendRaw(egress.socketPath, text), /^HTTP\/1\.1 400 /, JSON.stringify(text))

  assert.equal((await fetchThrough(egress.socketPath, `http://${server.authority}/`)).status, 200)
  assert.equal(server.connections(), 1)
})

test('takes many and large headers, but not endless ones', async () => {
  await using counting = await startHttpServer((incoming, response) => {
    response.writeHead(200, { large: 'x'.repeat(100_000) }).end(String(incoming.rawHeaders.length / 2))
  })
  counting.server.maxHeadersCount = 0
  await using egress = await startEgress({ allow: [counting.authority] })
  const ask = (headers: string) =>
    sendRaw(egress.socketPath, `GET http://${counting.authority}/ HTTP/1.0\r\n${headers}\r\n`)

  const many = await ask(Array.from({ length: 1_500 }, (_, index) => `x${index}:\r\n`).join(''))
  const endless = await ask(`a: ${'x'.repeat(300_000)}\r\n`)

  assert.ok(many.includes(`large: ${'x'.repeat(100_000)}\r\n`))
  assert.match(many, /\r\n\r\n1502$/) // Host and Connection are added.
  assert.match(endless, /^HTTP\/1\.1 431 /)
  assert.equal(counting.connections(), 1)
})

test('takes from a server that breaks the rules what can be passed on', async () => {
  await using server = await startTcpServer((socket) => {
    socket.once('data', () =>
      socket.end(
        'HTTP/1.1 200 Fi\u0001ne\r\nX-Bad: a\u0001b\r\nX-Good: 1\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      ),
    )
  })
  await using egress = await startEgress({ allow: [server.authority] })

  const answer = await fetchThrough(egress.socketPath, `http://${server.authority}/`)

  assert.deepEqual(
    [answer.status, answer.headers['x-bad'], answer.headers['x-good'], answer.body],
    [200, undefined, '1', 'ok'],
  )
})

test('answers two requests that were sent at once in their order', async () => {
  const waiting: ServerResponse[] = []
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.url === '/slow') waiting.push(response)
    else {
      response.end('fast')
      waiting[0]?.end('slow')
    }
  })
  await using egress = await startEgress({ allow: [server.authority] })
  const ask = (path: string, more: string) => `GET http://${server.authority}${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`

  const answers = await sendRaw(egress.socketPath, ask('/slow', '') + ask('/fast', 'connection: close\r\n'))

  assert.ok(answers.indexOf('slow') < answers.indexOf('fast'), answers)
})

test('passes large bodies both ways unchanged', async () => {
  await using server = await startHttpServer((incoming, response) => void incoming.pipe(response))
  await using egress = await startEgress({ allow: [server.authority] })
  const chunk = Buffer.alloc(MiB, 'berth')

  const answer = await openThrough(egress.socketPath, `http://${server.authority}/`, {
    method: 'POST',
    body: Readable.from(Array.from({ length: 20 }, () => chunk)),
  })

  let length = 0
  for await (const part of answer) length += part.length
  assert.equal(length, 20 * MiB)
})
