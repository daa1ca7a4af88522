import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type DeploymentId, newId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { type ZipMember, zip } from '@berth/runtime/testing/zip.ts'
import { appMachineSpec } from '../../../drivers/app-machine-spec.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import { LocalTestbed } from '../../../testing/machines/local-testbed.ts'
import { AppMachine } from './app-machine.ts'
import { AppFailure, AppProcess } from './app-process.ts'
import { MachineOperations } from './machine-operations.ts'
import { inMachine } from './paths.ts'
import { rehearse } from './rehearse.ts'
import { runProgram } from './run-program.ts'
import { type PreparedMachine, WarmMachines } from './warm-machines.ts'

/* A real machine without a browser, with the framework of the official client. Nothing in it needs a network. */

const testbed = await LocalTestbed.open()
const driver = await testbed.openDriverWithAgent()
const startMachine = driver.start.bind(driver)
// Less memory than others have, because an action fills it.
driver.start = (spec, signal) => startMachine({ ...spec, memory: '1GiB' }, signal)
after(() => testbed.close())
const egressLink = { openRoute: async () => {}, closeRoute: async () => {} } as unknown as EgressLink
const reserve = {
  noteCreate: () => ({ [Symbol.dispose]: () => {} }),
  take: async () => undefined,
  makeRoom: async () => false,
}
const signal = new AbortController().signal
const id = 'dpl' as DeploymentId

const entrypoint = `
import { fork } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import Kernel from '@onkernel/sdk'
import { shade } from '#shades'
enum Colour { Red = 'red' }
const app = new Kernel().app('demo')
app.action('echo', async (ctx, payload?: unknown) => { console.log('in', ctx.invocation_id); return { payload, colour: Colour.Red, shade, pid: process.pid } })
app.action('nothing', async (ctx) => {})
app.action('throw', async (ctx) => { throw new Error('not today') })
app.action('exit', async (ctx) => process.exit(3))
app.action('circle', async (ctx) => { const it: any = {}; it.it = it; return it })
app.action('hang', async (ctx) => { console.log('hanging'); for (;;); })
app.action('flood', async (ctx) => { for (;;) await new Promise((done) => process.stdout.write('x'.repeat(65536) + '\\n', done)) })
app.action('greedy', async (ctx) => { const all: Buffer[] = []; for (;;) all.push(Buffer.alloc(64 * 1024 ** 2, 1)) })
app.action('slow', async (ctx) => { await new Promise((done) => setTimeout(done, 500)); return process.pid })
app.action('wait', async (ctx) => {
  console.log('waiting')
  while (!existsSync('/tmp/go')) await new Promise((done) => setTimeout(done, 20))
  rmSync('/tmp/go')
  return 'unharmed'
})
app.action('go', async (ctx) => writeFileSync('/tmp/go', ''))
app.action('thread', async (ctx) => new Promise((done, fail) => {
  new Worker(new URL('./thread.ts', import.meta.url)).once('message', done).once('error', fail)
}))
app.action('fork', async (ctx) => new Promise((done) => fork('./thread.ts').once('message', done)))
app.action('write', async (ctx, payload: string[]) => { for (const text of payload) process.stdout.write(text) })
app.action('large', async (ctx) => 'x'.repeat(5_000_000))
`

const thread = `
import { parentPort } from 'node:worker_threads'
enum Colour { Blue = 'blue' }
if (parentPort) parentPort.postMessage(Colour.Blue)
else process.send?.(Colour.Blue, () => process.exit())
`

async function sdkFiles(): Promise<readonly ZipMember[]> {
  const folder = join(import.meta.dirname, '../../../../../../node_modules/@onkernel/sdk')
  const names = await Array.fromAsync(glob('**/*.{js,mjs,json}', { cwd: folder }))
  return Promise.all(
    names.map(async (name) => ({
      name: `node_modules/@onkernel/sdk/${name}`,
      content: await readFile(join(folder, name)),
    })),
  )
}

let machine: AppMachine
const openWarm = (warmMilliseconds: number) =>
  new WarmMachines({ prepare, warmMilliseconds, logger: createLogger({ name: 'test', level: 'silent', json: true }) })
const warm = openWarm(60_000)
after(() => warm.close())

async function prepare(): Promise<PreparedMachine> {
  machine = await AppMachine.start({ driver, egressLink, reserve, clock: systemClock }, signal)
  const archive = zip(
    { name: 'index.ts', content: entrypoint },
    { name: 'package.json', content: '{"type":"module"}' },
    { name: 'tsconfig.json', content: '{"compilerOptions":{"paths":{"#shades":["./shades.ts"]}}}' },
    { name: 'shades.ts', content: "export const shade: string = 'dark'" },
    { name: 'thread.ts', content: thread },
    ...(await sdkFiles()),
  )
  const code = { entrypoint: 'index.ts', environment: { KERNEL_API_KEY: 'sk_x', KERNEL_BASE_URL: 'http://x' } }
  const waiting = await AppProcess.spawn(machine.operations, code, signal)
  await machine.operations.unpack(Readable.from([archive]), inMachine.app, signal)
  return { machine, code, waiting }
}

const lines: string[] = []
let count = 0
const invoke = (
  action: string,
  { payload, ending = signal, onLine = (line: string) => void lines.push(line), on = warm }: Invoking = {},
) => on.run(id, { invocationId: `inv-${++count}`, app: 'demo', action, payload }, onLine, ending)

