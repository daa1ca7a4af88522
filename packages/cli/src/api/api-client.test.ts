import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { after, test } from 'node:test'
import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import { ApiClient } from './api-client.ts'
import { ApiFailure } from './api-failure.ts'

const open: Server[] = []
after(() => {
  for (const server of open) server.close()
})

async function listening(server: Server): Promise<number> {
  open.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const plain = async (answer: RequestListener) => `http://127.0.0.1:${await listening(createServer(answer))}`
const html = '<!doctype html>\n<html>\n<p>Not a berth'

async function unusedPort(): Promise<number> {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function withTls(): Promise<string> {
  const file = (name: string) =>
    readFile(new URL(`../../../../e2e/testing/servers/certificates/${name}`, import.meta.url))
  const server = createTlsServer({ cert: await file('server.pem'), key: await file('server-key.pem') })
  return `https://127.0.0.1:${await listening(server)}`
}

type Case = readonly [what: string, address: () => Promise<string>, message: RegExp, exitCode: number]
const cases: readonly Case[] = [
  ['nobody listens', async () => `http://127.0.0.1:${await unusedPort()}`, /cannot be reached: .*ECONNREFUSED/, 69],
  ['the certificate is not trusted', withTls, /cannot be reached: .*certificate.*\(NODE_EXTRA_CA_CERTS /, 69],
  [
    'the server has no TLS',
    async () => (await plain((_request, response) => response.end())).replace('http:', 'https:'),
    /cannot be reached: .*\(use http:\/\/ for an address without TLS\)/,
    69,
  ],
  [
    'a page answers',
    () => plain((_request, response) => response.end(html)),
    /is not a berth server \(berth login stores another address\)$/,
    70,
  ],
  [
    'a page answers with an error',
    () => plain((_request, response) => response.writeHead(404).end(html)),
    /it answered with status 404, unlike a berth server/,
    66,
  ],
  [
    'the reply breaks off',
    () =>
      plain((_request, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{')
        setImmediate(() => response.destroy())
      }),
    /the connection to http:.* broke off: /,
    69,
  ],
]

for (const [what, address, message, exitCode] of cases) {
  test(`reports in one line that ${what}`, async () => {
    const client = new ApiClient({ url: await address(), apiKey: 'sk_test', project: undefined })

    const failure = await client.call(getAuthContext).catch((error: unknown) => error)

    assert.ok(failure instanceof ApiFailure, String(failure))
    assert.match(failure.message, message)
    assert.doesNotMatch(failure.message, /\n/)
    assert.equal(failure.exitCode, exitCode)
  })
}
