import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import type { Route } from '@berth/contract/route.ts'
import { defineUpgrade } from '@berth/contract/upgrade.ts'
import { mountRoutes, type UpgradeHandler } from './mount-routes.ts'

const routes = {
  one: { method: 'GET', path: '/one' },
  put: { method: 'PUT', path: '/one' },
  any: { path: '/any/' },
  pattern: { path: /^\/pattern\/\d+$/ },
  stream: { method: 'GET', path: '/stream', isStream: true },
  refused: { method: 'GET', path: '/refused', isStream: true },
  broken: { method: 'GET', path: '/broken', isStream: true },
} as const satisfies Readonly<Record<string, Route & { readonly isStream?: true }>>
const upgrades = [defineUpgrade({ name: 'one', path: '/one' }), defineUpgrade({ name: 'all', path: '/all/' })] as const

const answers = (name: string) => (_request: IncomingMessage, response: ServerResponse) => void response.end(name)
const says =
  (name: string): UpgradeHandler =>
  (_request, socket) =>
    socket.end(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${name}\r\n\r\n`)

const server = createServer()
const failures: string[] = []
mountRoutes(server, {
  routes,
  handlers: {
    one: answers('one'),
    put: answers('put'),
    any: answers('any'),
    pattern: answers('pattern'),
    stream: async function* ({ url }) {
      yield { url }
    },
    refused: () => {
      throw new Error('refused')
    },
    broken: async function* () {
      yield {}
      throw new Error('broken')
    },
  },
  upgrades,
  upgradeHandlers: { one: says('one'), all: says('all') },
  refuseUpgrade: says('otherwise'),
  replyWithError: async (_request, response, thrown) => {
    failures.push((thrown as Error).message)
    if (response.headersSent) response.destroy()
    else response.writeHead(500).end((thrown as Error).message)
  },
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const { port } = server.address() as AddressInfo
const origin = `http://127.0.0.1:${port}`
after(() => server.close())

for (const [method, path, answer] of [
  ['GET', '/one', 'one'],
  ['GET', '/one?a=b', 'one'],
  ['PUT', '/one', 'put'],
  ['DELETE', '/one', /no DELETE \/one/],
  ['GET', '/one/', /no GET \/one/],
  ['POST', '/any/below?a=b', 'any'],
  ['GET', '/any', /no GET \/any/],
  ['GET', '/pattern/12', 'pattern'],
  ['GET', '/pattern/x', /no GET \/pattern/],
  ['GET', '/stream?a=b', 'data: {"url":"/stream?a=b"}\n\n'],
  ['GET', '/refused', 'refused'],
] as const) {
  test(`${method} ${path} is handled by ${answer}`, async () => {
    const text = await (await fetch(`${origin}${path}`, { method })).text()

    if (typeof answer === 'string') assert.equal(text, answer)
    else assert.match(text, answer)
  })
}

test('a stream that fails ends only itself', async () => {
  const broken = await fetch(`${origin}/broken`)
  await assert.rejects(broken.text())

  const { status } = await fetch(`${origin}/one`)

  assert.equal(status, 200)
  assert.equal(failures.at(-1), 'broken')
})

for (const [path, name] of [
  ['/one', 'one'],
  ['/one/', 'otherwise'],
  ['/one?a=b', 'otherwise'],
  ['/ones', 'otherwise'],
  ['/all/', 'all'],
  ['/all/below/it?a=b', 'all'],
  ['/all', 'otherwise'],
  ['/', 'otherwise'],
] as const) {
  test(`a WebSocket to ${path} is served by ${name}`, async () => {
    const headers = { connection: 'upgrade', upgrade: 'websocket' }
    const client = request({ host: '127.0.0.1', port, path, headers }).end()

    const [response, socket] = await once(client, 'upgrade')
    socket.destroy()

    assert.equal(response.headers.upgrade, name)
  })
}
