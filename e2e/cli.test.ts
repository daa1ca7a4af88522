import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { Berth } from './testing/berth.ts'
import { installedVersion, PackageRegistry } from './testing/servers/package-registry.ts'

/*
 * The command line as a user installs it where no berth runs, against a berth.
 */

const folder = await mkdtemp(join(tmpdir(), 'berth-cli-'))
const registry = await PackageRegistry.open()
const berth = await Berth.start({ environment: registry.environment })
after(async () => {
  await berth[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const program = join(folder, 'installed', 'bin', 'berth')
const environment = { PATH: process.env.PATH, HOME: folder, TERM: 'xterm' }

before(async () => {
  const run = promisify(execFile)
  const builder = join(import.meta.dirname, '..', 'scripts', 'build-cli.ts')
  await run(process.execPath, [builder, join(folder, 'package')])
  const install = ['install', '--global', '--offline', '--prefix', join(folder, 'installed'), join(folder, 'package')]
  const npm = join(import.meta.dirname, '..', 'node_modules/npm/bin/npm-cli.js')
  await run(process.execPath, [npm, ...install], { env: { ...process.env, HOME: folder } })
  await succeed(['login', berth.url, '--api-key', '@-'], berth.apiKey)
  await succeed(['browsers', 'create', '--name', 'first', '--headless', '--timeout-seconds', '600'])
})

interface Result {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

async function run(args: readonly string[], input = ''): Promise<Result> {
  const child = spawn(program, args, { env: environment, cwd: folder })
  child.stdin.end(input)
  const [stdout, stderr, exitCode] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1))),
  ])
  return { exitCode, stdout, stderr }
}

async function succeed(args: readonly string[], input?: string): Promise<Result> {
  const result = await run(args, input)
  assert.equal(result.exitCode, 0, `berth ${args.join(' ')}: ${result.stderr}`)
  return result
}

test('keeps the key of a berth in a file that only its owner can read', async () => {
  const path = join(folder, '.config/berth/servers.json')
  const saved = JSON.parse(await readFile(path, 'utf8'))

  assert.deepEqual(saved, { current: 'default', servers: { default: { url: berth.url, apiKey: berth.apiKey } } })
  assert.match((await promisify(execFile)('stat', ['-c', '%a', path])).stdout, /^600$/m)
})

test('rejects a key that the server does not know, and keeps the old one', async () => {
  const { exitCode, stderr } = await run(['login', berth.url, '--api-key', '@-'], 'sk_wrong')

  assert.equal(exitCode, 77)
  assert.match(stderr, /^berth: .*unauthorized.*\n$/)
  await succeed(['auth', 'context'])
})

test('prints lists as tables for people and JSON for programs', async () => {
  const table = await succeed(['browsers', 'list'])
  const json = await succeed(['browsers', 'list', '-o', 'json'])

  assert.match(table.stdout, /^session_id +created_at +name/)
  assert.match(table.stdout, / first /)
  assert.equal(JSON.parse(json.stdout)[0].name, 'first')
})

