import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ProcessSpawn } from '@berth/contract/agent/operations/process-operations.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { familyVariable } from './process-environment.ts'
import { ProcessTable } from './process-table.ts'
import { SpawnedProcess } from './spawned-process.ts'

const runFolder = await mkdtemp(join(tmpdir(), 'berth-process-'))
after(() => rm(runFolder, { recursive: true }))

function shell(script: string, options: object = {}): Promise<SpawnedProcess> {
  const request = ProcessSpawn.parse({ command: 'sh', args: ['-c', script], ...options })
  const id = randomUUID()
  const environment = { PATH: '/usr/bin:/bin', [familyVariable]: id }
  const command = { id, program: request.command, args: request.args, folder: '/tmp', environment }
  return SpawnedProcess.start({ command, request, runFolder, clock: systemClock })
}

async function textOf(process: SpawnedProcess, signal: AbortSignal = new AbortController().signal): Promise<string> {
  let text = ''
  for await (const frame of process.output(signal)) {
    if ('data_b64' in frame) text += Buffer.from(frame.data_b64, 'base64')
  }
  return text
}

test('a program without a reader is paused, and takes no memory', async () => {
  const program = await shell('exec yes')
  const written = async () => Number(/^wchar: (\d+)/m.exec(await readFile(`/proc/${program.pid}/io`, 'utf8'))?.[1])
  // It is blocked when two checks, with some time between them, find the same amount of output.
  let before = -1
  for (let now = await written(); now !== before || now < 1024 * 1024; now = await written()) {
    before = now
    await (await shell('sleep 0.05')).ended
  }

  assert.ok(before < 2 * 1024 * 1024, `${before} bytes`)
  await program.signal('KILL')
  assert.equal(await program.ended, -1)
})

test('all output of a program is kept at its end until it is read', async () => {
  for (const allocate_tty of [false, true]) {
    // More than the queue holds; the rest is in the pipe, or in the terminal, which holds less.
    const bytes = 1024 * 1024 + 4_000
    const program = await shell(`head -c ${bytes} /dev/zero | tr '\\0' x`, { allocate_tty })
    await program.ended

    assert.equal((await textOf(program)).length, bytes)
  }
})

test('two readers share the output, and both receive the end', async () => {
  const program = await shell('seq 1 20000')
  const frames = await Promise.all([1, 2].map(() => Array.fromAsync(program.output(new AbortController().signal))))

  for (const each of frames) assert.deepEqual(each.at(-1), { event: 'exit', exit_code: 0 })
  const bytes = frames.flat().map((frame) => ('data_b64' in frame ? Buffer.byteLength(frame.data_b64, 'base64') : 0))
  assert.equal(
    bytes.reduce((sum, each) => sum + each, 0),
    108_894,
  )
})

test('a disconnected reader takes nothing more', async () => {
  const program = await shell('read line; echo "$line"')
  const left = new AbortController()
  const first = textOf(program, left.signal)
  left.abort()
  await program.write(Buffer.from('for the second\n'))

  assert.equal(await first, '')
  assert.equal(await textOf(program), 'for the second\n')
})

test('a background process can continue to write', async () => {
  const marker = join(runFolder, 'survived')
  const program = await shell(`(sleep 0.2; seq 1 100000; echo $? > ${marker}) & exit 0`)
  await program.ended
  let survived = ''
  while (survived === '') {
    survived = await readFile(marker, 'utf8').catch(() => '')
    await (await shell('sleep 0.05')).ended
  }

  assert.equal(survived, '0\n')
})

test('unread input is limited, and ends with the program', async () => {
  const program = await shell('sleep 60')
  const part = Buffer.alloc(8 * 1024 * 1024)
  const waiting = Promise.allSettled([program.write(part), program.write(part)])

  await assert.rejects(program.write(part), { code: 'process_input_full' })
  await program.signal('KILL')
  const codes = (await waiting).map((result) => result.status === 'rejected' && result.reason.code)
  assert.deepEqual(codes, ['process_not_running', 'process_not_running'])
  await assert.rejects(program.write(part), { code: 'process_not_running' })
})

test('closed input is reported', async () => {
  const program = await shell('exec 0<&-; echo closed; sleep 60')
  for await (const _frame of program.output(new AbortController().signal)) break

  await assert.rejects(program.write(Buffer.from('x')), { code: 'process_input_closed' })
  await program.signal('KILL')
})

test('a kill finds processes that left the group or hide their environment', async () => {
  // No other process of the machine sleeps for so long.
  const seconds = `71${process.pid}`
  const program = await shell(
    `setsid sleep ${seconds} & env -i sleep ${seconds} & setsid sh -c "env -i sleep ${seconds}" & echo up; wait`,
  )
  const started = async () => (await commandLines()).filter((line) => line.includes(seconds)).length
  while ((await started()) < 3) await (await shell('sleep 0.02')).ended

  await program.signal('KILL')

  // A killed process is there until it gets the processor.
  while ((await started()) > 0) await (await shell('sleep 0.02')).ended
})

async function commandLines(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.startsWith('sleep'))
}

test('pipes keep no name, and no descriptor stays open', async () => {
  await (await shell('true')).ended
  const before = (await readdir('/proc/self/fd')).length
  for (let round = 0; round < 20; round++) {
    await (await shell('echo x', { allocate_tty: round % 2 === 0 })).ended
    await assert.rejects(shell('', { command: '/nowhere' }), { code: 'process_start_failed' })
  }
  await (await shell('true')).ended

  assert.deepEqual(
    (await readdir(runFolder)).filter((name) => name.startsWith('pipe')),
    [],
  )
  assert.ok((await readdir('/proc/self/fd')).length <= before + 2)
})

test('of many simultaneous spawns, no more than the limit are admitted', async () => {
  const table = new ProcessTable(4)
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => table.add(() => shell('sleep 60'))))
  const running = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))

  assert.equal(running.length, 4)
  assert.equal(
    (results.find(({ status }) => status === 'rejected') as PromiseRejectedResult).reason.code,
    'too_many_processes',
  )
  for (const { pid } of running) process.kill(-pid, 'SIGKILL')
  await Promise.all(running.map(({ ended }) => ended))
  const [{ id } = { id: '' }] = running
  assert.equal((await table.get(id).status()).state, 'exited')
  await (await table.add(() => shell('true'))).ended
})
