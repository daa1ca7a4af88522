import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operations } from '@berth/contract/agent/operations.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import { Unsupported } from '@berth/contract/common/unsupported.ts'
import { filledPath } from '@berth/contract/endpoint.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { sql } from 'kysely'
import { z } from 'zod'
import { TestServer } from './testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const project = await server.project()

interface ErrorAnswer {
  readonly code: string
  readonly message: string
}

const withPath = publicEndpoints.filter(({ path }) => path.includes('{'))
for (const { method, path, operationId } of withPath) {
  test(`${operationId} rejects a NUL character in its path`, async () => {
    const odd = filledPath(
      path,
      Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, 'a\0b'])),
    )

    const { status, body } = await project.call<ErrorAnswer>(method, odd, method === 'GET' ? undefined : {})

    assert.equal(status, 400)
    assert.match(body.message, /NUL/)
  })
}

for (const { method, path, operationId } of publicEndpoints.filter(({ method }) => method === 'GET')) {
  test(`${operationId} accepts a trailing slash`, async () => {
    const filled = filledPath(
      path,
      Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, 'none'])),
    )

    const [plain, slashed] = await Promise.all(
      [filled, `${filled}/`].map((tried) => project.call<ErrorAnswer>(method, tried)),
    )

    assert.deepEqual([slashed?.status, slashed?.body?.code], [plain?.status, plain?.body?.code])
    assert.notEqual(slashed?.body?.code, 'route_not_found')
  })
}

test('text that the database cannot store is an invalid request, in any field', async () => {
  await assert.rejects(sql`select ${'a\0b'}::text`.execute(server.database), { code: 'bad_request' })
  await assert.rejects(sql`select ${'"\\u0000"'}::jsonb ->> 0`.execute(server.database), { code: 'bad_request' })
})

/** Lists below a resource need its id. */
const resourceIds: Readonly<Record<string, () => Promise<string>>> = {
  listAuthTimeline: () => connectionId(),
  listWebhookDeliveries: async () =>
    (await project.call<{ id: string }>('POST', '/webhooks', { url: 'https://receiver.example' })).body.id,
}

for (const { path: template, operationId } of publicEndpoints.filter(({ paged }) => paged)) {
  test(`${operationId} clamps values that are too large, and returns the used ones`, async () => {
    const path = filledPath(template, { id: (await resourceIds[operationId]?.()) ?? '' })
    const { status, headers, body } = await project.call<unknown[]>('GET', `${path}?limit=101&offset=${'9'.repeat(10)}`)
    const huge = await project.call<unknown[]>('GET', `${path}?limit=${'9'.repeat(40)}&offset=${'9'.repeat(400)}`)

    assert.deepEqual([status, headers.get('x-limit'), headers.get('x-offset'), body], [200, '100', '9999999999', []])
    assert.deepEqual([huge.status, huge.headers.get('x-limit'), huge.body], [200, '100', []])
  })
}

/** The owner of the only list below another resource. */
async function connectionId(): Promise<string> {
  const body = { domain: 'site.test', profile_name: 'of-connection' }
  return (await project.call<{ id: string }>('POST', '/auth/connections', body)).body.id
}

test('rows of one millisecond are listed in the order of their creation', async () => {
  const other = await server.project()
  const names = Array.from({ length: 30 }, (_, index) => `p${index}`)
  for (const name of names) await other.call('POST', '/profiles', { name })

  const { body } = await other.call<{ name: string; created_at: string }[]>('GET', '/profiles?limit=100')

  assert.equal(new Set(body.map(({ created_at }) => created_at)).size, 1, 'the clock of this test stands still')
  assert.deepEqual(
    body.map(({ name }) => name),
    names.toReversed(),
  )
})

const memories: readonly (readonly [headless: boolean, memory: string | undefined, status: number, shown: string])[] = [
  [true, undefined, 200, '1GiB'],
  [true, '1GiB', 200, '1GiB'],
  [true, '2GiB', 200, '2GiB'],
  [true, '8GiB', 400, 'memory: a headless session can have 1GiB or 2GiB.'],
  [false, undefined, 200, '8GiB'],
  [false, '16GiB', 200, '16GiB'],
  [false, '1GiB', 400, 'memory: a headful session can have 8GiB or 16GiB.'],
  [false, '6GiB', 400, 'memory: must be one of'],
]
for (const [headless, memory, status, shown] of memories) {
  test(`a ${headless ? 'headless' : 'headful'} session with memory ${memory} is answered with ${status}`, async () => {
    const answer = await project.call<Browser & ErrorAnswer>('POST', '/browsers', { headless, memory })

    assert.equal(answer.status, status)
    if (status === 200) assert.equal(answer.body.memory, shown)
    else assert.ok(answer.body.message.startsWith(shown), answer.body.message)
  })
}

