import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { buffer, text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { BlobExists, BlobNotFound, type Blobs } from './blobs.ts'

const longFromNow = () => new Date(Date.now() + 60 * 60 * 1000)
const mebibyte = 1024 ** 2

export interface OpenBlobs {
  readonly blobs: Blobs
  close(): Promise<void>
}

export async function* pieces(...parts: (string | Uint8Array | Error)[]) {
  for (const part of parts) {
    if (part instanceof Error) throw part
    yield Buffer.from(part)
  }
}

/** The behaviour of every blob store. */
export async function blobSuite(kind: string, open: () => Promise<OpenBlobs>): Promise<void> {
  const { blobs, close } = await open()
  after(close)

  async function newBlob(...parts: (string | Uint8Array)[]): Promise<string> {
    const name = `suite-${randomUUID()}`
    await blobs.write(name, pieces(...parts))
    return name
  }

  test(`${kind}: a blob is read as it was written`, async () => {
    const name = `suite-${randomUUID()}`

    assert.deepEqual(await blobs.write(name, pieces('hel', 'lo')), { sizeBytes: 5 })

    assert.equal(await text(await blobs.read(name)), 'hello')
  })

  test(`${kind}: a blob may be empty`, async () => {
    const name = await newBlob()

    assert.equal(await text(await blobs.read(name)), '')
    assert.equal(await text(await blobs.read(name, { start: 0, length: 10 })), '')
  })

  test(`${kind}: a large blob is read as it was written, whatever pieces it came in`, async () => {
    const content = randomBytes(17 * mebibyte + 7)
    const cuts = [0, 1, 100_001, 9 * mebibyte, 9 * mebibyte + 1, content.length]
    const parts = cuts.slice(1).map((end, index) => content.subarray(cuts[index], end))

    const name = await newBlob(...parts)

    assert.ok(content.equals(await buffer(await blobs.read(name))))
    assert.ok(content.subarray(-10).equals(await buffer(await blobs.read(name, { start: content.length - 10 }))))
  })

  test(`${kind}: a range is read, without bytes after the end`, async () => {
    const name = await newBlob('0123456789')
    const read = async (start: number, length?: number) =>
      text(await blobs.read(name, { start, ...(length !== undefined && { length }) }))

    assert.equal(await read(0, 1), '0')
    assert.equal(await read(3, 4), '3456')
    assert.equal(await read(7), '789')
    assert.equal(await read(8, 100), '89')
    assert.equal(await read(4, 0), '')
    assert.equal(await read(10), '')
    assert.equal(await read(99, 5), '')
  })

  test(`${kind}: a missing blob is an error of a separate class`, async () => {
    await assert.rejects(blobs.read(`suite-${randomUUID()}`), BlobNotFound)
    await assert.rejects(blobs.read(`suite-${randomUUID()}`, { start: 1 }), BlobNotFound)
    await assert.rejects(blobs.read(`suite-${randomUUID()}`, { start: 1, length: 0 }), BlobNotFound)
  })

  for (const [size, parts] of [
    ['small', ['half']],
    // S3 gets it in two parts.
    ['large', [randomBytes(9 * mebibyte)]],
  ] as const) {
    test(`${kind}: an interrupted ${size} write leaves nothing`, async () => {
      const name = `suite-${randomUUID()}`

      await assert.rejects(blobs.write(name, pieces(...parts, new Error('the client has left'))), /has left/)

      await assert.rejects(blobs.read(name), BlobNotFound)
      assert.deepEqual(await Array.fromAsync(blobs.list({ prefix: name, before: longFromNow() })), [])
    })

    test(`${kind}: a ${size} blob is never replaced, and of two writes of one name the first to complete wins`, async () => {
      const name = await newBlob(...parts)
      await assert.rejects(blobs.write(name, pieces('other', ...parts)), BlobExists)
      assert.ok(Buffer.from(parts[0] as string).equals(await buffer(await blobs.read(name))))

      const contested = `suite-${randomUUID()}`
      const both = await Promise.allSettled(['1', '2'].map((first) => blobs.write(contested, pieces(first, ...parts))))
      const winner = both.findIndex(({ status }) => status === 'fulfilled')
      const [loser] = both.filter(({ status }) => status === 'rejected')
      assert.ok(loser?.status === 'rejected' && loser.reason instanceof BlobExists)
      assert.equal(await text(await blobs.read(contested, { start: 0, length: 1 })), `${winner + 1}`)
    })
  }

  test(`${kind}: a reader gets all of a removed blob, and a second removal succeeds`, async () => {
    const name = await newBlob('x'.repeat(300_000))
    const reader = await blobs.read(name)
    await blobs.remove(name)
    await blobs.remove(name)

    assert.equal((await text(reader)).length, 300_000)
    await assert.rejects(blobs.read(name), BlobNotFound)
  })

  test(`${kind}: lists blobs with a prefix that are older than a given time`, async () => {
    const prefix = `listed-${randomUUID()}-`
    const names = ['a', 'b', 'c'].map((end) => `${prefix}${end}`)
    for (const name of names) await blobs.write(name, pieces('x'))
    const list = async (filter: { prefix?: string; before: Date }) =>
      (await Array.fromAsync(blobs.list(filter))).toSorted()

    assert.deepEqual(await list({ prefix, before: longFromNow() }), names)
    assert.deepEqual(await list({ prefix: `${prefix}b`, before: longFromNow() }), [`${prefix}b`])
    assert.deepEqual(await list({ before: new Date(0) }), [])
    const all = await list({ before: longFromNow() })
    assert.ok(names.every((name) => all.includes(name)))
  })

  test(`${kind}: removing incomplete writes affects neither blobs nor writes in progress`, async () => {
    const name = await newBlob('whole')
    const goOn = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const later = `suite-${randomUUID()}`
    const writing = blobs.write(
      later,
      (async function* () {
        yield randomBytes(12 * mebibyte)
        begun.resolve()
        await goOn.promise
        yield Buffer.from('end')
      })(),
    )

    await begun.promise
    await blobs.removeUnfinished(new Date(Date.now() - 60 * 60 * 1000))
    goOn.resolve()

    assert.deepEqual(await writing, { sizeBytes: 12 * mebibyte + 3 })
    assert.equal(await text(await blobs.read(name)), 'whole')
  })

  test(`${kind}: rejects a path as a name`, async () => {
    for (const name of ['../master-key', 'a/b', '', '.', 'a b', 'a\0']) {
      await assert.rejects(blobs.read(name), /is not a valid blob name/)
      await assert.rejects(blobs.write(name, pieces('x')), /is not a valid blob name/)
      await assert.rejects(blobs.remove(name), /is not a valid blob name/)
    }
  })
}
