import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const mebibyte = 1024 ** 2
const publicPaths = ['/openapi.json', '/spec.json', '/docs/json', '/json/protocol', '/docs/static/swagger-ui-bundle.js']

async function openConnection(): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket.pause()
}

async function neighbourIsServed(): Promise<void> {
  const startedAt = performance.now()
  assert.equal((await fetch(`${server.url}/health`)).status, 200)
  assert.ok(performance.now() - startedAt < 10_000)
}

for (const path of publicPaths) {
  test(`600 KB of requests for ${path} with unread responses do not affect others`, { timeout: 60_000 }, async () => {
    await fetch(`${server.url}${path}`).then((response) => response.bytes())
    const before = process.memoryUsage.rss()
    const attacker = await openConnection()

    const request = `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`
    attacker.write(request.repeat(Math.ceil(600_000 / request.length)))
    await neighbourIsServed()
    attacker.resume()
    while (!attacker.destroyed) await neighbourIsServed()

    await neighbourIsServed()
    assert.ok(process.memoryUsage.rss() - before < 150 * mebibyte)
  })

  test(`300 connections that request ${path} and do not read use little memory`, { timeout: 60_000 }, async () => {
    await fetch(`${server.url}${path}`).then((response) => response.bytes())
    const attackers = await Promise.all(Array.from({ length: 300 }, openConnection))
    const before = process.memoryUsage.rss()

    for (const attacker of attackers) attacker.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(10))
    for (let round = 0; round < 20; round++) await neighbourIsServed()

    // Kernel buffers are not included. 300 separate responses would take hundreds of MiB.
    assert.ok(process.memoryUsage.rss() - before < 100 * mebibyte)
    for (const attacker of attackers) attacker.destroy()
  })
}

test('a large response is compressed if the client accepts it, and omitted if the client has it cached', async () => {
  const ask = (headers: Record<string, string>) => fetch(`${server.url}/openapi.json`, { headers })
  const plain = await (await ask({ 'accept-encoding': 'identity' })).text()
  const declined = await ask({ 'accept-encoding': 'gzip;q=0' })
  const compressed = await ask({ 'accept-encoding': 'br, gzip' })
  const known = await ask({ 'accept-encoding': 'gzip', 'if-none-match': compressed.headers.get('etag') ?? '' })

  assert.equal(declined.headers.get('content-encoding'), null)
  assert.equal(compressed.headers.get('content-encoding'), 'gzip')
  assert.equal(compressed.headers.get('vary'), 'accept-encoding')
  assert.equal(await compressed.text(), plain, 'fetch has taken the compression off')
  assert.equal(known.status, 304)
})

test('the pages of the documentation run only their own scripts', async () => {
  for (const path of ['/docs', '/docs/', '/docs/guides', '/docs/guides/sessions']) {
    const { headers, status } = await fetch(`${server.url}${path}`, { redirect: 'manual' })
    const policy = headers.get('content-security-policy') ?? ''

    assert.equal(status, 200, path)
    assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/)
    assert.match(policy, /script-src [\w.:]+\/docs\/assets\/ 'sha256-[^']+';/)
    assert.equal(headers.get('x-frame-options'), 'DENY')
  }
})
