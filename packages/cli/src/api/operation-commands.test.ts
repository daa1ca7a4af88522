import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { isStream } from '@berth/contract/stream.ts'
import { Command } from 'commander'
import { clientProgram } from '../client/client-program.ts'
import { exampleOf, writtenExamples } from './command-examples.ts'
import { addOperationCommands, operations } from './operation-commands.ts'
import { type FieldFlag, operationFlags } from './operation-flags.ts'
import { operationName, spelledOperations } from './operation-names.ts'

interface Received {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  readonly type: string
  readonly body: Buffer
}

let received: Received | undefined
const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://berth')
  const { authorization, 'content-type': type = '' } = request.headers
  received = {
    method: request.method ?? '',
    path: pathname,
    query: searchParams,
    authorization,
    type,
    body: await buffer(request),
  }
  response.writeHead(204).end()
})

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  process.env.BERTH_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  process.env.BERTH_API_KEY = 'sk_test'
})
after(() => server.close())

const program = new Command('berth').exitOverride()
addOperationCommands(program, {})

async function run(args: readonly string[]): Promise<Received> {
  received = undefined
  await program.parseAsync(args, { from: 'user' })
  assert.ok(received, 'no request was sent')
  return received
}

const samples: Readonly<Record<FieldFlag['kind'], string>> = {
  text: 'text',
  number: '5',
  boolean: '',
  list: 'one',
  pairs: 'NAME=value',
  json: '{"a":1}',
  file: import.meta.filename,
  parts: '',
}

function argumentsOf(flag: FieldFlag): readonly string[] {
  if (flag.kind === 'boolean') return [`--${flag.name}`]
  if (flag.kind !== 'parts') return [`--${flag.name}`, flag.choices[0] ?? samples[flag.kind]]
  const parts = flag.members.map(({ name, isFile }) => `${name}=${isFile ? import.meta.filename : '/tmp/target'}`)
  return [`--${flag.name}`, parts.join(',')]
}

function valueAt(body: unknown, path: readonly string[]): unknown {
  return path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], body)
}

test('each operation has a command of its own', () => {
  const names = operations.map((endpoint) => operationName(endpoint, operations).words.join(' '))

  assert.equal(new Set(names).size, names.length)
  assert.ok(names.every((name) => /^[a-z-]+( [a-z-]+)*$/.test(name)))
  assert.deepEqual(
    spelledOperations.filter((id) => !operations.some(({ operationId }) => operationId === id)),
    [],
  )
})

for (const endpoint of operations) {
  const { words, positional } = operationName(endpoint, operations)
  const flags = operationFlags(endpoint)

  test(`berth ${words.join(' ')} sends each of its fields to ${endpoint.operationId}`, async () => {
    const params = [...endpoint.path.matchAll(/\{\w+\}/g)].map(() => 'thing 1')
    const given = positional.map((name) => samples[flags.find((flag) => flag.name === name)?.kind ?? 'text'])
    const others = flags.filter(({ name }) => !positional.includes(name)).flatMap(argumentsOf)
    const bytes = endpoint.bodyType === 'application/octet-stream' ? ['--file', import.meta.filename] : []
    const target = endpoint.replyType && !isStream(endpoint) ? ['--output-file', '/dev/null'] : []

    const { method, path, query, authorization, type, body } = await run([
      ...words,
      ...params,
      ...given,
      ...others,
      ...bytes,
      ...target,
    ])

    assert.equal(method, endpoint.method)
    assert.equal(path, endpoint.path.replaceAll(/\{\w+\}/g, 'thing%201'))
    assert.equal(authorization, 'Bearer sk_test')
    for (const flag of flags) {
      if (flag.place === 'query')
        assert.ok(
          [...query.keys()].some((name) => name.startsWith(flag.path[0] ?? '')),
          flag.name,
        )
      else if (type.startsWith('application/json')) {
        assert.notEqual(valueAt(JSON.parse(body.toString()), flag.path), undefined, flag.name)
      } else assert.ok(body.includes(`name="${flag.path.join('.')}`), flag.name)
    }
    if (bytes.length > 0) assert.match(body.toString(), /each operation has a command/)
  })
}

/** Splits the line like a shell. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? '',
  )
}

function leavesOf(group: Command): readonly Command[] {
  return group.commands.flatMap((command) => (command.commands.length > 0 ? leavesOf(command) : [command]))
}

function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp()
  return text
}

test('the help of each command has an example that the command accepts', async () => {
  const client = clientProgram().exitOverride()
  let taken: Command | undefined
  const leaves = leavesOf(client).filter((command) => command.name() !== 'complete')
  for (const command of leaves) {
    command.exitOverride().action(() => {
      taken = command
    })
  }

  for (const command of leaves) {
    const [, example = ''] = /\nExample:\n {2}berth (.+)\n$/.exec(helpOf(command)) ?? []
    assert.notEqual(example, '', command.name())
    taken = undefined
    await client.parseAsync(wordsOf(example), { from: 'user' })
    assert.equal(taken, command, example)
  }
  assert.deepEqual(
    writtenExamples.filter((id) => !operations.some(({ operationId }) => operationId === id)),
    [],
  )
})

test('the example of each command is a valid request of its operation', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-examples-'))
  const before = process.cwd()
  process.chdir(folder)
  try {
    for (const endpoint of operations) {
      const { words } = operationName(endpoint, operations)
      const example = exampleOf(endpoint, operations, operationFlags(endpoint))
      for (const [, name = ''] of example.matchAll(/[@= ]([\w-]+\.(?:txt|js|json|csv|zip))\b/g)) {
        await writeFile(name, name.endsWith('.json') ? '{}' : 'content')
      }
      const args = wordsOf(example).filter((word) => word !== '--wait' && word !== '--open')
      assert.deepEqual(args.slice(0, words.length), words)

      const { method, path, type, body } = await run(args)

      assert.equal(method, endpoint.method, example)
      assert.ok(new RegExp(`^${endpoint.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path), example)
      if (!type.startsWith('application/json') || example.includes('.json')) continue
      assert.deepEqual(endpoint.body?.safeParse(JSON.parse(body.toString())).error?.issues ?? [], [], example)
    }
  } finally {
    process.chdir(before)
    await rm(folder, { recursive: true })
  }
})

test('flags are merged into the request of --data', async () => {
  const data = JSON.stringify({ name: 'a', viewport: { width: 800, height: 600 } })

  const { body } = await run(['browsers', 'create', '--data', data, '--viewport-width', '900', '--no-headless'])

  assert.deepEqual(JSON.parse(body.toString()), {
    name: 'a',
    viewport: { width: 900, height: 600 },
    headless: false,
  })
})

test('pairs, lists and JSON keep their types', async () => {
  const { body } = await run([
    ...['browsers', 'create', '--tags', 'a=1', '--tags', 'b=x=y', '--network-allowed-hosts', 'a.example'],
    ...['--extensions', '[{"name":"e"}]', '--name', '@@at'],
  ])

  assert.deepEqual(JSON.parse(body.toString()), {
    name: '@at',
    tags: { a: '1', b: 'x=y' },
    extensions: [{ name: 'e' }],
    network: { allowed_hosts: ['a.example'] },
  })
})

test('arguments of a program are not flags of the command', async () => {
  const { body } = await run(['browsers', 'process', 'exec', 'thing', '--cwd', '/tmp', 'ls', '--', '-la', '--color'])

  assert.deepEqual(JSON.parse(body.toString()), { command: 'ls', args: ['-la', '--color'], cwd: '/tmp' })
})
