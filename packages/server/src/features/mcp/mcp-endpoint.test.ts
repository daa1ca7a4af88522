import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const owner = await server.project()

test('reports progress to who asks for it, and completes arguments', async () => {
  const client = new Client({ name: 'test', version: '1' })
  const headers = { authorization: `Bearer ${owner.key}` }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }) as never,
  )
  const told: number[] = []

  const result = await client.callTool({ name: 'get_connection_context' }, undefined, {
    onprogress: ({ progress }) => void told.push(progress),
  })
  const { completion } = await client.complete({
    ref: { type: 'ref/prompt', name: 'kernel-concepts' },
    argument: { name: 'concept', value: 'b' },
  })
  await client.close()

  assert.notEqual(result.isError, true)
  assert.equal(told[0], 0)
  assert.deepEqual(completion.values, ['browsers'])
})

test('refuses pages that reach it by a name of their own', async () => {
  const statusFor = async (host: string, origin: string) => {
    const headers = { host, origin, authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' }
    const sent = request(`${server.url}/mcp`, { method: 'POST', headers })
    sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }
  const own = new URL(server.url).host

  assert.equal(await statusFor('evil.example', 'http://evil.example'), 403)
  assert.equal(await statusFor(own, server.url), 200)
  assert.equal(await statusFor(own, 'https://inspector.example'), 200)
})
