import assert from 'node:assert/strict'
import { createMCPClient } from '@ai-sdk/mcp'

const { BERTH_URL, BERTH_API_KEY } = process.env
const client = await createMCPClient({
  transport: { type: 'http', url: `${BERTH_URL}/mcp`, headers: { Authorization: `Bearer ${BERTH_API_KEY}` } },
})
const tools = await client.tools()
const call = async (name, args) => {
  const { content } = await tools[name].execute(args, { toolCallId: name, messages: [] })
  return JSON.parse(content[0].text)
}
const { session_id } = await call('manage_browsers', { action: 'create', headless: true })
const { stdout } = await call('exec_command', { session_id, command: 'echo', args: ['here'] })
assert.equal(stdout, 'here\n')
await call('manage_browsers', { action: 'delete', session_id })
await client.close()
