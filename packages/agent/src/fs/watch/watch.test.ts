import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { appendFile, chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import type { FsEvent } from '@berth/contract/agent/operations/fs-types.ts'
import { ServedApp } from '../../testing/served-app.ts'

const app = await ServedApp.start()
after(() => app[Symbol.asyncDispose]())
let marks = 0
async function watch(path: string, recursive = false): Promise<string> {
  const answer = await app.send('POST', '/fs/watch', { path, recursive })
  assert.equal(answer.status, 201)
  return ((await answer.json()) as { watch_id: string }).watch_id
}

/** Reads the stream of a watch, event by event. */
class Reader {
  readonly answer: Response
  readonly seen: FsEvent[] = []
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #decoder = new TextDecoder()
  #text = ''

  private constructor(answer: Response) {
    this.answer = answer
    this.#chunks = (answer.body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]()
  }

  static async open(id: string, signal?: AbortSignal): Promise<Reader> {
    const answer = await app.call('GET', `/fs/watch/${id}/events`, signal ? { signal } : {})
    assert.equal(answer.status, 200)
    return new Reader(answer)
  }

  /** Undefined at the end of the stream. */
  async next(): Promise<FsEvent | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end !== -1) {
        const event = JSON.parse(this.#text.slice('data: '.length, end)) as FsEvent
        this.#text = this.#text.slice(end + 2)
        this.seen.push(event)
        return event
      }
      const { done, value } = await this.#chunks.next()
      if (done) return undefined
      this.#text += this.#decoder.decode(value, { stream: true })
    }
  }

  /** All events up to the one for this path, as `TYPE name`. */
  async until(path: string): Promise<readonly string[]> {
    const told: string[] = []
    for (;;) {
      const event = await this.next()
      assert.ok(event, 'the stream ended')
      if (event.path === path) return told
      told.push(`${event.type} ${event.path}`)
    }
  }
}

/** Makes a final change, and returns all events before it. */
async function eventsSoFar(reader: Reader, folder: string): Promise<readonly string[]> {
  const mark = join(folder, `mark-${++marks}`)
  await mkdir(mark)
  return (await reader.until(mark))
    .map((event) => event.replace(`${folder}/`, ''))
    .filter((event) => !event.includes('mark-'))
}

test('reports creates, writes, renames and deletes, but not changed permissions', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'old'), 'old')
  await writeFile(join(folder, 'gone'), '')
  const reader = await Reader.open(await watch(folder))

  await writeFile(join(folder, 'empty'), '')
  assert.deepEqual(await eventsSoFar(reader, folder), ['CREATE empty'])
  await writeFile(join(folder, 'new'), 'new')
  assert.deepEqual(await eventsSoFar(reader, folder), ['CREATE new', 'WRITE new'])
  await appendFile(join(folder, 'old'), '!')
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE old'])
  await chmod(join(folder, 'old'), 0o600)
  assert.deepEqual(await eventsSoFar(reader, folder), [])
  await rename(join(folder, 'old'), join(folder, 'renamed'))
  assert.deepEqual(await eventsSoFar(reader, folder), ['RENAME old', 'CREATE renamed'])
  await rm(join(folder, 'gone'))
  assert.deepEqual(await eventsSoFar(reader, folder), ['DELETE gone'])
  await writeFile(join(folder, 'reborn'), '')
  assert.deepEqual(await eventsSoFar(reader, folder), ['CREATE reborn'])
  await mkdir(join(folder, 'dir'))
  await writeFile(join(folder, 'dir', 'below'), 'x')
  assert.deepEqual(await eventsSoFar(reader, folder), ['CREATE dir'])
  assert.deepEqual(reader.seen[0], { type: 'CREATE', path: join(folder, 'empty'), name: 'empty', is_dir: false })
  assert.equal(reader.answer.headers.get('x-sse-content-type'), 'application/json')
})

test('reports a write by the API as one change', async () => {
  const folder = await app.newFolder()
  const reader = await Reader.open(await watch(folder))
  const write = (body: string) => app.call('PUT', `/fs/write_file?path=${folder}/file`, { body })

  await write('one')
  assert.deepEqual(await eventsSoFar(reader, folder), ['CREATE file', 'WRITE file'])
  await write('two')
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE file'])
})

