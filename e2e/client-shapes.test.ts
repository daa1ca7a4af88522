import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Shape, type Shapes, typesOf } from './testing/tables/client-types.ts'

/*
 * Walks the types of a newer official client, field by field: each field that it reads is declared, and each field that
 * it may send is declared or rejected by name.
 */

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Sent by the client and rejected by name. For vaults, `items.test.ts` of the server sends each of them. */
const refused: readonly string[] = [
  'PATCH /browser_pools/{id_or_name}.memory=4GiB',
  'PATCH /vaults/{id_or_name}/items/{key} card.spec agentcard',
  'PATCH /vaults/{id_or_name}/items/{key} card.spec kernel',
  'PATCH /vaults/{id_or_name}/items/{key} card.spec link',
  'PATCH /vaults/{id_or_name}/items/{key} credential.spec.add_fields[].type=passkey',
  'POST /browser_pools.memory=4GiB',
  'POST /browsers.memory=4GiB',
  'POST /org/api_keys.policy.statements',
  'POST /vaults/{id_or_name}/items/{key}/operations 1pw_access_request_status',
  'POST /vaults/{id_or_name}/items/{key}/operations 1pw_create_access_request',
  'POST /vaults/{id_or_name}/items/{key}/operations 1pw_fill',
  'POST /vaults/{id_or_name}/items/{key}/operations 1pw_recover',
  'POST /vaults/{id_or_name}/items/{key}/operations 1pw_update_access_token',
  'POST /vaults/{id_or_name}/items/{key}/operations arm_passkey',
  'POST /vaults/{id_or_name}/items/{key}/operations authorize',
  'POST /vaults/{id_or_name}/items/{key}/operations confirm_transaction',
  'POST /vaults/{id_or_name}/items/{key}/operations disarm_passkey',
  'POST /vaults/{id_or_name}/items/{key}/operations prepare_checkout',
  'POST /vaults/{id_or_name}/items/{key}/operations register_passkey',
  'POST /vaults/{id_or_name}/items/{key}/operations restart_verification',
  'PUT /vaults/{id_or_name}/items/{key} card.spec agentcard',
  'PUT /vaults/{id_or_name}/items/{key} card.spec kernel',
  'PUT /vaults/{id_or_name}/items/{key} card.spec link',
  'PUT /vaults/{id_or_name}/items/{key} credential.spec 1password',
  'PUT /vaults/{id_or_name}/items/{key} credential.spec kernel.fields[].type=passkey',
  'PUT /vaults/{id_or_name}/items/{key} credential_account.spec',
  'PUT /vaults/{id_or_name}/items/{key} wallet.spec agentcard',
  'PUT /vaults/{id_or_name}/items/{key} wallet.spec kernel',
  'PUT /vaults/{id_or_name}/items/{key} wallet.spec link',
]

/**
 * Optional fields that the client reads and berth never sends, because their setting is not supported or they carry no
 * information.
 */
const neverSent =
  /\.(location|video_memory|network\.allowlist_state|proxy\.name|policy|env_vars|(failure|error)\.(details|inner_error)|create\.(bypass_hosts|name|protocol)) is missing$/

/**
 * Values beyond those of the client: only callers that request them receive them, and the client shows unknown events
 * unchanged.
 */
const additions = /\.(protocol=socks5|type=datacenter|event\.type=monitor_events_lost)$/

/** Sent in the path or in a header, whatever the client calls them. */
const elsewhere: readonly string[] = ['id', 'id_or_name', 'key', 'Last-Event-ID']

const checkout = join(import.meta.dirname, '..')
const shapesPath = join(checkout, '..', 'shared', 'reference', 'kernel-0.131-shapes.json')
const berth = JSON.parse(readFileSync(join(checkout, 'docs', 'openapi.json'), 'utf8')) as ApiDocument

if (existsSync(shapesPath)) walk(JSON.parse(readFileSync(shapesPath, 'utf8')) as Shapes)
else test('fields have the types of a newer client', { skip: `${shapesPath} is not at hand` })

