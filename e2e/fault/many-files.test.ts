import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Berth } from '../testing/berth.ts'
import { deepOnly } from './testing/deep.ts'

const files = 150_000
/** Measured on a busy machine. If the server removed the files itself, they would take 10 s and more. */
const longestWaitMilliseconds = 3_000

test('a session with 150,000 files is deleted at once, and neither the API nor the next start waits for the rest', {
  ...deepOnly,
  timeout: 180_000,
}, async () => {
  const dataFolder = await mkdtemp(join(tmpdir(), 'berth-many-'))
  // With a disk in one file, removal is trivial.
  const environment = { BERTH_DISK_IMAGES: 'off' }
  const first = await Berth.start({ dataFolder, environment })
  const client = await first.client()
  const { session_id: id } = await client.browsers.create({ headless: true })
  const script = `for (1 .. ${files}) { mkdir "/tmp/" . int $_ / 1000; open F, ">", "/tmp/" . int($_ / 1000) . "/$_" or die }`
  const made = await client.browsers.process.exec(id, { command: 'perl', args: ['-e', script], timeout_sec: 120 })
  assert.equal(made.exit_code, 0)

  const waits: number[] = []
  let isDeleted = false
  const start = performance.now()
  const deletion = client.browsers.deleteByID(id).then(() => {
    isDeleted = true
  })
  do {
    const asked = performance.now()
    assert.equal((await first.request('/browsers')).status, 200)
    waits.push(performance.now() - asked)
  } while (!isDeleted)
  await deletion
  const deleteMilliseconds = performance.now() - start
  const trash = await readdir(join(dataFolder, 'trash'))
  await first.signal('SIGKILL')
  const restart = performance.now()
  const second = await Berth.start({ dataFolder, environment })
  const restartMilliseconds = performance.now() - restart
  const status = (await second.request('/browsers')).status
  await second.signal('SIGTERM')
  await rm(dataFolder, { recursive: true })

  assert.ok(deleteMilliseconds < longestWaitMilliseconds, `the delete took ${deleteMilliseconds} ms`)
  assert.ok(Math.max(...waits) < longestWaitMilliseconds, `a list took ${Math.max(...waits)} ms`)
  assert.equal(trash.length, 1)
  assert.ok(restartMilliseconds < 20_000, `the next start took ${restartMilliseconds} ms`)
  assert.equal(status, 200)
})
