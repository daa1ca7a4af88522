import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const { BERTH_URL, BERTH_API_KEY } = process.env
const program = new URL('node_modules/.bin/mcp-inspector', import.meta.url).pathname

async function inspect(...args) {
  const server = [`${BERTH_URL}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${BERTH_API_KEY}`]
  const { stdout } = await promisify(execFile)(program, ['--cli', ...server, ...args], { env: process.env })
  return JSON.parse(stdout)
}

const { tools } = await inspect('--method', 'tools/list')
assert.ok(tools.some(({ name }) => name === 'manage_browsers'))
const { content } = await inspect('--method', 'tools/call', '--tool-name', 'get_connection_context')
assert.equal(JSON.parse(content[0].text).scope, 'organization')
const { prompts } = await inspect('--method', 'prompts/list')
assert.equal(prompts.length, 2)
