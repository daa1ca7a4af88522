import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { zip } from '@berth/runtime/testing/zip.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const id = 'abcdefghijklmnopabcdefghijklmnop'
const page = `https://chromewebstore.google.com/detail/a-name/${id}`
const archive = zip({ name: 'manifest.json', content: '{}' })

let answer: RequestListener
let asked: string[] = []
const store = createServer((request, response) => {
  asked.push(request.url ?? '')
  answer(request, response)
}).listen(0, '127.0.0.1')
await once(store, 'listening')
const storeUrl = `http://127.0.0.1:${(store.address() as AddressInfo).port}`
/** Represents a host outside the store, such as one in the operator's network. */
const elsewhere = createServer((_request, response) => response.end(crx())).listen(0, '127.0.0.1')
await once(elsewhere, 'listening')
let visits = 0
elsewhere.on('connection', () => visits++)

let server: TestServer
let project: TestProject
before(async () => {
  server = await TestServer.open({ chromeStoreUrl: `${storeUrl}/crx` })
  project = await server.project()
})
after(async () => {
  await server.close()
  for (const other of [store, elsewhere]) {
    other.closeAllConnections()
    other.close()
  }
})

/** A packed extension. Of its header, only the length is used. */
function crx({ magic = 'Cr24', version = 3, content = archive } = {}): Buffer {
  const head = Buffer.alloc(12)
  head.write(magic)
  head.writeUInt32LE(version, 4)
  head.writeUInt32LE(100, 8)
  return Buffer.concat([head, Buffer.alloc(100, 1), content])
}

async function fetchExtension(query: Record<string, string>) {
  asked = []
  const path = `/extensions/from_chrome_store?${new URLSearchParams(query)}`
  const response = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${project.key}` } })
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    bytes: Buffer.from(await response.arrayBuffer()),
  }
}

for (const url of [
  page,
  `https://chromewebstore.google.com/detail/${id}?hl=de`,
  `https://chrome.google.com/webstore/detail/a-name/${id}/`,
]) {
  test(`returns the archive of ${url.slice(0, 50)}… without its signature`, async () => {
    answer = (request, response) => {
      if (request.url?.startsWith('/crx?')) response.writeHead(302, { location: '/blob.crx' }).end()
      else response.end(crx())
    }

    const { status, type, bytes } = await fetchExtension({ url, os: 'mac' })

    assert.deepEqual([status, type], [200, 'application/octet-stream'])
    assert.deepEqual(bytes, archive)
    const query = new URLSearchParams(asked[0]?.split('?')[1])
    assert.equal(query.get('os'), 'mac')
    assert.equal(query.get('x'), `id=${id}&installsource=ondemand&uc`)
    assert.equal(asked[1], '/blob.crx')
  })
}

for (const [what, reply, reason] of [
  ['has none', (_request, response) => response.writeHead(204).end(), /status 204/],
  ['is out of order', (_request, response) => response.writeHead(500).end(), /status 500/],
  ['hangs up', (request) => request.socket.destroy(), /cannot be reached/],
  ['answers with a page', (_request, response) => response.end('<html>'), /not a packed extension/],
  ['answers with an old format', (_request, response) => response.end(crx({ version: 2 })), /outdated/],
  [
    'answers with a header alone',
    (_request, response) => response.end(crx({ content: Buffer.alloc(0) })),
    /ends before/,
  ],
  [
    'sends on and on',
    (request, response) => response.writeHead(302, { location: request.url }).end(),
    /redirects too often/,
  ],
  [
    'sends to another host',
    (_request, response) => {
      const { port } = elsewhere.address() as AddressInfo
      response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end()
    },
    /another host/,
  ],
] as [string, RequestListener, RegExp][]) {
  test(`reports that the store ${what}`, async () => {
    answer = reply

    const { status, bytes } = await fetchExtension({ url: page })

    const { code, message } = JSON.parse(String(bytes))
    assert.deepEqual([status, code], [400, 'chrome_store_refused'])
    assert.match(message, reason)
    assert.equal(visits, 0)
  })
}

for (const url of [
  '',
  'nonsense',
  `http://chromewebstore.google.com/detail/x/${id}`,
  `https://chromewebstore.google.com.evil.test/detail/x/${id}`,
  `https://chromewebstore.google.com@evil.test/detail/x/${id}`,
  `https://chromewebstore.google.com:8443/detail/x/${id}`,
  'https://chromewebstore.google.com/detail/x/tooshort',
  `http://127.0.0.1/detail/x/${id}`,
]) {
  test(`sends no request for ${url || 'no address'}`, async () => {
    const { status } = await fetchExtension({ url })

    assert.equal(status, 400)
    assert.deepEqual(asked, [])
  })
}

test('rejects an unknown system', async () => {
  assert.equal((await fetchExtension({ url: page, os: 'beos' })).status, 400)
})
