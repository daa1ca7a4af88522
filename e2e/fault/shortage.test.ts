import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { CdpClient } from '../testing/cdp.ts'
import { machineOf } from '../testing/machine-of.ts'
import { freePort } from '../testing/shared-storage.ts'
import { readVideo } from '../testing/video.ts'
import { deepOnly } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { findPart } from './testing/parts.ts'
import { call, canBeUsed, createSession, deleteSession, isActive, type SessionRecord } from './testing/sessions.ts'
import { until } from './testing/until.ts'

const mebibyte = 1024 ** 2
const testbed = await FaultTestbed.open()
const { view } = testbed
const flags = ['--port', String(await freePort())]
let berth = await testbed.start({ flags })
after(() => testbed[Symbol.asyncDispose]())
const isRoot = process.geteuid?.() === 0
const withMemoryLimit = { skip: isRoot ? false : 'without control groups the memory of machines is not limited' }
const deepAsRoot = { skip: isRoot ? deepOnly.skip : 'needs root, to mount a small disk' }
const asRoot = { skip: isRoot ? false : 'needs root, to mount a small disk or to enter the groups of a session' }

let shared: SessionRecord | undefined

/** The session that must not notice what the others do. */
async function otherSession(): Promise<SessionRecord> {
  shared ??= await createSession(berth, { timeout_seconds: 600 })
  return shared
}

test('a page that takes all memory of its session is ended and reported, and no other', withMemoryLimit, async () => {
  const [greedy, other] = [await createSession(berth), await otherSession()]
  const witness = await CdpClient.open(other.cdp_ws_url)
  const witnessPage = await witness.openPage()
  await witness.evaluate(witnessPage, 'globalThis.mark = 7')
  const client = await CdpClient.open(greedy.cdp_ws_url)
  const page = await client.openPage()

  // Writes to several buffers, because untouched memory is not allocated.
  client
    .evaluate(
      page,
      `globalThis.kept = []; for (let i = 0; i < 64; i++) kept.push(new Uint8Array(64 * ${mebibyte}).fill(i))`,
    )
    .catch(() => {})

  await until('the metric', async () => (await memoryKills()) > 0, { limitSeconds: 30, everyMilliseconds: 200 })
  const logged = new RegExp(`"sessionId":"${greedy.session_id}"[^\\n]*memory limit`)
  await until('the log', () => logged.test(berth.log), { limitSeconds: 30 })
  assert.equal(await witness.evaluate(witnessPage, 'globalThis.mark'), 7, 'the other session did not notice')
  await until('a page in the greedy session', () => canBeUsed(greedy).catch(() => false), {
    limitSeconds: 20,
    everyMilliseconds: 200,
  })
  client.reset()
  await witness.close()
  assert.equal(await deleteSession(berth, greedy.session_id), 204)
})

test('a session whose shared memory is full survives, recovers, and affects no other', asRoot, async () => {
  const [full, other] = [await createSession(berth), await otherSession()]
  const agent = await findPart(view, full.session_id, 'agent')
  const sharedMemory = `/proc/${agent.pid}/root/dev/shm`
  const filling = join(sharedMemory, 'filling')

  const { bavail, bsize } = await statfs(sharedMemory)
  assert.ok(bavail * bsize <= 1024 * mebibyte, 'a session’s shared memory is limited by its own memory')
  await fill(sharedMemory, filling, 0)
  assert.equal((await statfs(sharedMemory)).bavail, 0)

  assert.ok(await isActive(berth, full.session_id))
  assert.ok(await canBeUsed(other))
  await rm(filling)
  assert.ok(await canBeUsed(full))
  assert.equal(await deleteSession(berth, full.session_id), 204)
})

test('a session can have hundreds of processes up to its limit, without effect on other sessions', asRoot, async () => {
  const [crowded, other] = [await createSession(berth), await otherSession()]
  const group = (await view.controlGroups()).find(
    (path) => path.endsWith(machineOf(crowded.session_id)) && path.includes('pids'),
  ) as string
  const limit = Number(await readFile(join(group, 'pids.max'), 'utf8'))
  const before = await view.processesOf(crowded.session_id)

  const crowd = spawn(
    'sh',
    [
      '-c',
      `echo $$ > ${join(group, 'cgroup.procs')} || exit; for i in $(seq 300); do sleep 100 & done; echo 300; while sleep 101 & do :; done`,
    ],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    },
  )
  const ended = once(crowd, 'exit')
  await once(crowd.stdout, 'data')
  const many = (await view.processesOf(crowded.session_id)).length
  assert.ok(many >= before.length + 300, `300 processes more can be there, and ${many - before.length} are`)
  await until('the limit', async () => Number(await readFile(join(group, 'pids.current'), 'utf8')) >= limit - 1, {
    limitSeconds: 20,
  })

  assert.ok(await canBeUsed(other))
  assert.ok(await isActive(berth, crowded.session_id))
  // A shell that cannot fork waits and retries.
  process.kill(-(crowd.pid as number), 'SIGKILL')
  await ended
  await until('a page in the crowded session', () => canBeUsed(crowded).catch(() => false), {
    limitSeconds: 20,
    everyMilliseconds: 200,
  })
  assert.equal(await deleteSession(berth, crowded.session_id), 204)
})