test('a recursive watch includes directories that are created, filled, moved and deleted', async () => {
  const folder = await app.newFolder()
  const outside = await app.newFolder()
  await mkdir(join(folder, 'a', 'deep'), { recursive: true })
  await writeFile(join(folder, 'a', 'deep', 'file'), 'x')
  await symlink(outside, join(folder, 'link'))
  const reader = await Reader.open(await watch(folder, true))

  await writeFile(join(folder, 'a', 'deep', 'file'), 'longer')
  await writeFile(join(outside, 'unseen'), '')
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE a/deep/file'])

  await mkdir(join(folder, 'new', 'sub'), { recursive: true })
  await writeFile(join(folder, 'new', 'sub', 'file'), 'x')
  const below = join(folder, 'new', 'sub', 'file')
  assert.deepEqual(await reader.until(below), [`CREATE ${folder}/new`, `CREATE ${folder}/new/sub`])
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE new/sub/file'])
  await appendFile(join(folder, 'new', 'sub', 'file'), '!')
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE new/sub/file'])

  await rename(join(folder, 'new'), join(folder, 'moved'))
  assert.deepEqual(await eventsSoFar(reader, folder), ['RENAME new', 'CREATE moved'])
  assert.deepEqual(await eventsSoFar(reader, folder), [])
  await appendFile(join(folder, 'moved', 'sub', 'file'), '!')
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE moved/sub/file'])

  await rename(join(folder, 'moved'), join(outside, 'moved'))
  assert.deepEqual(
    new Set(await eventsSoFar(reader, folder)),
    new Set(['DELETE moved/sub/file', 'DELETE moved/sub', 'DELETE moved']),
  )
  await appendFile(join(outside, 'moved', 'sub', 'file'), '!')
  await rm(join(folder, 'a'), { recursive: true })
  assert.deepEqual(
    new Set(await eventsSoFar(reader, folder)),
    new Set(['DELETE a/deep/file', 'DELETE a/deep', 'DELETE a']),
  )
})

test('a watch of a file survives its replacement, and a watch of a directory ends with it', async () => {
  const folder = await app.newFolder()
  const path = join(folder, 'file')
  await writeFile(path, 'x')
  const ofFile = await Reader.open(await watch(path))
  const ofFolder = await Reader.open(await watch(folder))

  await writeFile(join(folder, 'other'), 'new')
  await rename(join(folder, 'other'), path)
  assert.deepEqual(await ofFile.next(), { type: 'WRITE', path, name: 'file', is_dir: false })
  await rm(folder, { recursive: true })

  assert.equal((await ofFile.next())?.type, 'DELETE')
  await ofFolder.until(folder)
  assert.equal(ofFolder.seen.at(-1)?.type, 'DELETE')
})

test('a stream ends with its watch, and an unknown watch is not found', async () => {
  const folder = await app.newFolder()
  const id = await watch(folder)
  const reader = await Reader.open(id)

  assert.equal((await app.call('DELETE', `/fs/watch/${id}`)).status, 204)

  assert.equal(await reader.next(), undefined)
  assert.equal((await app.call('DELETE', `/fs/watch/${id}`)).status, 404)
  assert.equal((await app.call('GET', `/fs/watch/${id}/events`)).status, 404)
  assert.equal((await app.send('POST', '/fs/watch', { path: join(folder, 'none') })).status, 404)
})

test('reports files that exist only between two scans', async () => {
  const folder = await app.newFolder()
  const reader = await Reader.open(await watch(folder))

  writeFileSync(join(folder, 'short'), 'x')
  rmSync(join(folder, 'short'))
  assert.deepEqual(await eventsSoFar(reader, folder), ['CREATE short', 'DELETE short'])
  writeFileSync(join(folder, 'part'), 'x')
  renameSync(join(folder, 'part'), join(folder, 'whole'))
  assert.deepEqual(
    new Set(await eventsSoFar(reader, folder)),
    new Set(['CREATE part', 'DELETE part', 'CREATE whole', 'WRITE whole']),
  )
  assert.deepEqual(reader.seen[0], { type: 'CREATE', path: join(folder, 'short'), name: 'short' })
})

