import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
}

interface Content {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const checkout = join(import.meta.dirname, '..')
const shapesPath = join(checkout, '..', 'shared', 'reference', 'openapi-shapes.json')
const readDocument = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as ApiDocument
const berth = readDocument(join(checkout, 'docs', 'openapi.json'))

if (existsSync(shapesPath)) compareWith(readDocument(shapesPath))
else test('operations have the shapes of the reference', { skip: `${shapesPath} is not at hand` })

function compareWith(reference: ApiDocument): void {
  const theirs = operationsOf(reference)
  const shared = [...operationsOf(berth)].filter(([name]) => theirs.has(name))

  test('the operations of the reference are found in it', () => {
    assert.ok(shared.some(([name]) => name === 'POST /browsers'))
  })

  for (const [name, own] of shared) {
    const their = theirs.get(name) as Operation
    test(`${name} declares the statuses, required fields and enum values of the reference`, () => {
      const faults = [...missingStatuses(their, own), ...responseFaults(their, own), ...requestFaults(their, own)]

      assert.deepEqual(faults, [])
    })
  }

  function missingStatuses(their: Operation, own: Operation): string[] {
    return Object.keys(their.responses)
      .filter((status) => !own.responses[status])
      .map((status) => `status ${status} is missing`)
  }

  /** Callers may rely on every field that the reference requires, and on its enum values only. */
  function responseFaults(their: Operation, own: Operation): string[] {
    return Object.entries(their.responses).flatMap(([status, response]) => {
      const theirSchema = schemaOf(response, reference)
      const ownSchema = schemaOf(own.responses[status] ?? {}, berth)
      if (!theirSchema) return []
      if (!ownSchema) return [`${status} has no body`]
      return compare(theirSchema, ownSchema, { place: status, isAnswer: true })
    })
  }

  /** Callers may send everything that the reference accepts. */
  function requestFaults(their: Operation, own: Operation): string[] {
    const parameters = (their.parameters ?? []).filter((parameter) => parameter.in === 'query')
    const queryFaults = parameters.flatMap(({ name, schema }) => {
      const known = own.parameters?.find((parameter) => parameter.in === 'query' && parameter.name === name)
      if (!known) return [`query parameter ${name} is missing`]
      return compare(schema, known.schema, { place: `query.${name}`, isAnswer: false })
    })
    const theirBody = their.requestBody && schemaOf(their.requestBody, reference)
    const ownBody = own.requestBody && schemaOf(own.requestBody, berth)
    if (!theirBody) return queryFaults
    if (!ownBody) return [...queryFaults, 'takes no body']
    return [...queryFaults, ...compare(theirBody, ownBody, { place: 'body', isAnswer: false })]
  }

  function compare(theirSchema: Schema, ownSchema: Schema, where: { place: string; isAnswer: boolean }): string[] {
    const their = resolve(theirSchema, reference)
    const own = resolve(ownSchema, berth)
    const { place, isAnswer } = where
    // Declared as unsupported by berth, and rejected by name when it is sent.
    if (!isAnswer && own.type === 'null') return []
    const fieldFaults = Object.entries(their.properties ?? {}).flatMap(([name, field]) => {
      const known = own.properties?.[name]
      const mustBeThere = isAnswer && their.required?.includes(name)
      if (!known) return mustBeThere || !isAnswer ? [`${place}.${name} is missing`] : []
      const isPromised = !mustBeThere || own.required?.includes(name)
      return [
        ...(isPromised ? [] : [`${place}.${name} is not required`]),
        ...compare(field, known, { place: `${place}.${name}`, isAnswer }),
      ]
    })
    const itemFaults =
      their.items && own.items ? compare(their.items, own.items, { place: `${place}[]`, isAnswer }) : []
    return [...fieldFaults, ...itemFaults, ...enumFaults(their, own, where)]
  }
}

/** Values that only callers who requested them receive, and reasons that clients show and do not act on, of a newer reference. */
const additions: Readonly<Record<string, readonly string[]>> = {
  protocol: ['socks5'],
  can_reauth_reason: ['totp_reauth_allowed', 'optimistic_totp_attempt', 'requires_customer_input'],
}

/** A response has only values of the reference, and a request accepts all of them. */
function enumFaults(their: Schema, own: Schema, { place, isAnswer }: { place: string; isAnswer: boolean }): string[] {
  if (!their.enum || !own.enum) return their.enum && isAnswer ? [`${place} is no enum`] : []
  const [some, all] = isAnswer ? [own.enum, their.enum] : [their.enum, own.enum]
  const known = [...all, ...(isAnswer ? (additions[place.split('.').at(-1) ?? ''] ?? []) : [])]
  return some.filter((value) => !known.includes(value)).map((value) => `${place}: value ${value}`)
}

/** By method and path without parameter names, which differ between documents. */
function operationsOf(document: ApiDocument): Map<string, Operation> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return [`${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '{}')}`, operation] as const
    }),
  )
  return new Map(operations)
}

function schemaOf(content: Content, document: ApiDocument): Schema | undefined {
  return follow(content, document).content?.['application/json']?.schema
}

/** The schema itself, or the non-null part of a nullable one. */
function resolve(schema: Schema, document: ApiDocument): Schema {
  const { anyOf, ...followed } = follow(schema, document)
  const value = anyOf?.find(({ type }) => type !== 'null')
  return value ? resolve(value, document) : followed
}

function follow<Part extends { readonly $ref?: string }>(part: Part, document: ApiDocument): Part {
  if (part.$ref === undefined) return part
  const names = part.$ref.split('/').slice(1)
  const target = names.reduce((node, name) => (node as Record<string, unknown>)[name], document as unknown)
  return follow(target as Part, document)
}
