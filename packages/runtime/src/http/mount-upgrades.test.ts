import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { defineUpgrade } from '@berth/contract/upgrade.ts'
import { mountUpgrades, type UpgradeHandler } from './mount-upgrades.ts'

const upgrades = [defineUpgrade({ name: 'one', path: '/one' }), defineUpgrade({ name: 'all', path: '/all/' })] as const
const says =
  (name: string): UpgradeHandler =>
  (_request, socket) =>
    socket.end(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${name}\r\n\r\n`)
const server = createServer()
mountUpgrades(server, upgrades, { one: says('one'), all: says('all') }, says('otherwise'))
await once(server.listen(0, '127.0.0.1'), 'listening')
after(() => server.close())

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
  test(`${path} is served by ${name}`, async () => {
    const { port } = server.address() as AddressInfo
    const headers = { connection: 'upgrade', upgrade: 'websocket' }
    const client = request({ host: '127.0.0.1', port, path, headers }).end()

    const [response, socket] = await once(client, 'upgrade')
    socket.destroy()

    assert.equal(response.headers.upgrade, name)
  })
}
