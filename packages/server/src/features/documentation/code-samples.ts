import type { OpenApiDocument } from '../../openapi/openapi-document.ts'
import {
  type Example,
  exampleArguments,
  FileExample,
  type Operation,
  type SampleArguments,
} from './example-arguments.ts'
import { sdkMethods } from './sdk-methods.ts'
import { typescriptMethods } from './typescript-methods.ts'

interface CodeSample {
  readonly lang: string
  readonly label: string
  readonly source: string
}

/** Adds sample calls of the official SDKs to each operation that they support. */
export function withCodeSamples(document: OpenApiDocument): object {
  const paths = Object.entries(document.paths ?? {}).map(([path, operations]) => {
    const sampled = Object.entries(operations as Readonly<Record<string, Operation>>).map(([method, operation]) => {
      const samples = samplesOf(document, path, operation)
      return [method, samples.length > 0 ? { ...operation, 'x-codeSamples': samples } : operation]
    })
    return [path, Object.fromEntries(sampled)]
  })
  return { ...document, paths: Object.fromEntries(paths) }
}

function samplesOf(document: OpenApiDocument, path: string, operation: Operation): readonly CodeSample[] {
  const name = sdkMethods[operation.operationId ?? '']
  if (name === undefined) return []
  const given = exampleArguments(document, path, operation)
  const segments = name.split('.')
  const typescript = typescriptMethods.has(name)
    ? [{ lang: 'TypeScript', label: 'TypeScript', source: typescriptSample(segments, given) }]
    : []
  return [
    ...typescript,
    { lang: 'Python', label: 'Python', source: pythonSample(segments, given) },
    { lang: 'Go', label: 'Go', source: goSample(segments, given) },
  ]
}

/** The last parameter of the path comes first. A body that is a file comes second. */
function typescriptSample(segments: readonly string[], { path, content, fields }: SampleArguments): string {
  const others = path.slice(0, -1).map((name) => [name === 'id_or_name' ? 'id' : name, name] as const)
  const named = { ...Object.fromEntries(others), ...fields }
  const given = [
    ...path.slice(-1).map((name) => `'${name}'`),
    ...(content ? [typescriptValue(content, 0)] : []),
    ...(Object.keys(named).length > 0 ? [typescriptValue(named, 0)] : []),
  ]
  const usesFile = given.some((text) => text.includes('createReadStream'))
  return [
    ...(usesFile ? ["import { createReadStream } from 'node:fs'"] : []),
    "import Kernel from '@onkernel/sdk'",
    '',
    '// Reads KERNEL_BASE_URL, the address of this berth, and KERNEL_API_KEY.',
    'const client = new Kernel()',
    `const response = await client.${segments.map(camelCase).join('.')}(${given.join(', ')})`,
    '',
  ].join('\n')
}

function typescriptValue(value: Example, depth: number): string {
  if (value instanceof FileExample) return "createReadStream('file')"
  if (Array.isArray(value)) return `[${value.map((item) => typescriptValue(item, depth)).join(', ')}]`
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object' || value === null) return String(value)
  const indent = '  '.repeat(depth + 1)
  const members = Object.entries(value).map(([name, member]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)
    return `${indent}${key}: ${typescriptValue(member, depth + 1)},\n`
  })
  return members.length > 0 ? `{\n${members.join('')}${'  '.repeat(depth)}}` : '{}'
}

function pythonSample(segments: readonly string[], { path, content, fields }: SampleArguments): string {
  const given = [
    ...path.slice(-1).map((name) => JSON.stringify(name)),
    ...(content ? [pythonValue(content)] : []),
    ...path.slice(0, -1).map((name) => `${name}=${JSON.stringify(name)}`),
    ...Object.entries(fields).map(([name, value]) => `${pythonName(name)}=${pythonValue(value)}`),
  ]
  const usesFile = given.some((text) => text.includes('Path('))
  const listed = given.length > 0 ? `\n${given.map((text) => `    ${text},\n`).join('')}` : ''
  return [
    ...(usesFile ? ['from pathlib import Path', ''] : []),
    'from kernel import Kernel',
    '',
    '# Reads KERNEL_BASE_URL, the address of this berth, and KERNEL_API_KEY.',
    'client = Kernel()',
    `response = client.${segments.join('.')}(${listed})`,
    '',
  ].join('\n')
}

function pythonValue(value: Example): string {
  if (value instanceof FileExample) return 'Path("file")'
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${pythonValue(member)}`)
  return `{${members.join(', ')}}`
}

/** Keywords of the language get a trailing underscore. */
function pythonName(name: string): string {
  return ['from', 'global', 'import', 'class', 'async'].includes(name) ? `${name}_` : name
}

/** Required parameters are plain values, optional ones are wrapped. Nested values are left to the reader. */
function goSample(segments: readonly string[], { path, content, fields, required }: SampleArguments): string {
  const method = segments.map(goName)
  const structure = `${segments
    .map((segment, index) => (index < segments.length - 1 ? singular(goName(segment)) : goName(segment)))
    .join('')}Params`
  const members = [
    ...path.slice(0, -1).map((name) => `\t\t${pascalCase(name)}: ${JSON.stringify(name)},\n`),
    ...Object.entries(fields).map(
      ([name, value]) => `\t\t${pascalCase(name)}: ${goValue(value, required.has(name))},\n`,
    ),
  ]
  const given = [
    'ctx',
    ...path.slice(-1).map((name) => JSON.stringify(name)),
    ...(content ? ['file'] : []),
    ...(members.length > 0 ? [`kernel.${structure}{\n${members.join('')}\t}`] : []),
  ]
  return [
    '// import "github.com/kernel/kernel-go-sdk"',
    '// Reads KERNEL_BASE_URL, the address of this berth, and KERNEL_API_KEY.',
    'client := kernel.NewClient()',
    `response, err := client.${method.join('.')}(${given.join(', ')})`.replaceAll('\n\t', '\n'),
    '',
  ].join('\n')
}

function goValue(value: Example, isRequired: boolean): string {
  if (value instanceof FileExample) return 'file'
  if (Array.isArray(value)) {
    const isText = value.every((item) => typeof item === 'string')
    return isText ? `[]string{${value.map((item) => JSON.stringify(item)).join(', ')}}` : 'nil, // See the schema.'
  }
  switch (typeof value) {
    case 'string':
      return isRequired ? JSON.stringify(value) : `kernel.String(${JSON.stringify(value)})`
    case 'number':
      return isRequired ? String(value) : `kernel.${Number.isInteger(value) ? 'Int' : 'Float'}(${value})`
    case 'boolean':
      return isRequired ? String(value) : `kernel.Bool(${value})`
    default:
      return '…'
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

/** `delete_by_id` is `deleteByID`. */
function camelCase(name: string): string {
  const pascal = pascalCase(name)
  const first = /^[A-Z]+(?![a-z])/.exec(pascal)?.[0] ?? pascal.slice(0, 1)
  return first.toLowerCase() + pascal.slice(first.length)
}

const initialisms = ['id', 'api', 'url', 'ip']

function pascalCase(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => (initialisms.includes(word) ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('')
}

/** `create` and `retrieve` are `New` and `Get`. */
function goName(name: string): string {
  return pascalCase(name.replace(/^create(?=_|$)/, 'new').replace(/^retrieve(?=_|$)/, 'get'))
}

function singular(name: string): string {
  if (name.endsWith('ies')) return `${name.slice(0, -3)}y`
  return /(s|x|ch)es$/.test(name) && !name.endsWith('ses') ? name.slice(0, -2) : name.replace(/([^s])s$/, '$1')
}
