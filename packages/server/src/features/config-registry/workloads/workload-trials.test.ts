import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { AnalysisId } from '@berth/contract/common/ids.ts'
import type { ConfigRegistryResponse } from '@berth/contract/config-registry/config-registry.ts'
import { FakeSite } from '../../../testing/fakes/fake-site.ts'
import { TestServer } from '../../../testing/server-test.ts'

interface Asked {
  readonly authorization: string | undefined
  readonly body: {
    readonly model: string
    readonly messages: readonly { readonly role: string; readonly content: string }[]
  }
}

type ModelAnswer = (turn: number) => unknown

/** A server with OpenAI's API whose answers the test defines. */
let answerOf: ModelAnswer = () => ({})
let breakOff: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
const asked: Asked[] = []
const modelServer = createServer(async (request, response) => {
  const body = (await json(request)) as Asked['body']
  asked.push({ authorization: request.headers.authorization, body })
  if (breakOff) return breakOff(request, response)
  const said = answerOf(asked.length)
  const content = typeof said === 'string' ? said : JSON.stringify(said)
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content } }] }))
}).listen(0, '127.0.0.1')
await once(modelServer, 'listening')

const url = `http://127.0.0.1:${(modelServer.address() as AddressInfo).port}/v1/`
const server = await TestServer.open({ model: { url, name: 'small', key: 'model-key' } })
const site = new FakeSite(server)
after(async () => {
  await server.close()
  modelServer.closeAllConnections()
  modelServer.close()
})

let sites = 0
async function tryIntent(model: ModelAnswer): Promise<ConfigRegistryResponse> {
  asked.length = 0
  site.steps.length = 0
  answerOf = model
  const project = await server.project()
  const body = { url: `https://www.intent-${++sites}.example/`, intent: 'find the price' }
  const started = await project.call<ConfigRegistryResponse>('POST', '/config-registry/resolve', body)
  const id = started.body.analysis?.id as AnalysisId
  await server.services.analysisRunner.run(id, new AbortController().signal)
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
  return (await project.call<ConfigRegistryResponse>('GET', `/config-registry/analyses/${id}`)).body
}

for (const outcome of ['completed', 'auth_required', 'payment_required', 'blocked'] as const) {
  test(`an intent whose model says ${outcome} has that outcome`, async () => {
    const answer = await tryIntent(() => `\`\`\`json\n${JSON.stringify({ action: 'finish', outcome })}\n\`\`\``)

    assert.equal(answer.workload_outcome, outcome)
    assert.equal(answer.guidance, null)
    assert.equal(answer.analysis?.intent, 'find the price')
    assert.equal(asked.length, 1)
    assert.deepEqual([asked[0]?.authorization, asked[0]?.body.model], ['Bearer model-key', 'small'])
    assert.match(asked[0]?.body.messages[1]?.content ?? '', /find the price/)
  })
}

test('steps are executed only on the site, and failures are returned to the model', async () => {
  const steps = [
    { action: 'click', element: 0 },
    { action: 'fill', element: 1, text: '"quoted"' },
    { action: 'open', url: `https://other.example/` },
    'certainly! what would you like?',
    { action: 'open', url: 'https://shop.intent-5.example/prices' },
    { action: 'finish', outcome: 'completed' },
  ]
  sites = 4

  const answer = await tryIntent((turn) => steps[turn - 1])

  assert.equal(answer.workload_outcome, 'completed')
  assert.equal(site.steps.length, 3)
  assert.match(site.steps[1] ?? '', /fill\("\\"quoted\\""/)
  assert.match(site.steps[2] ?? '', /shop\.intent-5\.example/)
  const notes = asked.map(({ body }) => JSON.parse(body.messages.at(-1)?.content ?? '{}').note)
  assert.deepEqual(notes, [
    ...['', '', '', 'only pages of this site may be opened'],
    ...['the answer was none of the JSON objects', ''],
  ])
})

test('a step that leads to another site is reverted, and the model does not see that site', async () => {
  site.leadsTo = 'https://elsewhere.example/'
  try {
    const answer = await tryIntent((turn) =>
      turn === 1 ? { action: 'click', element: 0 } : { action: 'finish', outcome: 'completed' },
    )

    assert.equal(answer.workload_outcome, 'completed')
    const [, second] = asked.map(({ body }) => JSON.parse(body.messages.at(-1)?.content ?? '{}'))
    assert.match(second.url, /intent-\d+\.example/)
    assert.match(second.note, /another site/)
  } finally {
    site.leadsTo = undefined
  }
})

test('a model that never finishes is stopped', async () => {
  const answer = await tryIntent(() => ({ action: 'click', element: 0 }))

  assert.equal(answer.workload_outcome, 'turn_limit')
  assert.equal(asked.length, 15)
})

const breaks: Readonly<Record<string, NonNullable<typeof breakOff>>> = {
  'that is overloaded': (_request, response) => response.writeHead(503).end('{}'),
  'that answers with something else': (_request, response) => response.writeHead(200).end('{"choices": []}'),
  'that answers without end': (_request, response) => response.writeHead(200).end('x'.repeat(1024 * 1024)),
  'that hangs up': (request) => request.socket.destroy(),
  'that leads elsewhere': (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
}
for (const [what, broken] of Object.entries(breaks)) {
  test(`with a model ${what} the outcome is error, and the recommendation stands`, async () => {
    breakOff = broken
    try {
      const answer = await tryIntent(() => ({}))

      assert.equal(answer.workload_outcome, 'error')
      assert.equal(answer.recommendation?.type, 'recommendation')
      assert.equal(answer.analysis?.status, 'completed')
    } finally {
      breakOff = undefined
    }
  })
}

test('an intent for an unreachable site is blocked without asking the model', async () => {
  site.see = () => ({ status: 403 })
  try {
    const answer = await tryIntent(() => ({}))

    assert.equal(answer.workload_outcome, 'blocked')
    assert.deepEqual(asked, [])
  } finally {
    site.see = () => ({})
  }
})
