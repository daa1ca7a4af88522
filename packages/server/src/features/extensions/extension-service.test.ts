import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import { ExtensionService } from './extension-service.ts'

const manifest = { name: 'manifest.json', content: JSON.stringify({ manifest_version: 3, name: 'a', version: '1' }) }

async function isOpen(path: string): Promise<boolean> {
  const files = await readdir('/proc/self/fd')
  return (await Promise.all(files.map((file) => readlink(`/proc/self/fd/${file}`).catch(() => '')))).includes(path)
}

test('an upload that cannot be stored releases its file', { timeout: 20_000 }, async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-upload-'))
  context.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'large.zip')
  await writeFile(path, zip(manifest, { name: 'large', content: randomBytes(2_000_000) }))
  const service = new ExtensionService({
    store: {} as never,
    blobs: { write: () => Promise.reject(new Error('no room')) } as never,
    secrets: { sealing: async () => new PassThrough() } as never,
    temporaryFolders: {} as never,
    clock: systemClock,
  })

  await assert.rejects(service.upload(newId('project', systemClock.now()), { name: 'a', path }), /no room/)

  while (await isOpen(path)) await delay(10)
})
