import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { Berth } from './testing/berth.ts'
import { zipOf } from './testing/browsers/extension-files.ts'
import { CommandRunner } from './testing/command-runner.ts'
import { startPages } from './testing/pages.ts'
import { SavedValues } from './testing/tables/call-table.ts'
import { commandTable } from './testing/tables/command-table.ts'
import { toolTable } from './testing/tables/tool-table.ts'

/*
 * Every command of the command line, and every MCP tool with each of its actions, against one berth. Each succeeds or
 * ends with a documented error. Other tests check their effects.
 */

const folder = await mkdtemp(join(tmpdir(), 'berth-calls-'))
const pages = await startPages()
pages.serve('/', 'page')
pages.serve('/hook', '')
const local = `127.0.0.1:${pages.port}`
const berth = await Berth.start({ environment: { BERTH_EGRESS_ALLOW: `${pages.allowed},${local}` } })
const environment = { PATH: process.env.PATH ?? '', HOME: folder, BERTH_URL: berth.url, BERTH_API_KEY: berth.apiKey }
const commands = await CommandRunner.open(folder, environment)
const tools = new Client({ name: 'test', version: '1' })
const headers = { authorization: `Bearer ${berth.apiKey}` }
await tools.connect(
  new StreamableHTTPClientTransport(new URL(`${berth.url}/mcp`), { requestInit: { headers } }) as never,
)
after(async () => {
  await tools.close()
  commands[Symbol.dispose]()
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

await writeFile(join(folder, 'a.txt'), 'text')
await writeFile(join(folder, 'key.txt'), berth.apiKey)
const manifest = JSON.stringify({ manifest_version: 3, name: 'ext', version: '1' })
await writeFile(join(folder, 'extension.zip'), await zipOf({ 'manifest.json': manifest }))

const day = 24 * 3_600_000
const values = new SavedValues({
  url: berth.url,
  pages: pages.url,
  local: `http://${local}`,
  port: String(pages.port),
  yesterday: new Date(Date.now() - day).toISOString(),
  tomorrow: new Date(Date.now() + day).toISOString(),
})

for (const row of commandTable) {
  test(`berth ${row.call}${row.error === undefined ? '' : ' fails'}`, async () => {
    const { exitCode, stdout, stderr } = await commands.run(row.call.split(' ').map((arg) => values.fill(arg)))

    if (row.error === undefined) assert.equal(exitCode, 0, stderr)
    else {
      assert.ok(exitCode >= 64 && exitCode < 78, `${exitCode} ${stderr}`)
      assert.match(stderr, /^berth: [^\n]+\n$/)
      assert.ok(stderr.includes(row.error) && !stderr.includes('internal_error'), stderr)
      assert.equal(stdout, '')
    }
    values.save(row, stdout)
  })
}

for (const row of toolTable) {
  const [, name = '', args = ''] = /^(\w+) (.*)$/.exec(row.call) ?? []

  test(`the tool ${row.call.slice(0, 80)}${row.error === undefined ? '' : ' fails'}`, async () => {
    const call = { name, arguments: JSON.parse(values.fill(args)) }

    const { content, isError = false } = (await tools.callTool(call)) as CallToolResult

    const text = content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n')
    assert.equal(isError, row.error !== undefined, text)
    if (row.error !== undefined) {
      assert.ok(text.startsWith(`Error in ${name}`) && text.includes(row.error), text)
      assert.ok(!text.includes('internal_error'), text)
    }
    values.save(row, text)
  })
}

test('the table has every command', async () => {
  const list = await readFile(join(import.meta.dirname, '../docs/cli-commands.md'), 'utf8')
  const all = [...list.matchAll(/^## berth ([a-z-]+(?: [a-z-]+)*)/gm)].map(([, words = '']) => words)

  const missing = all.filter((words) => !commandTable.some(({ call }) => `${call} `.startsWith(`${words} `)))

  assert.ok(all.length > 150)
  assert.deepEqual(missing, [])
})

test('the table has every tool with each of its actions', async () => {
  const { tools: all } = await tools.listTools()
  const expected = all.flatMap(({ name, inputSchema }) => {
    const { action } = (inputSchema.properties ?? {}) as { action?: { enum: readonly string[] } }
    return action ? action.enum.map((each) => `${name} {"action":"${each}"`) : [`${name} {`]
  })
  const called = toolTable.map(({ call }) => call.replace(/^(\w+) \{(.*)("action":"\w+")/, '$1 {$3'))

  assert.deepEqual(
    expected.filter((start) => !called.some((call) => call.startsWith(start))),
    [],
  )
})
