import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, suite, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { APIError } from '@onkernel/sdk'
import type { ProcessExecParams } from '@onkernel/sdk/resources/browsers/process'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { memoryMiB, processesOf, serviceProcesses } from './testing/processes.ts'

const berth = await Berth.borrow()
after(() => berth[Symbol.asyncDispose]())

/** The official client's two routes: through the API, and directly to the session. */
const clients = {
  'over the API': await berth.client({ directly: '' }),
  directly: await berth.client({ directly: 'process' }),
}
const [headless, headful] = await Promise.all([
  clients['over the API'].browsers.create({ headless: true }),
  clients['over the API'].browsers.create({ headless: false }),
])
const id = headless.session_id
// The client learns the direct route from a response that contains the session.
await clients.directly.browsers.retrieve(id)

for (const [way, client] of Object.entries(clients)) {
  const exec = (command: string, ...args: string[]) => client.browsers.process.exec(id, { command, args })
  const shell = (script: string, options: Partial<ProcessExecParams> = {}) =>
    client.browsers.process.exec(id, { command: 'sh', args: ['-c', script], ...options })
  const spawn = (script: string, options: Partial<Kernel.Browsers.ProcessSpawnParams> = {}) =>
    client.browsers.process
      .spawn(id, { command: 'sh', args: ['-c', script], ...options })
      .then(({ process_id = '' }) => process_id)

  /** Returns the output of the process. The exit event must arrive once and last. */
  async function follow(processId: string): Promise<{ stdout: string; stderr: string; exitCode: number | undefined }> {
    const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
    let exitCode: number | undefined
    for await (const frame of await client.browsers.process.stdoutStream(processId, { id })) {
      assert.equal(exitCode, undefined, 'a frame behind the last one')
      if (frame.event === 'exit') exitCode = frame.exit_code
      else written[frame.stream ?? 'stdout'].push(Buffer.from(frame.data_b64 ?? '', 'base64'))
    }
    return { stdout: `${Buffer.concat(written.stdout)}`, stderr: `${Buffer.concat(written.stderr)}`, exitCode }
  }

  suite(`processes, ${way}`, { timeout: 60_000 }, () => {
    test('exec returns exit code, output and duration, and ends with its command', async () => {
      const started = performance.now()
      const background = await shell('sleep 60 & echo hi')
      const took = performance.now() - started
      const failing = await shell('echo out; echo err >&2; exit 3')
      const killed = await shell('kill -9 $$')
      const random = await shell(
        'head -c 3145728 /dev/urandom | tee /dev/stderr /tmp/random; sha256sum < /tmp/random >> /tmp/sum',
      )
      const sum = text((await shell('cat /tmp/sum; rm /tmp/sum')).stdout_b64).split(' ')[0]
      const slow = await exec(
        'perl',
        '-e',
        '$|=1; for (0xe2, 0x82, 0xac) { print chr; select undef, undef, undef, 0.1 }',
      )

      assert.deepEqual([background.exit_code, text(background.stdout_b64)], [0, 'hi\n'])
      assert.ok(took < 30_000, `${took} ms`)
      assert.deepEqual([failing.exit_code, text(failing.stdout_b64), text(failing.stderr_b64)], [3, 'out\n', 'err\n'])
      assert.equal(killed.exit_code, -1)
      assert.deepEqual([random.stdout_b64, random.stderr_b64].map(sha256), [sum, sum])
      assert.equal(text(slow.stdout_b64), '€')
      assert.ok((slow.duration_ms ?? 0) >= 200)
    })

    test('a command runs with the environment of the session and in the requested folder', async () => {
      const plain = text((await shell('pwd; env')).stdout_b64)
      const chosen = await shell('pwd; echo "$GREETING $HOME"', { cwd: '/tmp', env: { GREETING: 'grüße', HOME: '/x' } })
      const files = text(
        (await shell('ls -l /proc/self/fd; cat </dev/stdin; echo a >/dev/stdout; echo b >/dev/stderr')).stdout_b64,
      )

      assert.match(plain, /^\/home\/kernel\n/)
      for (const line of ['USER=kernel', 'HOME=/home/kernel', 'PATH=/usr/local/bin:/usr/bin:/bin'])
        assert.ok(plain.includes(`${line}\n`), line)
      assert.doesNotMatch(plain, /DISPLAY|sk_|proxy|BERTH_(?!PROCESS_ID)/i)
      assert.equal(text(chosen.stdout_b64), '/tmp\ngrüße /x\n')
      // The standard streams and the folder itself.
      assert.equal(files.match(/ -> /g)?.length, 4, files)
      assert.match(files, /\na\n$/)
    })

    test('a command that cannot run is refused with the field and the rule', async () => {
      const refused = async (request: object) =>
        failure(client.browsers.process.exec(id, { command: 'true', ...request } as ProcessExecParams))

      assert.deepEqual(await refused({ command: '/nowhere/program' }), [500, 'process_start_failed'])
      assert.deepEqual(await refused({ command: '' }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ cwd: '/nowhere' }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ cwd: 'tmp' }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ as_root: true }), [400, 'field_not_supported'])
      assert.deepEqual(await refused({ as_user: 'nobody' }), [400, 'field_not_supported'])
      assert.deepEqual(await refused({ as_user: 'no-such-user' }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ as_user: 'kernel', as_root: true }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ env: { 'A=B': 'x' } }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ timeout_sec: -1 }), [400, 'invalid_input'])
      assert.deepEqual(await refused({ shell: true }), [400, 'invalid_input'])
      assert.deepEqual(await failure(client.browsers.process.spawn(id, { command: 'nope', allocate_tty: true })), [
        500,
        'process_start_failed',
      ])
      assert.deepEqual(await failure(client.browsers.process.spawn(id, { command: 'sh', rows: 0 })), [
        400,
        'invalid_input',
      ])
      const own = await shell('id -u', { as_user: 'kernel' })
      assert.equal((await shell('id -u', { as_user: text(own.stdout_b64).trim() })).exit_code, 0)
    })

    test('a timeout ends all processes of the command', async () => {
      const started = performance.now()
      const late = await failure(shell('sleep 6161 & setsid sleep 6262 & sleep 6363', { timeout_sec: 1 }))
      const took = performance.now() - started
      const processId = await spawn('sleep 6464 & sleep 6565', { timeout_sec: 1 })
      const { exitCode } = await follow(processId)

      assert.deepEqual(late, [500, 'process_timed_out'])
      assert.ok(took < 60_000, `${took} ms`)
      assert.equal(exitCode, -1)
      // A killed process is there until it gets the processor.
      await until('their end', async () => (await sleepers(/sleep 6[1-5]6[1-5]/)).length === 0, { limitSeconds: 30 })
    })

    test('a command ends when its caller disconnects', async () => {
      const leaving = new AbortController()
      const call = client.browsers.process.exec(
        id,
        { command: 'sh', args: ['-c', 'sleep 6666 & sleep 6667'] },
        { signal: leaving.signal },
      )
      await until('both processes', async () => (await sleepers(/sleep 666/)).length === 2, { limitSeconds: 30 })
      leaving.abort()
      await assert.rejects(call)

      await until('the end of both processes', async () => (await sleepers(/sleep 666/)).length === 0, {
        limitSeconds: 30,
      })
    })

    test('all output of a spawned process comes before its exit, in a terminal or without one', async () => {
      const lines = Array.from({ length: 50_000 }, (_, index) => index + 1)
      for (const allocate_tty of [false, true]) {
        const processId = await spawn('seq 1 50000; echo done >&2; exit 7', { allocate_tty })
        const { stdout, stderr, exitCode } = await follow(processId)
        const status = await client.browsers.process.status(processId, { id })
        const again = await follow(processId)

        const end = allocate_tty ? '\r\n' : '\n'
        assert.equal(stdout, lines.map((line) => `${line}${end}`).join('') + (allocate_tty ? 'done\r\n' : ''))
        assert.equal(stderr, allocate_tty ? '' : 'done\n')
        assert.equal(exitCode, 7)
        assert.deepEqual(status, { state: 'exited', exit_code: 7, cpu_pct: 0, mem_bytes: 0 })
        assert.deepEqual(again, { stdout: '', stderr: '', exitCode: 7 })
      }
    })

    test('a process waits for its reader, which may disconnect and return', async () => {
      const processId = await spawn('seq 1 3000000; echo end')
      const first: Buffer[] = []
      const stream = await client.browsers.process.stdoutStream(processId, { id })
      for await (const frame of stream) {
        first.push(Buffer.from(frame.data_b64 ?? '', 'base64'))
        if (first.length === 3) break
      }
      const status = await client.browsers.process.status(processId, { id })
      const { stdout, exitCode } = await follow(processId)

      assert.deepEqual([status.state, status.exit_code], ['running', null])
      assert.ok((status.mem_bytes ?? 0) > 0)
      assert.equal(exitCode, 0)
      const seen = `${Buffer.concat(first)}`
      assert.ok(seen.startsWith('1\n2\n'))
      // Data in transit to the reader that left is lost, and nothing else.
      assert.match(stdout, /\n2999999\n3000000\nend\n$/)
    })

    test('input reaches the process byte for byte', async () => {
      const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
      const processId = await spawn('head -c 300000 | sha256sum')
      const half = bytes.length / 2
      const sizes = []
      for (const part of [bytes.subarray(0, half), bytes.subarray(half)]) {
        sizes.push(
          (await client.browsers.process.stdin(processId, { id, data_b64: part.toString('base64') })).written_bytes,
        )
      }
      const { stdout } = await follow(processId)

      assert.deepEqual(sizes, [half, half])
      assert.equal(stdout.split(' ')[0], createHash('sha256').update(bytes).digest('hex'))
      assert.deepEqual(await failure(client.browsers.process.stdin(processId, { id, data_b64: 'aGk=' })), [
        404,
        'process_not_running',
      ])
      assert.deepEqual(await failure(client.browsers.process.stdin(processId, { id, data_b64: 'a*k=' })), [
        400,
        'invalid_input',
      ])
    })

    test('a terminal has a size, a name and keys', async () => {
      const script =
        'trap "stty size; exit 5" WINCH; tty; echo $TERM; stty size; stty -echo; echo go; read line; echo "got $line"; while :; do sleep 0.05; done'
      const processId = await spawn(script, { allocate_tty: true, rows: 24, cols: 80 })
      let shown = ''
      for await (const frame of await client.browsers.process.stdoutStream(processId, { id })) {
        if (frame.event) assert.equal(frame.exit_code, 5)
        shown += text(frame.data_b64)
        if (/go\r\n$/.test(shown))
          await client.browsers.process.stdin(processId, { id, data_b64: Buffer.from('hello\r').toString('base64') })
        if (/got hello\r\n$/.test(shown)) {
          assert.deepEqual(await client.browsers.process.resize(processId, { id, rows: 43, cols: 132 }), { ok: true })
        }
      }
      assert.match(shown, /^\/dev\/pts\/\d+\r\nxterm-256color\r\n24 80\r\ngo\r\ngot hello\r\n43 132\r\n$/)

      const interrupted = await spawn('echo up; sleep 60', { allocate_tty: true, env: { TERM: 'vt100' } })
      let end: number | undefined
      for await (const frame of await client.browsers.process.stdoutStream(interrupted, { id })) {
        // Before the shell runs, the terminal is nobody's.
        if (text(frame.data_b64).includes('up'))
          await client.browsers.process.stdin(interrupted, { id, data_b64: Buffer.from('\x03').toString('base64') })
        end = frame.exit_code
      }
      assert.equal(end, -1)
      const plain = await spawn('sleep 60')
      assert.deepEqual(await failure(client.browsers.process.resize(plain, { id, rows: 1, cols: 1 })), [
        400,
        'process_has_no_terminal',
      ])
      await client.browsers.process.kill(plain, { id, signal: 'KILL' })
    })

    test('signals reach a process until it has ended', async () => {
      for (const [signal, exitCode] of [
        ['TERM', 15],
        ['INT', 2],
        ['HUP', 1],
        ['KILL', -1],
      ] as const) {
        const processId = await spawn(
          `trap 'exit 15' TERM; trap 'exit 2' INT; trap 'exit 1' HUP; echo up; while :; do sleep 0.05; done`,
        )
        const stream = await client.browsers.process.stdoutStream(processId, { id })
        let end: number | undefined
        for await (const frame of stream) {
          if (frame.stream === 'stdout')
            assert.deepEqual(await client.browsers.process.kill(processId, { id, signal }), { ok: true })
          end = frame.exit_code
        }
        assert.equal(end, exitCode, signal)
        assert.deepEqual(await failure(client.browsers.process.kill(processId, { id, signal })), [
          404,
          'process_not_running',
        ])
      }
      const unknown = '00000000-0000-4000-8000-000000000000'
      assert.deepEqual(await failure(client.browsers.process.status(unknown, { id })), [404, 'process_not_found'])
      assert.deepEqual(await failure(client.browsers.process.status('x', { id })), [400, 'invalid_input'])
    })

    test('a session does not see the processes of another', async () => {
      const processId = await spawn('exec sleep 4242')
      const other = headful.session_id
      const ps = text(
        (await client.browsers.process.exec(other, { command: 'sh', args: ['-c', 'cat /proc/[0-9]*/cmdline'] }))
          .stdout_b64,
      )

      assert.doesNotMatch(ps, /4242/)
      assert.deepEqual(await failure(client.browsers.process.status(processId, { id: other })), [
        404,
        'process_not_found',
      ])
      assert.deepEqual(await failure(client.browsers.process.kill(processId, { id: other, signal: 'TERM' })), [
        404,
        'process_not_found',
      ])
      assert.deepEqual(await failure(client.browsers.process.stdoutStream(processId, { id: other })), [
        404,
        'process_not_found',
      ])
      await client.browsers.process.kill(processId, { id, signal: 'TERM' })
      assert.equal((await follow(processId)).exitCode, -1)
    })
  })
}

