import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { Berth, launch } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { freePort } from './testing/shared-storage.ts'

async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), 'berth-serve-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** The folders with the sockets of a data folder, as docs/operating.md describes. */
async function runtimeFoldersOf(dataFolder: string): Promise<readonly string[]> {
  const name = createHash('sha256')
    .update(await realpath(dataFolder))
    .digest('hex')
    .slice(0, 8)
  const bases = ['/run/berth', `/tmp/berth-${process.geteuid?.()}`, `${process.env.XDG_RUNTIME_DIR}/berth`]
  return bases.map((base) => join(base, name)).filter((path) => existsSync(path))
}

/** Runs `./berth serve` until it exits, as the test expects. */
async function serveAndFail(args: readonly string[], environment: Record<string, string> = {}) {
  const child = launch(['serve', ...args], environment)
  const [errors, output, [code]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream as never),
    text(child.stdout as NodeJS.ReadableStream as never),
    once(child, 'exit'),
  ])
  return { code: code as number, errors, output }
}

test('prints a key on the first start and never again', async () => {
  await using folder = await temporaryFolder()
  const start = async () => {
    const child = launch(['serve', '--port', '0', '--json', '--data-dir', folder.path])
    const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data')
    const ready = JSON.parse(String(line)) as {
      api_key: string | null
      base_url: string
      dashboard_url: string
      pid: number
    }
    return { child, ready }
  }

  const first = await start()
  process.kill(first.ready.pid, 'SIGTERM')
  await once(first.child, 'exit')
  const second = await start()
  const signIn = () =>
    fetch(`${second.ready.base_url}/dashboard/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-berth-dashboard': '1' },
      body: JSON.stringify({ code: first.ready.dashboard_url.split('#code=')[1] }),
    })
  const signIns = [(await signIn()).status, (await signIn()).status]
  const response = await fetch(`${second.ready.base_url}/browsers`, {
    headers: { authorization: `Bearer ${first.ready.api_key}` },
  })
  process.kill(second.ready.pid, 'SIGINT')
  const [code] = await once(second.child, 'exit')

  assert.match(first.ready.api_key ?? '', /^sk_\w{40,}$/)
  assert.equal(second.ready.api_key, null)
  assert.equal(second.ready.dashboard_url, `${second.ready.base_url}/dashboard`)
  assert.deepEqual(signIns, [204, 401], 'the link of the first start signs in once')
  assert.equal(response.status, 200)
  assert.equal(first.child.pid, first.ready.pid, 'the process that was started is the server')
  assert.equal(code, 0)
  assert.deepEqual(await runtimeFoldersOf(folder.path), [], 'a server without sessions leaves no sockets')
})

test('a stopped server leaves its sessions running for the next one, or stops them if it is configured to', async () => {
  await using folder = await temporaryFolder()
  const flags = ['--port', String(await freePort())]
  const first = await Berth.start({ dataFolder: folder.path, flags })
  const client = await first.client()
  const session = await client.browsers.create({ headless: true, name: 'survivor' })
  const cdp = await CdpClient.open(session.cdp_ws_url)
  const page = await cdp.openPage()
  await cdp.evaluate(page, 'globalThis.kept = 42')
  const { targetInfos } = await cdp.send('Target.getTargets')
  const stoppedAt = Date.now()

  assert.equal(await first.signal('SIGTERM'), 0)
  assert.ok(Date.now() - stoppedAt < 30_000)
  const secondFlags = [...flags, '--stop-sessions', '--no-metrics']
  const second = await Berth.start({ dataFolder: folder.path, flags: secondFlags })
  const again = await CdpClient.open(session.cdp_ws_url)
  const target = (targetInfos as { type: string; targetId: string }[]).find(({ type }) => type === 'page')
  const known = (await again.send('Target.getTargets')).targetInfos as { targetId: string }[]

  assert.ok(
    known.some(({ targetId }) => targetId === target?.targetId),
    'the tabs are the same',
  )
  assert.equal((await (await second.client()).browsers.retrieve('survivor')).session_id, session.session_id)
  assert.equal((await second.request('/metrics')).status, 404)
  const created = await (await second.client()).browsers.create({ headless: true })
  await again.close()

  assert.equal(await second.signal('SIGTERM'), 0)
  await using third = await Berth.start({ dataFolder: folder.path })
  const last = await third.client()
  for (const { session_id } of [session, created]) {
    await assert.rejects(last.browsers.retrieve(session_id), { status: 404 })
    assert.ok((await last.browsers.retrieve(session_id, { include_deleted: true })).deleted_at)
  }
})

test('a used port, a used folder, an unusable folder and a missing database print one line and set an exit code', async () => {
  await using folder = await temporaryFolder()
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  const file = join(folder.path, 'file')
  await writeFile(file, '')

  const busyPort = await serveAndFail(['--port', String(port), '--data-dir', join(folder.path, 'a')])
  await mkdir(join(folder.path, 'b'))
  await using _running = await Berth.start({ dataFolder: join(folder.path, 'b') })
  const busyFolder = await serveAndFail(['--port', '0', '--data-dir', join(folder.path, 'b')])
  const noFolder = await serveAndFail(['--port', '0', '--data-dir', join(file, 'below')])
  const badPort = await serveAndFail(['--port', 'x'])
  const badAllow = await serveAndFail(['--port', '0', '--data-dir', join(folder.path, 'c')], {
    BERTH_EGRESS_ALLOW: '10.0.0.0/99',
  })
  const noDatabase = await serveAndFail(['--port', '0', '--data-dir', join(folder.path, 'd')], {
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  })
  taken.close()

  for (const [failure, pattern] of [
    [busyPort, /port/],
    [busyFolder, /another berth server/],
    [noFolder, /folder/],
    [badPort, /--port/],
    [badAllow, /BERTH_EGRESS_ALLOW/],
    [noDatabase, /DATABASE_URL/],
  ] as const) {
    assert.notEqual(failure.code, 0)
    assert.match(failure.errors, pattern)
    assert.doesNotMatch(failure.errors, /\n\s+at /, 'no stack trace')
    assert.equal(failure.errors.trim().split('\n').length, 1, failure.errors)
  }
})

test('--help and an unknown command print an explanation', async () => {
  for (const [args, code, pattern] of [
    [['--help'], 0, /serve[\s\S]*setup[\s\S]*doctor[\s\S]*test[\s\S]*check/],
    [['serve', '--help'], 0, /--port[\s\S]*--data-dir/],
    [['sevre'], 64, /sevre/],
  ] as const) {
    const child = launch(args)
    const [output, errors, [exit]] = await Promise.all([
      text(child.stdout as never),
      text(child.stderr as never),
      once(child, 'exit'),
    ])
    assert.match(output + errors, pattern)
    assert.equal(exit === 0, code === 0)
  }
})
