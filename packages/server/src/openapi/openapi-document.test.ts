import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorsOf } from '@berth/contract/endpoint.ts'
import { errorCatalogue, publicCodeOf } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { openApiDocument } from './openapi-document.ts'

// Serialized as JSON, as readers receive it.
const document = JSON.parse(JSON.stringify(openApiDocument()))
const operationOf = ({ path, method }: { path: string; method: string }) => document.paths[path][method.toLowerCase()]
const parameterOf = (operation: { parameters: { name: string }[] }, name: string) =>
  operation.parameters.find((parameter) => parameter.name === name)

test('every public endpoint is an operation with its success and every status of its errors', () => {
  for (const endpoint of publicEndpoints) {
    const operation = operationOf(endpoint)

    assert.equal(operation.operationId, endpoint.operationId)
    for (const code of errorsOf(endpoint)) {
      const response = operation.responses[errorCatalogue[code].status]
      assert.match(response.description, new RegExp(`\`${publicCodeOf(code)}\``))
      const body = code === 'auth_connection_exists' ? 'AlreadyExistsError' : 'Error'
      assert.equal(response.content['application/json'].schema.$ref, `#/components/schemas/${body}`)
    }
    assert.ok(operation.responses[endpoint.status], `${endpoint.operationId} has no response ${endpoint.status}`)
  }
})

test('public operations require neither a key nor a project', () => {
  const health = document.paths['/health'].get

  assert.deepEqual(health.security, [])
  assert.deepEqual(health.parameters, [])
})

test('operations of a project name both project headers', () => {
  const operation = document.paths['/browsers'].post

  assert.equal(operation.security, undefined)
  assert.ok(parameterOf(operation, 'X-Kernel-Project-Id'))
  assert.ok(parameterOf(operation, 'X-Kernel-Project'))
})

test('a list declares its paging headers, and accepts tags as the official clients write them', () => {
  const list = document.paths['/browsers'].get

  const headers = Object.keys(list.responses[200].headers)

  assert.deepEqual(headers, ['X-Limit', 'X-Offset', 'X-Has-More', 'X-Next-Offset'])
  assert.partialDeepStrictEqual(parameterOf(list, 'tags'), { in: 'query', style: 'deepObject', explode: true })
})

test('an override of the contract replaces what Zod knows about the text before a transform', () => {
  const { parameters } = document.paths['/browsers'].get

  const limit = parameters.find(({ name }: { name: string }) => name === 'limit')

  const description = 'Larger values are reduced to 100.'
  assert.deepEqual(limit.schema, { type: 'integer', minimum: 1, default: 20, description })
})

test('a body whose fields all have defaults may be absent', () => {
  assert.equal(document.paths['/browsers'].post.requestBody.required, false)
})

test('a reserved status that berth never returns is documented with its reason', () => {
  assert.match(
    document.paths['/proxies/{id_or_name}/check'].post.responses[422].description,
    /^Unprocessable Entity\. Reserved: /,
  )
})

test('every reference leads to a component, and every component is used', () => {
  const text = JSON.stringify(document)
  const references = new Set([...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name))

  assert.deepEqual([...references].sort(), Object.keys(document.components.schemas).sort())
})

test('responses may gain fields: no schema of a response forbids additional ones', () => {
  assert.equal(document.components.schemas.Browser.additionalProperties, undefined)
})

test('every stream of events declares its headers', () => {
  const streams = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods as Record<string, { responses: Record<string, Answer> }>))
    .map(({ responses }) => responses[200])
    .filter((answer) => answer?.content?.['text/event-stream'])

  assert.ok(streams.length >= 2)
  for (const answer of streams) {
    assert.equal(answer?.headers?.['X-SSE-Content-Type']?.schema.const, 'application/json')
    assert.equal(answer?.headers?.['X-Accel-Buffering']?.schema.const, 'no')
    assert.match(answer?.headers?.['Cache-Control']?.schema.const ?? '', /no-transform/)
  }
})

test('a response with a retry time declares it', () => {
  const { responses } = document.paths['/browsers'].post

  for (const status of [429, 503, 529]) assert.equal(responses[status].headers['Retry-After'].schema.type, 'integer')
  assert.equal(responses[409].headers['Retry-After'], undefined)
})

test('the end of a program is an enum, as in the official clients', () => {
  const { anyOf } = document.components.schemas.ProcessStreamEvent

  assert.deepEqual(anyOf.find(({ required }: { required: string[] }) => required.includes('event')).properties.event, {
    type: 'string',
    enum: ['exit'],
  })
})

interface Answer {
  readonly content?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, { readonly schema: { readonly const?: string } }>>
}