const client = clients.directly

test('300 MiB of output are truncated with a mark, and cost berth little', { timeout: 60_000 }, async () => {
  const before = await memoryMiB(await serviceProcesses(berth.pid))
  let most = before
  let longest = 0
  const flood = client.browsers.process.exec(id, {
    command: 'head',
    args: ['-c', String(300 * 1024 * 1024), '/dev/zero'],
  })
  let isDone = false
  void flood.then(() => {
    isDone = true
  })
  while (!isDone) {
    const started = performance.now()
    await client.browsers.process.exec(id, { command: 'true' })
    longest = Math.max(longest, performance.now() - started)
    most = Math.max(most, await memoryMiB(await serviceProcesses(berth.pid)))
  }
  const { stdout_b64: output = '', exit_code: code, ...rest } = await flood

  assert.equal(code, 0)
  assert.equal(Buffer.from(output, 'base64').length, 16 * 1024 * 1024)
  assert.equal((rest as { stdout_truncated?: boolean }).stdout_truncated, true)
  assert.ok(most - before < 400, `${most - before} MiB more`)
  assert.ok(longest < 10_000, `${longest} ms`)
})

test('a stream transfers more than any buffer holds, with flat memory', { timeout: 60_000 }, async () => {
  const before = await memoryMiB(await serviceProcesses(berth.pid))
  let most = before
  const args = ['-c', '104857600', '/dev/zero']
  const { process_id: processId } = await client.browsers.process.spawn(id, { command: 'head', args })
  const stream = await berth.request(`/browsers/${id}/process/${processId}/stdout/stream`)
  let bytes = 0
  let turns = 0
  for await (const chunk of stream.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (++turns % 500 === 0) most = Math.max(most, await memoryMiB(await serviceProcesses(berth.pid)))
  }

  assert.ok(bytes > (104_857_600 * 4) / 3, `${bytes} bytes`)
  assert.ok(most - before < 200, `${most - before} MiB more`)
})

