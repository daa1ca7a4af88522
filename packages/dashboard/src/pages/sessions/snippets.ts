type Language = 'TypeScript' | 'Python'

/** The official SDK's call that creates the same session as a form. */
export const createSnippets: Readonly<Record<Language, (request: object, origin: string) => string>> = {
  TypeScript: (request, origin) => `import Kernel from '@onkernel/sdk'

const client = new Kernel({ baseURL: ${typescriptText(origin)}, apiKey: process.env.KERNEL_API_KEY })
const session = await client.browsers.create(${literal(request, typescript, '')})`,
  Python: (request, origin) => `import os
from kernel import Kernel

client = Kernel(base_url=${JSON.stringify(origin)}, api_key=os.environ["KERNEL_API_KEY"])
session = client.browsers.create(${pythonArguments(request)})`,
}

interface Notation {
  readonly text: (text: string) => string
  readonly key: (name: string) => string
  readonly truth: (value: boolean) => string
  readonly nothing: string
}

const typescript: Notation = {
  text: typescriptText,
  key: (name) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : typescriptText(name)}: `,
  truth: String,
  nothing: 'null',
}

const python: Notation = {
  text: (text) => JSON.stringify(text),
  key: (name) => `${JSON.stringify(name)}: `,
  truth: (value) => (value ? 'True' : 'False'),
  nothing: 'None',
}

/** In single quotes, with the escapes of JSON. */
function typescriptText(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1)
  return `'${escaped.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

function literal(value: unknown, notation: Notation, indent: string): string {
  if (value === null || value === undefined) return notation.nothing
  if (typeof value === 'string') return notation.text(value)
  if (typeof value === 'boolean') return notation.truth(value)
  if (typeof value !== 'object') return String(value)
  const inner = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((item) => literal(item, notation, inner))
    : Object.entries(value).map(([name, member]) => notation.key(name) + literal(member, notation, inner))
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  if (parts.length === 0) return open + close
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close}`
}

function pythonArguments(request: object): string {
  const given = Object.entries(request).map(([name, value]) => `  ${name}=${literal(value, python, '  ')},\n`)
  return given.length === 0 ? '' : `\n${given.join('')}`
}
