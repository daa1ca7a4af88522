import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import { newId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import { appMachineSpec } from '../../../drivers/app-machine-spec.ts'
import { LocalTestbed } from '../../../testing/machines/local-testbed.ts'
import { AppFailure, AppProcess } from './app-process.ts'
import { MachineOperations } from './machine-operations.ts'
import { inMachine } from './paths.ts'
import { runProgram } from './run-program.ts'

/* What an app may be and do while it is loaded. Every test uses the same real machine, and writes another app there. */

const { signal } = new AbortController()
const testbed = await LocalTestbed.open()
after(() => testbed.close())
const driver = await testbed.openDriverWithAgent()
const operations = new MachineOperations(
  await driver.start(appMachineSpec(newId('machine', systemClock.now())), signal),
)
type Files = Readonly<Record<string, string>>
const write = (files: Files) =>
  operations.unpack(
    Readable.from([zip(...Object.entries(files).map(([name, content]) => ({ name, content })))]),
    inMachine.app,
    signal,
  )
const sdk = 'node_modules/@onkernel/sdk'
const sdkFolder = join(import.meta.dirname, '../../../../../..', sdk)
const sdkNames = await Array.fromAsync(glob('**/*.{js,mjs,json}', { cwd: sdkFolder }))
const sdkFiles = await Promise.all(
  sdkNames.map(async (name) => [`${sdk}/${name}`, await readFile(join(sdkFolder, name), 'utf8')] as const),
)
await write(Object.fromEntries(sdkFiles))

/** Loads an app, and returns its apps with their actions. */
async function load(entrypoint: string, files: Files): Promise<Readonly<Record<string, readonly string[]>>> {
  const remove = `find ${inMachine.app} -maxdepth 1 -type f -delete`
  await runProgram(operations, { command: '/bin/sh', args: ['-c', remove] }, () => {}, signal)
  await write(files)
  const process = await AppProcess.spawn(operations, { entrypoint, environment: {} }, signal)
  const apps = await process.load(() => {}, signal)
  await process.kill()
  return Object.fromEntries(apps.map(({ name, actions }) => [name, actions]))
}

const imports = "import Kernel from '@onkernel/sdk'\n"
const requires = "const { Kernel } = require('@onkernel/sdk')\n"
const registers = (app: string) => `new Kernel({ apiKey: 'x' }).app('${app}').action('act', async (ctx) => 1)\n`
const own = { own: ['act'] }
const loaded: readonly (readonly [what: string, entrypoint: string, files: Files, apps: object])[] = [
  ['a script', 'index.cjs', { 'index.cjs': requires + registers('own') }, own],
  ['TypeScript in a package of scripts', 'index.ts', { 'index.ts': imports + registers('own') }, own],
  [
    'a module that imports a script, which registers an app too',
    'index.mjs',
    { 'index.mjs': `import './other.cjs'\n${imports}${registers('own')}`, 'other.cjs': requires + registers('other') },
    { ...own, other: ['act'] },
  ],
]
for (const [what, entrypoint, files, apps] of loaded) {
  test(`${what} is loaded with the apps that it registers`, async () => {
    assert.deepEqual(await load(entrypoint, files), apps)
  })
}

const framework = `${imports}const app = new Kernel({ apiKey: 'x' }).app('demo')\n`
const failures: readonly (readonly [what: string, code: string, reason: RegExp])[] = [
  ['throws', `throw new Error('no luck')`, /^no luck$/],
  ['ends its process', 'process.exit(3)', /exit code 3/],
  ['registers no app', 'console.log(1)', /registers no app/],
  [
    'registers too much',
    `${framework}for (let n = 0; n < 2000; n += 1) app.action('a' + n, async (ctx) => n)`,
    /more than 100 apps, or 1000 actions/,
  ],
  ['has an action without a name', `${framework}app.action('', async (ctx) => 1)`, /a name that is empty/],
  [
    'floods its output',
    `for (;;) await new Promise((done) => process.stdout.write('x'.repeat(65536), done))`,
    /more than 4 MiB/,
  ],
  ['throws behind a full pipe', `for (;;) (await import('node:fs')).writeSync(1, 'x'.repeat(65536))`, /^EAGAIN/],
]
for (const [what, code, message] of failures) {
  test(`an app that ${what} is not loaded, and its owner learns why`, async () => {
    const loading = load('index.mjs', { 'index.mjs': code })

    await assert.rejects(loading, (error) => error instanceof AppFailure && message.test(error.message))
  })
}

test('a module is loaded without what only scripts need of the framework', async () => {
  await write({ [`${sdk}/index.js`]: `throw new Error('it is loaded for nothing')` })

  assert.deepEqual(await load('index.mjs', { 'index.mjs': imports + registers('own') }), own)

  const script = load('index.cjs', { 'index.cjs': requires + registers('own') })
  await assert.rejects(script, { message: 'it is loaded for nothing' })
})