interface Invoking {
  readonly payload?: string
  readonly ending?: AbortSignal
  readonly onLine?: (line: string) => void
  readonly on?: WarmMachines
}

/** Resolves when the action has written the line. */
async function begin(action: string, line: string): Promise<{ readonly output: Promise<string> }> {
  const began = Promise.withResolvers<void>()
  const output = invoke(action, { onLine: (written) => written === line && began.resolve() })
  await Promise.race([began.promise, output])
  return { output }
}

before(async () => {
  await invoke('nothing')
})

test('an action gets its payload, and its result and log lines are returned', async () => {
  const { pid: _pid, ...output } = JSON.parse(await invoke('echo', { payload: '{"a":[1,"é"]}' }))

  assert.deepEqual(output, { payload: { a: [1, 'é'] }, colour: 'red', shade: 'dark' })
  assert.equal(lines.at(-1), `in inv-${count}`)
  assert.equal(await invoke('nothing'), 'null')
})

const written: readonly (readonly [what: string, texts: readonly string[], lines: readonly string[]])[] = [
  ['an unfinished line', ['a\n', 'b'], ['a', 'b']],
  ['empty lines', ['\n', 'a\n', '\n\n'], ['', 'a', '', '']],
  ['an unfinished line that is too long', ['x'.repeat(100_000)], ['x'.repeat(65_536)]],
]
for (const [what, texts, expected] of written) {
  test(`an action that writes ${what} returns its log lines and its result`, async () => {
    const told: string[] = []

    assert.equal(await invoke('write', { payload: JSON.stringify(texts), onLine: (line) => told.push(line) }), 'null')

    assert.deepEqual(told, expected)
  })
}

test('threads and processes of an app load TypeScript as it does', async () => {
  assert.equal(await invoke('thread'), '"blue"')
  assert.equal(await invoke('fork'), '"blue"')
})

const failures: readonly (readonly [what: string, action: string, reason: RegExp])[] = [
  ['throws', 'throw', /^not today$/],
  ['ends its process', 'exit', /exit code 3/],
  ['returns what is no JSON', 'circle', /circular/i],
  ['returns too much', 'large', /more than 4500000 bytes/],
  ['floods its output', 'flood', /more than 4 MiB of output/],
  ['takes all memory', 'greedy', /out of memory|was killed/],
]
for (const [what, action, reason] of failures) {
  test(`an action that ${what} fails with the reason, and concurrent and later ones run`, async () => {
    const neighbour = await begin('wait', 'waiting')

    await assert.rejects(invoke(action), { message: reason })

    assert.equal(await invoke('go'), 'null')
    assert.equal(await neighbour.output, '"unharmed"')
  })
}

test('an action that never yields is ended at its deadline', async () => {
  const ending = new AbortController()
  const onLine = (line: string) => {
    if (line === 'hanging') ending.abort(new AppFailure('enough'))
  }
  const hanging = invoke('hang', { ending: ending.signal, onLine })

  await assert.rejects(hanging, { message: 'enough' })
  assert.equal(await invoke('nothing', { ending: AbortSignal.timeout(10_000) }), 'null')
})

test('concurrent actions run in separate processes', async () => {
  const pids = await Promise.all([invoke('slow'), invoke('slow'), invoke('slow')])

  assert.equal(new Set(pids).size, 3)
})

test('a waiting machine for apps has been rehearsed, and nothing is left of the rehearsal', async () => {
  const waiting = await driver.start(appMachineSpec(newId('machine', systemClock.now())), signal)

  await rehearse(waiting, signal)

  const list = { command: '/bin/ls', args: ['-A', '/tmp', inMachine.app] }
  const found: string[] = []
  await runProgram(new MachineOperations(waiting), list, (line) => found.push(line), signal)
  assert.doesNotMatch(found.join(' '), /rehearsal/)
  await driver.stop(waiting.id)
})

test('the actions of a machine that ends fail, and the next action gets another machine', async () => {
  const { id: before } = machine
  const hanging = invoke('hang', { onLine: () => void driver.stop(before) })

  await assert.rejects(hanging, { message: /machine of the app has ended/ })
  assert.equal(await invoke('nothing'), 'null')
  assert.notEqual(machine.id, before)
})

test('a machine is kept for a while after its last action, and then stops', async () => {
  const { id: other } = machine
  const short = openWarm(300)

  const pids = [await invoke('slow', { on: short }), await invoke('slow', { on: short })]

  assert.equal(new Set(pids).size, 1)
  await machine.ended
  assert.notEqual(machine.id, other)
  await driver.stop(machine.id)
  await short.close()
})

test('a process that exits before its first action is replaced', async () => {
  const own = new WarmMachines({
    prepare: async () => {
      const prepared = await prepare()
      await prepared.waiting?.kill()
      return prepared
    },
    warmMilliseconds: 60_000,
    logger: createLogger({ name: 'test', level: 'silent', json: true }),
  })

  assert.equal(await invoke('nothing', { on: own }), 'null')
  await own.close()
})

test('a retired deployment has no machine when nothing runs in it any more', async () => {
  const slow = invoke('slow')
  warm.retire(id)

  await slow

  while ((await driver.list()).length > 0) await delay(20)
  assert.deepEqual(await driver.list(), [])
})