test('reports an error in one line, with an exit code for its class', async () => {
  const cases = [
    [['browsers', 'get', 'nothing'], 66, /session_not_found/],
    [['browsers', 'create', '--viewport-width', '3'], 64, /viewport.height: must be a number/],
    [['browsers', 'create', '--name', 'first'], 65, /name/],
    [['browsers', 'list', '--server', 'other'], 64, /no server is stored as other \(stored: default/],
    [['browsers', 'fs', 'upload', 'first', '--files', 'file=/none,dest_path=/tmp/x'], 66, /none cannot be read/],
  ] as const

  for (const [args, code, message] of cases) {
    const { exitCode, stdout, stderr } = await run(args)
    assert.equal(exitCode, code, `berth ${args.join(' ')}: ${stderr}`)
    assert.match(stderr, message)
    assert.match(stderr, /^berth: [^\n]+\n$/)
    assert.equal(stdout, '')
  }
})

test('runs a program with its output, its input from a file, and its exit code', async () => {
  const command = ['browsers', 'process', 'exec', 'first', 'sh', '--', '-c', 'echo out; echo err >&2; exit 3']

  assert.deepEqual(await run(command), { exitCode: 3, stdout: 'out\n', stderr: 'err\n' })
})

test('runs code that comes from a file', async () => {
  await writeFile(join(folder, 'code.js'), 'return 6 * 7')

  const { stdout } = await succeed(['browsers', 'playwright', 'execute', 'first', '@code.js', '-o', 'json'])

  assert.equal(JSON.parse(stdout).result, 42)
})

test('copies files and folders both ways', async () => {
  await mkdir(join(folder, 'site/pages'), { recursive: true })
  await writeFile(join(folder, 'site/index.html'), 'home')
  await writeFile(join(folder, 'site/pages/one.html'), 'one')

  await succeed(['browsers', 'cp', 'site', 'first:/tmp/site'])
  await succeed(['browsers', 'cp', 'first:/tmp/site/pages/one.html', 'copy.html'])
  await succeed(['browsers', 'cp', 'first:/tmp/site', 'site.zip'])

  assert.equal(await readFile(join(folder, 'copy.html'), 'utf8'), 'one')
  assert.equal((await readFile(join(folder, 'site.zip'))).subarray(0, 2).toString(), 'PK')
})

test('writes a file of a reply to the given path', async () => {
  await succeed(['browsers', 'computer', 'screenshot', 'first', '-O', 'page.png'])

  assert.equal((await readFile(join(folder, 'page.png'))).subarray(1, 4).toString(), 'PNG')
})

test('ends silently when the reader of its output closes it', async () => {
  await writeFile(join(folder, 'long.bin'), Buffer.alloc(4 * 1024 ** 2))
  await succeed(['browsers', 'cp', 'long.bin', 'first:/tmp/long.bin'])
  const child = spawn(program, ['browsers', 'fs', 'read-file', 'first', '--path', '/tmp/long.bin'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })

  child.stdout.once('data', () => child.stdout.destroy())
  const [stderr, exitCode] = await Promise.all([
    text(child.stderr),
    new Promise((resolve) => child.once('close', resolve)),
  ])

  assert.deepEqual([exitCode, stderr], [0, ''])
})

test('opens a terminal in a session', async () => {
  // The terminal of the user. It has 80 columns.
  const child = spawn('script', ['-qec', `stty rows 24 cols 80; ${program} browsers shell first`, '/dev/null'], {
    env: environment,
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const before = output
    output += chunk
    if (/\$ $/.test(output) && !/\$ /.test(before)) child.stdin.write('echo answer-$((40+2)); stty size; exit 5\r')
  })

  const exitCode = await new Promise((resolve) => child.once('close', resolve))

  assert.match(output, /answer-42\s+24 80/)
  assert.equal(exitCode, 5)
})

test('deploys the folder of an app, invokes it, and prints its logs', async () => {
  const version = (await installedVersion('@onkernel/sdk')) ?? ''
  const app = join(folder, 'app')
  await mkdir(app)
  await writeFile(join(app, '.gitignore'), 'secret.txt\n')
  await writeFile(join(app, 'secret.txt'), 'not sent')
  await writeFile(
    join(app, 'package.json'),
    JSON.stringify({ type: 'module', dependencies: { '@onkernel/sdk': version } }),
  )
  await writeFile(
    join(app, 'index.ts'),
    `import { existsSync } from 'node:fs'
    import Kernel from '@onkernel/sdk'
    new Kernel().app('greeter').action('greet', async (ctx, payload: { name: string }) => {
      console.log('greeting', payload.name)
      return { text: process.env.WORD + ' ' + payload.name, isSecretSent: existsSync('secret.txt') }
    })`,
  )

  const deployed = await succeed(['deploy', 'app/index.ts', '--env', 'WORD=hello'])
  const invoked = await succeed(['invoke', 'greeter', 'greet', '--payload', '{"name":"berth"}'])
  const logs = await succeed(['logs', 'greeter'])
  const failed = await run(['invoke', 'greeter', 'none'])

  assert.match(deployed.stderr, /greeter latest: greet/)
  assert.deepEqual(JSON.parse(invoked.stdout), { text: 'hello berth', isSecretSent: false })
  assert.match(logs.stdout, /greeting berth/)
  assert.equal(failed.exitCode, 66)
  assert.match(failed.stderr, /has no action none/)
})

test('completes commands in shells', async () => {
  const { stdout } = await succeed(['complete', '--', 'browsers', 'cre'])

  assert.match(stdout, /^create\t/m)
})