function walk(shapes: Shapes): void {
  const { request, answer } = typesOf(shapes)
  const { operations } = shapes
  const seen = { refused: new Set<string>(), faults: new Set<string>() }

  for (const { method, path, params, returns } of operations) {
    walkOperation(`${method} ${path}`, params.map(request), answer(returns))
  }
  walkOperation(
    'POST /vaults/{id_or_name}/items/{key}/operations',
    [request('ItemPerformOperationParams')],
    answer('VaultItemOperationResponse'),
  )

  test('every operation of the client is checked', () => {
    assert.equal(operations.length, 174)
  })

  test('fields that the client sends are declared, or rejected by name', () => {
    assert.deepEqual([...seen.refused].sort(), refused)
  })

  test('fields that the client reads are declared', () => {
    const faults = [...seen.faults].filter((fault) => !neverSent.test(fault) && !additions.test(fault))

    assert.deepEqual(faults.sort(), [])
  })

  function walkOperation(name: string, parameters: readonly Shape[], returned: Shape): void {
    const [method = '', path = ''] = name.split(' ')
    const operation = operationOf(method, path)
    if (!operation) {
      seen.faults.add(`${name} is missing`)
      return
    }
    const [body] = Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => schema)
    const query: Schema = {
      additionalProperties: false,
      properties: Object.fromEntries(
        (operation.parameters ?? []).map((parameter) => [parameter.name, parameter.schema]),
      ),
    }
    const isFile = body?.format === 'binary'
    for (const parameter of parameters) walkRequest(name, parameter, body && !isFile ? body : query)
    const [success] = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'))
    const content = success?.[1].content
    const schema = content?.['application/json']?.schema ?? content?.['text/event-stream']?.schema
    if (schema) walkAnswer(name, returned, schema)
  }

  function walkRequest(place: string, their: Shape, ownSchema: Schema): void {
    const own = optionsOf(ownSchema)
    if (their.kind === 'union') {
      for (const option of their.options) {
        const match = own.filter((schema) => fits(option, schema))
        if (match.length === 0) seen.refused.add(`${place} ${labelOf(option)}`)
        for (const schema of match.slice(0, 1)) walkRequest(`${place} ${labelOf(option)}`.trim(), option, schema)
      }
      return
    }
    if (their.kind === 'literal') {
      const known = own.flatMap(valuesOf)
      if (known.length === 0) return
      for (const value of their.values)
        if (!known.map(String).includes(String(value))) seen.refused.add(`${place}=${value}`)
      return
    }
    if (their.kind === 'list') {
      for (const { items } of own) if (items) walkRequest(`${place}[]`, their.item(), items)
      return
    }
    if (their.kind !== 'record') return
    for (const schema of own.slice(0, 1)) {
      // A schema that accepts any properties is rejected as a whole.
      if (typeof schema.additionalProperties === 'object') {
        seen.refused.add(place)
        return
      }
      for (const [field, { type }] of Object.entries(their.fields())) {
        if (elsewhere.includes(field)) continue
        const known = schema.properties?.[field]
        if (known) walkRequest(`${place}.${field}`, type, known)
        else seen.refused.add(`${place}.${field}`)
      }
    }
  }

  function walkAnswer(place: string, their: Shape, ownSchema: Schema): void {
    const own = optionsOf(ownSchema)
    if (their.kind === 'union') {
      for (const schema of own) {
        const match = their.options.filter((option) => fits(option, schema))
        if (match.length === 0) seen.faults.add(`${place} has an option that the client does not know`)
        if (match.length > 1 && isOpen(schema)) checkKinds(place, match, schema)
        else for (const option of match.slice(0, 1)) walkAnswer(`${place} ${labelOf(option)}`.trim(), option, schema)
      }
      return
    }
    if (their.kind === 'literal') {
      const known = own.flatMap(valuesOf)
      if (known.length === 0) seen.faults.add(`${place} is no enum`)
      for (const value of known) if (!their.values.includes(value)) seen.faults.add(`${place}=${value}`)
      return
    }
    if (their.kind === 'list') {
      for (const { items } of own) if (items) walkAnswer(`${place}[]`, their.item(), items)
      return
    }
    if (their.kind !== 'record') return
    for (const [field, { type, required }] of Object.entries(their.fields())) {
      const known = own.flatMap(({ properties }) => properties?.[field] ?? [])
      for (const schema of known) walkAnswer(`${place}.${field}`, type, schema)
      const isPromised = own.every((schema) => schema.required?.includes(field))
      if (required && !isPromised) seen.faults.add(`${place}.${field} is not promised`)
      else if (known.length === 0) seen.faults.add(`${place}.${field} is missing`)
    }
  }

  /** One schema for several records of the client: each value of their enums belongs to one record. */
  function checkKinds(place: string, options: readonly Shape[], { properties = {} }: Schema): void {
    for (const [field, schema] of Object.entries(properties)) {
      const types = options.flatMap((option) => (option.kind === 'record' ? (option.fields()[field]?.type ?? []) : []))
      const known = types.flatMap((type) => (type.kind === 'literal' ? type.values : []))
      const values = optionsOf(schema).flatMap(valuesOf)
      if (known.length === 0) continue
      for (const value of values) if (!known.includes(value)) seen.faults.add(`${place}.${field}=${value}`)
    }
  }

  /** Whether it has a property with more than one value, which distinguishes options of a union. */
  function isOpen({ properties = {} }: Schema): boolean {
    return Object.values(properties).some((schema) => optionsOf(schema).flatMap(valuesOf).length > 1)
  }

  /** Whether both can have the same literals. */
  function fits(their: Shape, own: Schema): boolean {
    if (their.kind !== 'record') return !own.properties
    return Object.entries(their.fields()).every(([field, { type }]) => {
      const values = type.kind === 'literal' ? type.values : undefined
      const known = own.properties?.[field]
      const ownValues = known ? optionsOf(known).flatMap(valuesOf) : []
      return !values || ownValues.length === 0 || values.some((value) => ownValues.includes(value))
    })
  }
}

function labelOf(shape: Shape): string {
  if (shape.kind !== 'record') return ''
  const fields = Object.entries(shape.fields())
  return fields
    .flatMap(([, { type }]) => (type.kind === 'literal' && type.values.length === 1 ? type.values : []))
    .join(' ')
}

function valuesOf({ const: value, enum: values }: Schema): readonly unknown[] {
  return values ?? (value === undefined ? [] : [value])
}

/** The non-null options of the schema. */
function optionsOf(schema: Schema): readonly Schema[] {
  const { $ref, anyOf, oneOf } = schema
  if ($ref !== undefined) return optionsOf(berth.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {})
  const options = oneOf ?? anyOf
  return options ? options.flatMap(optionsOf) : schema.type === 'null' ? [] : [schema]
}

function operationOf(method: string, path: string): Operation | undefined {
  const shaped = (text: string) => text.replaceAll(/\{\w+\}/g, '{}')
  const [, methods] = Object.entries(berth.paths).find(([known]) => shaped(known) === shaped(path)) ?? []
  return methods?.[method.toLowerCase()]
}