test('of many simultaneous changes, those that are not reported are counted as missing', async () => {
  const folder = await app.newFolder()
  const reader = await Reader.open(await watch(folder))

  for (let index = 0; index < 3000; index++) {
    writeFileSync(join(folder, `short-${index}`), '')
    rmSync(join(folder, `short-${index}`))
  }

  // An event of the folder itself means: look again.
  await reader.until(folder)
  assert.equal(reader.seen.at(-1)?.type, 'WRITE')
})

for (const [what, end] of Object.entries({
  deleted: (folder: string) => rm(folder, { recursive: true }),
  'moved away': (folder: string) => rename(folder, `${folder}-moved`),
  replaced: async (folder: string) => {
    renameSync(folder, `${folder}-old`)
    mkdirSync(folder)
  },
})) {
  test(`streams of a folder and of a file in it end when the folder is ${what}`, async () => {
    const folder = await app.newFolder()
    await writeFile(join(folder, 'file'), 'x')
    const ids = [await watch(folder), await watch(join(folder, 'file'))]
    const readers = await Promise.all(ids.map((id) => Reader.open(id)))

    await end(folder)
    for (const reader of readers) while (await reader.next());

    const told = readers.map(({ seen }) => seen.map(({ type, name }) => `${type} ${name}`))
    assert.deepEqual(told, [['DELETE file', `DELETE ${basename(folder)}`], ['DELETE file']])
    for (const id of ids) assert.equal((await app.call('DELETE', `/fs/watch/${id}`)).status, 204)
  })
}

test('two readers share the events, and one that has disconnected takes none', async () => {
  const folder = await app.newFolder()
  const id = await watch(folder)
  const leaving = new AbortController()
  await Reader.open(id, leaving.signal)
  leaving.abort()
  const readers = [await Reader.open(id), await Reader.open(id)]
  const names = Array.from({ length: 40 }, (_, index) => `dir-${index}`)

  const told = readers.map(async (reader) => {
    while (await reader.next()) {
      const all = readers.flatMap(({ seen }) => seen)
      if (all.length >= names.length) await app.call('DELETE', `/fs/watch/${id}`)
    }
  })
  for (const name of names) await mkdir(join(folder, name))
  await Promise.all(told)

  const seen = readers.flatMap((reader) => reader.seen.map(({ name }) => name))
  assert.deepEqual(seen.sort(), [...names].sort())
})

test('a flood of events is limited, and the limit is reported', async () => {
  const folder = await app.newFolder()
  const id = await watch(folder, true)

  // Moved in at once: of files that are written one by one, some events would be reported before others are lost.
  const outside = await app.newFolder()
  for (let start = 0; start < 2500; start += 500) {
    const names = Array.from({ length: 500 }, (_, index) => join(outside, String(start + index)))
    await Promise.all(names.map((name) => writeFile(name, '')))
  }
  await rename(outside, join(folder, 'flood'))

  const reader = await Reader.open(id)
  const told = await reader.until(folder)
  // Space that the reader frees is filled again as long as there are more events.
  assert.ok(told.length >= 1000 && told.length < 2500, String(told.length))
  assert.equal(reader.seen.at(-1)?.type, 'WRITE')
  await settled(reader, folder)
  await writeFile(join(folder, 'flood', '77'), 'x')
  assert.deepEqual(await eventsSoFar(reader, folder), ['WRITE flood/77'], 'it goes on as before')
})

/** Waits until all pending events were sent or dropped. */
async function settled(reader: Reader, folder: string): Promise<void> {
  for (;;) {
    const mark = join(folder, `mark-${++marks}`)
    await mkdir(mark)
    for (;;) {
      const event = await reader.next()
      if (event?.path === mark) return
      if (event?.path === folder) break // The final event may be among the dropped ones.
    }
  }
}

test('a session can have a hundred watches', async () => {
  const folder = await app.newFolder()
  const answers = await Promise.all(Array.from({ length: 110 }, () => app.send('POST', '/fs/watch', { path: folder })))

  const refused = answers.filter(({ status }) => status === 409)
  assert.ok(refused.length >= 10 && refused.length < 30, String(refused.length))
  assert.match(String(await refused[0]?.text()), /watch_limit_reached/)
  assert.equal(refused[0]?.headers.get('x-should-retry'), 'false')
  await rm(folder, { recursive: true })
  const another = { path: await app.newFolder() }
  while ((await app.send('POST', '/fs/watch', another)).status === 409); // Watches that have ended make room.
})
