import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { defineEndpoint } from '@berth/contract/endpoint.ts'
import { z } from 'zod'
import { connectUnixSocket } from '../host/connect-unix-socket.ts'
import { AgentRefusal, commandAgent } from './command-agent.ts'

const double = defineEndpoint({
  operationId: 'double',
  method: 'POST',
  path: '/double',
  summary: 'Twice the number',
  tag: 'Test',
  access: 'internal',
  body: z.object({ number: z.int() }),
  reply: z.object({ number: z.int() }),
  status: 200,
  errors: [],
})

const folder = mkdtempSync(join(tmpdir(), 'berth-command-'))
const agentSocket = join(folder, 'agent.sock')
let answer: (response: ServerResponse, body: string) => void
const agent = createServer(async (request, response) => answer(response, await text(request))).listen(agentSocket)
await once(agent, 'listening')
after(() => {
  agent.closeAllConnections()
  agent.close()
  rmSync(folder, { recursive: true })
})

const machine = { connect: () => connectUnixSocket(agentSocket) }
const command = (limitMilliseconds = 5_000) => commandAgent(machine, double, { number: 21 }, { limitMilliseconds })

test('sends the body as JSON and resolves with the response', async () => {
  answer = (response, body) => response.end(JSON.stringify({ number: JSON.parse(body).number * 2 }))

  assert.deepEqual(await command(), { number: 42 })
})

test('rejects with the code and the truncated message of an error response', async () => {
  answer = (response) => response.writeHead(409).end(JSON.stringify({ code: 'odd', message: 'x'.repeat(10_000) }))

  await assert.rejects(command(), (refusal) => {
    assert.ok(refusal instanceof AgentRefusal)
    assert.deepEqual([refusal.status, refusal.code, refusal.message.length], [409, 'odd', 500])
    return true
  })
})

for (const words of ['', 'no JSON', 'null', '[1]', '{"code":{"a":1},"message":7}']) {
  test(`accepts an error response with ${words || 'nothing'}`, async () => {
    answer = (response) => response.writeHead(500).end(words)

    await assert.rejects(command(), AgentRefusal)
  })
}

for (const [what, reply] of [
  ['says something that is not declared', (response) => response.end('{"number":"many"}')],
  ['says no JSON', (response) => response.end('<html>')],
  ['breaks off', (response) => response.writeHead(200).write('{', () => response.destroy())],
  ['hangs up', (response) => response.destroy()],
  ['says nothing', () => {}],
] satisfies [string, (response: ServerResponse) => void][]) {
  test(`treats an agent that ${what} as unreachable`, async () => {
    answer = reply

    await assert.rejects(command(what === 'says nothing' ? 100 : undefined), { code: 'session_unreachable' })
  })
}

test('treats a missing agent as unreachable', async () => {
  const absent = { connect: () => connectUnixSocket(join(folder, 'nobody.sock')) }

  await assert.rejects(commandAgent(absent, double, { number: 1 }), { code: 'session_unreachable' })
})
