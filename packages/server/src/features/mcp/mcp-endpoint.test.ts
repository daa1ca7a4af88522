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

async function openClient(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const headers = { authorization: `Bearer ${owner.key}` }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }) as never,
  )
  return client
}

test('truncates results that are too long for a model, and reports it', async () => {
  const stdout_b64 = Buffer.from('x'.repeat(1024 ** 2)).toString('base64')
  server.host.operationsOf = () => (request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ exit_code: 0, stdout_b64, stderr_b64: '', duration_ms: 1 }))
  }
  const { session_id } = await owner.session()
  const client = await openClient()

  const result = await client.callTool({ name: 'exec_command', arguments: { session_id, command: 'yes' } })
  await client.close()

  const [{ text = '' } = {}] = result.content as { readonly text?: string }[]
  assert.ok(text.length < 201_000, `${text.length}`)
  assert.match(text, /xxx\n… \(cut: \d{6} more characters\)$/)
})

test('reports progress to clients that request it, and completes arguments', async () => {
  const client = await openClient()
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

test('rejects pages that reach it under their own host name', async () => {
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
