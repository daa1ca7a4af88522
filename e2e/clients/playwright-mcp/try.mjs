import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const { CDP_WS_URL, CDP_HTTP_URL, SITE } = process.env
const program = new URL('node_modules/.bin/playwright-mcp', import.meta.url).pathname
for (const address of [CDP_WS_URL, CDP_HTTP_URL]) {
  const client = new Client({ name: 'berth', version: '1' })
  await client.connect(
    new StdioClientTransport({ command: program, args: ['--cdp-endpoint', address], env: process.env }),
  )
  const call = async (name, args) => {
    const { content, isError } = await client.callTool({ name, arguments: args })
    const text = content.map((part) => part.text ?? '').join('\n')
    assert.ok(!isError, text)
    return text
  }
  await call('browser_navigate', { url: SITE })
  const [, box] = /textbox "Text".*?\[ref=(\w+)\]/.exec(await call('browser_snapshot', {})) ?? []
  await call('browser_type', { element: 'the text', ref: box, target: box, text: 'sent', submit: true })
  assert.match(await call('browser_snapshot', {}), /Page Title: sent/)
  await client.close()
}
