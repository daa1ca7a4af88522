import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import WebSocket from 'ws'
import { TestServer } from '../../testing/server-test.ts'
import { rebuildDiscoveryResponse } from '../discovery/discovery-responses.ts'

const server = await TestServer.open()
after(() => server.close())

async function open(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url)
  await once(socket, 'open')
  return socket
}

async function refusal(url: string): Promise<number | undefined> {
  const socket = new WebSocket(url)
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  response.resume()
  return response.statusCode
}

for (const name of ['cdp_ws_url', 'webdriver_ws_url'] as const) {
  test(`passes bytes in both directions on ${name}`, async () => {
    const project = await server.project()
    const session = await project.session()
    const socket = await open(session[name])

    socket.send('x'.repeat(3_000_000))
    const [echo] = await once(socket, 'message')

    assert.equal(String(echo).length, 3_000_000)
    socket.terminate()
  })
}

test('rejects a missing, a damaged and a foreign token before the upgrade', async () => {
  const project = await server.project()
  const [one, two] = [await project.session(), await project.session()]
  const path = one.cdp_ws_url.split('?')[0]

  assert.equal(await refusal(`${path}`), 401)
  assert.equal(await refusal(`${path}?jwt=a.b.c`), 401)
  assert.equal(await refusal(`${path}${new URL(two.cdp_ws_url).search}`), 401)
  assert.equal(await refusal(one.cdp_ws_url.replace('/cdp', '/nothing')), 404)
})

test('rejects a handshake of another protocol', async () => {
  const project = await server.project()
  const { pathname, search } = new URL((await project.session()).cdp_ws_url)
  const key = 'dGhlIHNhbXBsZSBub25jZQ=='
  const statusOf = async (headers: Record<string, string>) => {
    const asking = request({
      port: server.port,
      path: `${pathname}${search}`,
      headers: { connection: 'Upgrade', ...headers },
    })
    asking.end()
    const [response] = await once(asking, 'response')
    response.resume()
    return response.statusCode
  }

  assert.equal(await statusOf({ upgrade: 'websocket', 'sec-websocket-version': '12', 'sec-websocket-key': key }), 400)
  assert.equal(await statusOf({ upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': '' }), 400)
  assert.equal(await statusOf({ upgrade: 'h2c', 'sec-websocket-version': '13', 'sec-websocket-key': key }), 400)
})

test('a token ends with its session, and open connections are closed', async () => {
  const project = await server.project()
  const { cdp_ws_url, session_id } = await project.session()
  const socket = await open(cdp_ws_url)

  const closed = once(socket, 'close')
  await project.call('DELETE', `/browsers/${session_id}`)
  await closed

  assert.equal(await refusal(cdp_ws_url), 404)
})

test('a machine that ends closes its connections', async () => {
  const project = await server.project()
  const { cdp_ws_url, session_id } = await project.session()
  const socket = await open(cdp_ws_url)

  const closed = once(socket, 'close')
  server.host.agentOf(session_id as SessionId).kill()

  await closed
})

test('discovery returns addresses of berth, whatever Chromium returns', () => {
  const address = { base: 'https://berth.example/x', id: 'brw1' as SessionId, token: 'a.b.c' }

  const list = JSON.stringify([
    {
      id: 'T1',
      type: 'page',
      devtoolsFrontendUrl: 'https://devtools.example/inspector.html?ws=127.0.0.1:9222/devtools/page/T1',
      webSocketDebuggerUrl: 'ws://127.0.0.1:9222/devtools/page/T1',
    },
    { id: 'T2', type: 'page' },
  ])

  const rewritten = rebuildDiscoveryResponse('/list', list, address)

  assert.deepEqual(rewritten, [
    {
      id: 'T1',
      type: 'page',
      devtoolsFrontendUrl:
        'https://berth.example/x/s/brw1/devtools/inspector.html?jwt=a.b.c&wss=berth.example%2Fx%2Fs%2Fbrw1%2Fdevtools%2Fpage%2FT1%3Fjwt%3Da.b.c',
      webSocketDebuggerUrl: 'wss://berth.example/x/s/brw1/devtools/page/T1?jwt=a.b.c',
    },
    { id: 'T2', type: 'page' },
  ])
})
