import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { zip } from '@berth/runtime/testing/zip.ts'
import { ServedApp } from '../testing/served-app.ts'

const app = await ServedApp.start()
after(() => app[Symbol.asyncDispose]())

/** For tests that need a file system of their own. */
const asRoot = { skip: process.getuid?.() !== 0 }
const archive = zip({ name: 'a', content: 'x' })

/** All operations that create something at a path. */
const makers: Readonly<Record<string, (path: string) => Promise<Response>>> = {
  create_directory: (path) => app.send('PUT', '/fs/create_directory', { path }),
  write_file: (path) => app.call('PUT', `/fs/write_file?path=${encodeURIComponent(path)}`, { body: 'x' }),
  move: async (path) => app.send('PUT', '/fs/move', { src_path: await somethingToMove(), dest_path: path }),
  upload: (path) => upload('upload', { 'files[0][dest_path]': path, 'files[0][file]': Buffer.from('x') }),
  upload_zip: (path) => upload('upload_zip', { dest_path: path, zip_file: archive }),
}

for (const [name, make] of Object.entries(makers)) {
  const makesFolders = name !== 'move'

  for (const place of ['/proc/new', '/proc/self/new', '/proc/new/deeper', '/sys/new/deeper', '/dev/pts/new/deeper']) {
    test(`${name} refuses ${place} without hanging`, { timeout: 20_000 }, async () => {
      const answer = await make(place)

      const isMissing = !makesFolders && place.endsWith('/new/deeper')
      assert.equal(answer.status, isMissing ? 404 : 403, await answer.text())
    })
  }

  test(`${name} reports a read-only disk and a full disk`, asRoot, async () => {
    const [readOnly, full] = [await app.newFolder(), await app.newFolder()]
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'berth-test', readOnly])
    // The root folder uses the only inode.
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=1', 'berth-test', full])
    try {
      for (const below of makesFolders ? ['new', 'new/deeper'] : ['new']) {
        assert.equal((await make(join(readOnly, below))).status, 403, below)
        assert.equal((await make(join(full, below))).status, 507, below)
      }
      assert.deepEqual(await readdir(full), [])
    } finally {
      for (const folder of [readOnly, full]) execFileSync('umount', [folder])
    }
  })
}

async function somethingToMove(): Promise<string> {
  const path = join(await app.newFolder(), 'file')
  await writeFile(path, 'x')
  return path
}

function upload(name: string, parts: Readonly<Record<string, string | Buffer>>): Promise<Response> {
  const form = new FormData()
  for (const [field, content] of Object.entries(parts)) {
    if (typeof content === 'string') form.append(field, content)
    else form.append(field, new Blob([new Uint8Array(content)]), 'f')
  }
  return app.call('POST', `/fs/${name}`, { body: form })
}
