import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Operation {
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly content?: Readonly<Record<string, unknown>>
        readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>
      }
    >
  >
}

interface Description {
  readonly document: OpenApiDocument
  /** Its validators, once they have been used. */
  readonly ajv: Ajv2020
  readonly routes: readonly { readonly path: string; readonly pattern: RegExp }[]
}

const documentFile = join(import.meta.dirname, '../../docs/openapi.json')

/** Of the document in the checkout, which is what every server serves (api.test.ts): to write it takes a server 370 ms. */
let description: Promise<Description> | undefined

async function describe(): Promise<Description> {
  const document = JSON.parse(await readFile(documentFile, 'utf8')) as OpenApiDocument
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'openapi')
  const routes = Object.keys(document.paths).map((path) => ({
    path,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }))
  return { document, ajv, routes }
}

/**
 * Creates a fetch that validates every response of the API against berth's OpenAPI document: the status is declared by
 * the operation, the body matches its schema, and the declared headers are present.
 */
export async function createCheckedFetch(baseUrl: string): Promise<typeof fetch> {
  description ??= describe()
  const { document, ajv, routes } = await description

  return async (input, init) => {
    const response = await fetch(input, init)
    const url = new URL(input instanceof Request ? input.url : input)
    if (url.origin !== new URL(baseUrl).origin) return response
    // The document does not describe responses of other sites.
    if (/^\/s\/[^/]+\/curl\/raw$/.test(url.pathname)) return response
    // The same operations, below the session's own address.
    url.pathname = url.pathname.replace(/^\/s\//, '/browsers/')
    const method = (init?.method ?? 'GET').toLowerCase()
    const route = routes.find(({ path, pattern }) => pattern.test(url.pathname) && document.paths[path]?.[method])
    assert.ok(route, `${method} ${url.pathname} is not in the OpenAPI document`)

    const declared = document.paths[route.path]?.[method]?.responses[response.status]
    const name = `${method.toUpperCase()} ${route.path} ${response.status}`
    if (!declared) assert.fail(`${name} is not declared: ${await response.clone().text()}`)
    for (const [header, { required }] of Object.entries(declared.headers ?? {}))
      if (required) assert.ok(response.headers.has(header), `${name} lacks ${header}`)
    if (declared.content && !declared.content['application/json']) {
      const type = response.headers.get('content-type') ?? ''
      assert.ok(declared.content[type.split(';', 1)[0] ?? ''], `${name} is ${type}`)
      return response // Streams are not validated.
    }
    const body = await response.clone().text()
    if (!declared.content) {
      assert.equal(body, '', `${name} has a body that is not declared`)
      return response
    }
    const mediaType = response.headers.get('content-type')?.split(';')[0] ?? ''
    assert.ok(mediaType in declared.content, `${name} is ${mediaType}, which is not declared`)
    if (mediaType !== 'application/json') return response
    const pointer = [
      'paths',
      route.path,
      method,
      'responses',
      String(response.status),
      'content',
      'application/json',
      'schema',
    ]
    const validate = ajv.getSchema(`openapi#/${pointer.map(escapePointer).join('/')}`)
    assert.ok(validate, `${name} has no schema`)
    assert.ok(validate(JSON.parse(body)), `${name}: ${ajv.errorsText(validate.errors)} in ${body}`)
    return response
  }
}

function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))
}