const memoryLimit = {
  timeout: 60_000,
  skip: process.geteuid?.() === 0 ? false : 'without control groups the memory of machines is not limited',
}

test('a command that uses up the memory is ended, and the session continues', memoryLimit, async () => {
  const eater = await client.browsers.process.exec(id, { command: 'perl', args: ['-e', '$x .= "x" x 1e8 while 1'] })

  assert.equal(eater.exit_code, -1)
  assert.equal((await client.browsers.process.exec(id, { command: 'true' })).exit_code, 0)
  assert.match(
    await (await fetch(headless.cdp_ws_url.replace('ws', 'http').replace('/cdp', '/json/version'))).text(),
    /Chrome/,
  )
})

test('commands of a headful session open windows on its display', async () => {
  const shown = await client.browsers.process.exec(headful.session_id, {
    command: 'sh',
    args: ['-c', 'echo $DISPLAY; xrandr --current'],
  })

  assert.match(text(shown.stdout_b64), /^:\d+\nScreen 0: .*current 1920 x 1080,/)
})

test('ended processes leave nothing', async () => {
  const script = `cat /proc/[0-9]*/stat | grep -E '^[0-9]+ \\(.*\\) Z'`
  const defunct = async () => {
    const { stdout_b64 } = await client.browsers.process.exec(id, { command: 'sh', args: ['-c', script] })
    return text(stdout_b64)
  }

  // One that has just ended waits for its parent for a moment.
  await until('no defunct process', async () => (await defunct()) === '', { limitSeconds: 30 })
})

async function sleepers(pattern: RegExp): Promise<readonly string[]> {
  const commands = (await processesOf(id)).map(({ command }) => command)
  return commands.filter((command) => command.startsWith('sleep') && pattern.test(command))
}

async function failure(call: Promise<unknown>): Promise<[number | undefined, string]> {
  const error = await call.then(
    () => assert.fail('it was not refused'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof APIError, String(error))
  return [error.status, (error.error as { code: string }).code]
}

function text(base64: string | undefined): string {
  return Buffer.from(base64 ?? '', 'base64').toString()
}

function sha256(base64: string | undefined): string {
  return createHash('sha256')
    .update(Buffer.from(base64 ?? '', 'base64'))
    .digest('hex')
}
