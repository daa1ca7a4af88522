import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { followInvocation } from '@berth/contract/apps/app-endpoints.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { ApiClient } from '../api/api-client.ts'
import { followAcross } from './follow-to-end.ts'

type Answer = (response: ServerResponse, query: URLSearchParams) => void
const answers: Answer[] = []
const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://berth')
  answers.shift()?.(response, searchParams)
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
after(() => server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const client = new ApiClient({ url, apiKey: 'sk_test', project: undefined })

const write = (response: ServerResponse, ...events: readonly object[]) =>
  response.write(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
const line = (second: number, message: string) => ({
  event: 'log',
  message,
  timestamp: `2026-01-01T00:00:0${second}.000Z`,
})
const succeeded = { event: 'invocation_state', invocation: { id: 'one', status: 'succeeded' } }

async function messages(): Promise<readonly string[]> {
  const events = await Array.fromAsync(followAcross(client, followInvocation as Endpoint, 'one'))
  return events.map((event) => (event.event === 'log' ? event.message : event.event))
}

for (const [how, end] of [
  ['breaks off', (response: ServerResponse) => response.destroy()],
  ['is ended by a server that stops', (response: ServerResponse) => response.end()],
] as const) {
  test(`a log continues after its last line when its connection ${how}`, async () => {
    const asked: (string | null)[] = []
    answers.push(
      (response, query) => {
        asked.push(query.get('since'))
        write(response, line(1, 'a'), line(2, 'b'), line(2, 'c'))
        setImmediate(() => end(response))
      },
      (response, query) => {
        asked.push(query.get('since'))
        write(response, line(2, 'b'), line(2, 'c'), line(2, 'd'), line(3, 'e'), succeeded)
        response.end()
      },
    )

    assert.deepEqual(await messages(), ['a', 'b', 'c', 'd', 'e', 'invocation_state'])
    assert.deepEqual(asked, [null, '2026-01-01T00:00:02.000Z'])
  })
}

test('a stream that cannot be opened, or is refused later, is reported immediately', async () => {
  const refuse: Answer = (response) => response.writeHead(404).end('{"code":"invocation_not_found","message":"gone"}')
  answers.push(refuse)
  await assert.rejects(messages(), /invocation_not_found/)

  answers.push((response) => {
    write(response, line(1, 'a'))
    setImmediate(() => response.destroy())
  }, refuse)
  await assert.rejects(messages(), /invocation_not_found/)
})
