import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { BrowserDownload } from '@berth/contract/downloads/download-endpoints.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const modified = '2026-01-02T03:04:05.000Z'
const mebibyte = 1024 * 1024

interface MachineFile {
  readonly content?: Buffer
  readonly isFolder?: boolean
  readonly mode?: string
}

/** A session with these files in its download folder. */
async function sessionWith(files: Readonly<Record<string, MachineFile>>, create: object = {}) {
  const project = await server.project()
  const { session_id: id } = await project.session({ headless: true, ...create })
  server.host.agentOf(id as never).operate = (request, response) => {
    const url = new URL(request.url ?? '', 'http://agent')
    const path = url.searchParams.get('path') ?? ''
    if (url.pathname.endsWith('/fs/list_files')) {
      assert.equal(path, '/home/kernel/Downloads')
      const list = Object.entries(files).map(([name, { content, isFolder = false, mode = '-rw-r--r--' }]) => ({
        ...{ name, path: `${path}/${name}`, size_bytes: content?.length ?? 0, is_dir: isFolder },
        ...{ mod_time: modified, mode },
      }))
      return response.writeHead(200).end(JSON.stringify(list))
    }
    const content = files[path.slice('/home/kernel/Downloads/'.length)]?.content
    if (!content) return response.writeHead(404).end('{}')
    response.writeHead(200, { 'content-length': content.length }).end(content)
  }
  const list = async () => (await project.call<BrowserDownload[]>('GET', `/browsers/${id}/downloads`)).body
  return { project, id, list }
}

/** Calls getDownload. */
const get = (project: TestProject, id: string, name: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/browsers/${id}/downloads/${encodeURIComponent(name)}`, {
    headers: { authorization: `Bearer ${project.key}`, ...headers },
  })

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

test('finished downloads are listed and read while the session is active, and afterwards if they are kept', async () => {
  const content = randomBytes(9 * mebibyte)
  const files = {
    'a ü.bin': { content },
    empty: { content: Buffer.alloc(0) },
    folder: { isFolder: true, mode: 'drwxr-xr-x' },
    link: { content, mode: 'lrwxrwxrwx' },
    'half.bin.crdownload': { content },
    '.org.chromium.Chromium.FUiE78': { content },
  }
  const { project, id, list } = await sessionWith(files, { keep_downloads: true })
  const whole = ['a ü.bin', 'empty'].map((name) => ({
    ...{ name, size_bytes: files[name as 'empty'].content.length, downloaded_at: modified },
  }))
  assert.deepEqual(await list(), whole)
  assert.ok((await bytesOf(await get(project, id, 'a ü.bin'))).equals(content))

  await project.call('DELETE', `/browsers/${id}`)

  const kept = await list()
  assert.deepEqual(
    kept.map(({ expires_at: _, ...facts }) => facts),
    whole,
  )
  assert.ok(kept.every(({ expires_at }) => Date.parse(String(expires_at)) > server.clock.now().getTime()))
  assert.ok((await bytesOf(await get(project, id, 'a ü.bin'))).equals(content))
  assert.equal((await bytesOf(await get(project, id, 'empty'))).length, 0)
  for (const [from, to] of [
    [0, 9],
    [4 * mebibyte - 5, 4 * mebibyte + 5],
    [9 * mebibyte - 1, 9 * mebibyte - 1],
  ] as const) {
    const part = await get(project, id, 'a ü.bin', { range: `bytes=${from}-${to}` })
    assert.equal(part.status, 206)
    assert.ok((await bytesOf(part)).equals(content.subarray(from, to + 1)))
  }
  assert.equal((await get(project, id, 'a ü.bin', { range: `bytes=${content.length}-` })).status, 416)

  server.clock.advance(8 * 86_400)
  await server.services.downloads.expire()
  assert.deepEqual(await list(), [])
  const names = await Array.fromAsync(
    server.services.blobs.list({ prefix: 'download-', before: new Date('2100-01-01') }),
  )
  assert.deepEqual(names, [])
})

test('without keep_downloads nothing is kept', async () => {
  const { project, id, list } = await sessionWith({ file: { content: Buffer.from('x') } })
  assert.equal((await list()).length, 1)

  await project.call('DELETE', `/browsers/${id}`)

  assert.deepEqual(await list(), [])
  assert.equal((await get(project, id, 'file')).status, 404)
})

test('files beyond the limit of a session are not kept, and leave nothing behind', async () => {
  const large = Object.fromEntries([1, 2, 3].map((number) => [`${number}`, { content: randomBytes(9 * mebibyte) }]))
  const { project, id, list } = await sessionWith(large, { keep_downloads: true })

  await project.call('DELETE', `/browsers/${id}`)

  assert.deepEqual(
    (await list()).map(({ name }) => name),
    ['1', '2'],
  )
  const names = await Array.fromAsync(
    server.services.blobs.list({ prefix: 'download-', before: new Date('2100-01-01') }),
  )
  const used = await server.services.downloads.listUsedBlobs(names)
  assert.deepEqual(used.toSorted(), names.toSorted())
})

test('a name is a file of the download folder, and never a path', async () => {
  const { project, id } = await sessionWith({})
  for (const [name, status] of [
    ['nothing', 404],
    ['../.bashrc', 400],
    ['a/b', 400],
    ['x'.repeat(256), 400],
  ] as const) {
    assert.equal((await get(project, id, name)).status, status, name)
  }
})
