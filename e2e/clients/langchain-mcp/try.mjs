import assert from 'node:assert/strict'
import { MultiServerMCPClient } from '@langchain/mcp-adapters'

const { BERTH_URL, BERTH_API_KEY } = process.env
const client = new MultiServerMCPClient({
  berth: { transport: 'http', url: `${BERTH_URL}/mcp`, headers: { Authorization: `Bearer ${BERTH_API_KEY}` } },
})
const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]))
const created = JSON.parse(await tools.manage_browsers.invoke({ action: 'create', headless: true }))
const ran = JSON.parse(
  await tools.execute_playwright_code.invoke({ session_id: created.session_id, code: 'return 6 * 7' }),
)
assert.equal(ran.result, 42)
await tools.manage_browsers.invoke({ action: 'delete', session_id: created.session_id })
await assert.rejects(
  tools.manage_browsers.invoke({ action: 'get', session_id: created.session_id }),
  /session_not_found/,
)
await client.close()