const brokenRules: readonly (readonly [method: string, path: string, body: unknown, message: RegExp])[] = [
  ['PATCH', '/browsers/x', { name: 1 }, /^name: must be a string, or the empty string, not a number\.$/],
  ['PATCH', '/browsers/x', { name: 'a b' }, /^name: must have 1 to 255 characters out of letters/],
  ['PATCH', '/browsers/x', { name: {} }, /^name: must be a string, or the empty string, not an object of 0 keys\.$/],
  ['PATCH', '/browsers/x', { timeout_seconds: 600 }, /^timeout_seconds: cannot be changed\.$/],
  ['PATCH', '/proxies/x', { name: 'x', config: { port: 1 } }, /^config: cannot be changed\.$/],
  ['PATCH', '/org/api_keys/x', { name: 'x', project_id: 'y' }, /^project_id: cannot be changed\.$/],
  ['PATCH', '/audit-logs/export/destinations/x', { type: 's3' }, /^type: cannot be changed\.$/],
  ['GET', `/deployments/${'x'.repeat(9_000)}`, undefined, /x{100}…$/],
  ['PATCH', '/credentials/x', Object.fromEntries(Array.from({ length: 5_000 }, (_, key) => [key, 1])), /^.{2000}…$/],
  [
    'GET',
    `/browsers?query=${'x'.repeat(20_000)}`,
    undefined,
    /^The address and the headers must have at most 16384 bytes/,
  ],
]
for (const [method, path, body, message] of brokenRules) {
  test(`${method} ${path.slice(0, 40)} ${JSON.stringify(body)?.slice(0, 40)} is rejected with the violated rule`, async () => {
    assert.match((await project.call<ErrorAnswer>(method, path, body)).body.message, message)
  })
}

test('a proxy is found by its id, and by a unique name', async () => {
  const make = (name: string) =>
    project.call<{ id: string }>('POST', '/proxies', { type: 'custom', name, config: { host: 'p.test', port: 80 } })
  const [one, twin] = [await make('one'), await make('twin')]
  await make('twin')
  const status = async (method: string, path: string, body?: unknown) =>
    (await project.call<ErrorAnswer>(method, path, body)).status

  assert.equal((await project.call<{ id: string }>('GET', '/proxies/one')).body.id, one.body.id)
  assert.equal(await status('GET', `/proxies/${twin.body.id}`), 200)
  assert.match((await project.call<ErrorAnswer>('GET', '/proxies/twin')).body.message, /several active proxies/)
  assert.equal(await status('PATCH', '/proxies/one', { name: 'renamed' }), 200)
  assert.equal(await status('POST', '/proxies/renamed/check', {}), 200)
  assert.equal(await status('DELETE', '/proxies/renamed'), 204)
  assert.equal(await status('GET', '/proxies/renamed'), 404)
})

/** The path of each field in the schema that berth does not support. */
function fieldsNotServed(schema: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (schema === Unsupported) return [path]
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  ) {
    return fieldsNotServed(schema.unwrap(), path)
  }
  if (schema instanceof z.ZodArray) return fieldsNotServed(schema.element, [...path, '0'])
  if (!(schema instanceof z.ZodObject)) return []
  return Object.entries(schema.shape).flatMap(([name, member]) => fieldsNotServed(member, [...path, name]))
}

const notServed = publicEndpoints.flatMap((endpoint) =>
  fieldsNotServed(endpoint.body).map((path) => ({ endpoint, field: path.join('.'), path })),
)

test('some fields of the API are not supported', () => {
  assert.ok(
    notServed.some(({ endpoint, field }) => endpoint.operationId === 'createBrowser' && field === 'video_memory'),
  )
})

for (const { endpoint, field, path } of notServed) {
  test(`${endpoint.operationId} rejects ${field} by name with any value`, async () => {
    for (const value of [true, false, 'x', 0, [], {}, [{ name: 'x' }]]) {
      const body = path.reduceRight<unknown>((inner, name) => (name === '0' ? [inner] : { [name]: inner }), value)
      const isAgents = operations.some(({ operationId }) => operationId === endpoint.operationId)
      const refusal = isAgents
        ? await Promise.try(() => validate(endpoint.body as z.ZodType, body, 'body')).catch(
            (error: Error) => error.message,
          )
        : (await project.call<ErrorAnswer>(endpoint.method, endpoint.path.replaceAll(/[{}]/g, ''), body)).body.message

      assert.match(String(refusal), new RegExp(`^${RegExp.escape(field)}: is not supported`))
    }
  })
}
