import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const { CDP_WS_URL, CDP_HTTP_URL, SITE } = process.env
const program = new URL('node_modules/.bin/chrome-devtools-mcp', import.meta.url).pathname
for (const way of [
  ['--wsEndpoint', CDP_WS_URL],
  ['--browserUrl', CDP_HTTP_URL],
]) {
  const client = new Client({ name: 'berth', version: '1' })
  const args = [...way, '--no-usage-statistics', '--no-performance-crux']
  await client.connect(new StdioClientTransport({ command: program, args, env: process.env }))
  const call = async (name, given = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: given }, undefined, { timeout: 60_000 })
    const text = content.map((part) => part.text ?? '').join('\n')
    assert.ok(!isError, text)
    return text
  }
  const [, number] = /^(\d+):/m.exec(await call('list_pages')) ?? []
  const page = { pageId: Number(number) }
  await call('navigate_page', { ...page, type: 'url', url: SITE })
  assert.match(await call('take_snapshot', page), /A form/)
  assert.match(await call('list_network_requests', page), /200/)
  assert.match(await call('performance_start_trace', { ...page, reload: true, autoStop: true }), /LCP/)
  await client.close()
}