test('a create for which the host has no memory is refused as retryable, and leaves nothing', async () => {
  const kept = await otherSession()
  await berth.signal('SIGTERM')
  berth = await testbed.start({
    environment: { BERTH_RESERVED_MEMORY_MIB: '99999999' },
    flags,
  })
  const before = await view.holdings()

  const { status, shouldRetry, body } = await call<{ code: string; message: string }>(berth, 'POST', '/browsers', {
    headless: true,
    name: 'no-room',
  })

  assert.deepEqual([status, shouldRetry, body.code], [529, 'true', 'capacity_exhausted'])
  assert.match(body.message, /memory/)
  assert.deepEqual(await view.findLeft(before, 20), [])
  assert.deepEqual(
    (await call<SessionRecord[]>(berth, 'GET', '/browsers')).body.map(({ session_id }) => session_id),
    [kept.session_id],
  )
  assert.ok(await canBeUsed(kept), 'a session that is there is not touched')
})

test(
  'on a full disk creates are refused, live sessions continue, and creates work when there is room again',
  asRoot,
  async () => {
    await using disk = await mountDisk(640)
    await using small = await FaultTestbed.open(disk.folder)
    const server = await small.start()
    const session = await createSession(server)
    const filling = join(small.folder, 'filling')

    await fill(small.folder, filling, 64)
    const little = await call<{ code: string; message: string }>(server, 'POST', '/browsers', { headless: true })
    assert.deepEqual([little.status, little.shouldRetry, little.body.code], [529, 'true', 'capacity_exhausted'])
    assert.match(little.body.message, /disk/)
    await fill(small.folder, `${filling}-2`, 0)
    const none = await call(server, 'POST', '/browsers', { headless: true })
    assert.ok([503, 529].includes(none.status), `a create on a full disk answers ${none.status}`)
    assert.equal(none.shouldRetry, 'true')
    const seen = await call(server, 'GET', `/browsers/${session.session_id}`)
    assert.ok([200, 503].includes(seen.status))
    const client = await CdpClient.open(session.cdp_ws_url)
    assert.ok(await client.send('Browser.getVersion'))
    await client.close()

    for (const file of [filling, `${filling}-2`]) await rm(file)
    await until('room', async () => (await call(server, 'GET', '/browsers')).status === 200, { limitSeconds: 60 })
    assert.ok(await canBeUsed(session), 'the session has outlived the full disk')
    assert.equal(await deleteSession(server, session.session_id), 204)
    assert.ok(await canBeUsed(await createSession(server)))
  },
)

/** Every frame is different and takes as many bytes as the encoder may use. */
const noise = `data:text/html,<canvas width=1200 height=800></canvas><script>
  const context = document.querySelector('canvas').getContext('2d')
  setInterval(() => {
    const picture = context.createImageData(1200, 800)
    const words = new Uint32Array(picture.data.buffer)
    for (let at = 0; at < words.length; at++) words[at] = Math.random() * 2 ** 32
    context.putImageData(picture, 0, 0)
  }, 100)</script>`

test('a full disk ends a recording, which reports that and plays, but not its session', deepAsRoot, async () => {
  await using disk = await mountDisk(3)
  await using small = await FaultTestbed.open()
  const server = await small.start({ environment: { BERTH_BLOBS_FOLDER: disk.folder } })
  const session = await createSession(server, { start_url: noise, timeout_seconds: 300 })
  const path = `/browsers/${session.session_id}/replays`
  type Replay = { readonly replay_id: string; readonly end_reason?: string }
  const { replay_id } = (await call<Replay>(server, 'POST', path, {})).body

  const reason = async () => (await call<readonly Replay[]>(server, 'GET', path)).body[0]?.end_reason
  await until('its end', async () => (await reason()) !== undefined, { limitSeconds: 60 })

  assert.equal(await reason(), 'storage_full')
  const download = await server.request(`${path}/${replay_id}`)
  const video = await readVideo(new Uint8Array(await download.arrayBuffer()))
  assert.ok(video.seconds > 1, `${video.seconds} s`)
  assert.ok(await canBeUsed(session))
  assert.equal(await deleteSession(server, session.session_id), 204)
})

/** Mounts a small disk. */
async function mountDisk(mebibytes: number) {
  const folder = await mkdtemp(join(tmpdir(), 'berth-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'berth-fault', folder])
  return {
    folder,
    async [Symbol.asyncDispose]() {
      execFileSync('umount', [folder])
      await rm(folder, { recursive: true })
    },
  }
}

/** Fills the folder's file system up to the given remainder. */
async function fill(folder: string, file: string, leftMebibytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const bytes = bavail * bsize - leftMebibytes * mebibyte
  await writeFile(file, Buffer.alloc(Math.max(0, bytes))).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOSPC') throw error // Another process was faster, and the disk is full.
  })
}

async function memoryKills(): Promise<number> {
  const text = await (await fetch(`${berth.url}/metrics`, { headers: { connection: 'close' } })).text()
  return Number(/^berth_memory_kills_total (\d+)$/m.exec(text)?.[1])
}
