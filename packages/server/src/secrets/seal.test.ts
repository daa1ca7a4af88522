import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Readable, type Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { seal, sealing, unseal, unsealing } from './seal.ts'

const key = randomBytes(32)

/** Processes the text in pieces of this length, so that nonce and tag are split at every position. */
function through(transform: Transform, text: Buffer, pieceBytes: number): Promise<Buffer> {
  const pieces = Array.from({ length: Math.ceil(text.length / pieceBytes) }, (_value, index) =>
    text.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  )
  return buffer(Readable.from(pieces).compose(transform))
}

test('an encrypted text is decrypted only with its key and context', () => {
  const sealed = seal(key, Buffer.from('p@ss'), 'proxy a')

  assert.equal(unseal(key, sealed, 'proxy a').toString(), 'p@ss')
  assert.throws(() => unseal(key, sealed, 'proxy b'))
  assert.throws(() => unseal(randomBytes(32), sealed, 'proxy a'))
  assert.ok(!sealed.includes('p@ss'))
})

test('the same text is never encrypted to the same bytes', () => {
  assert.notDeepEqual(seal(key, Buffer.from('a'), ''), seal(key, Buffer.from('a'), ''))
})

for (const length of [0, 1, 27, 28, 29, 100_000]) {
  test(`a stream of ${length} bytes is decrypted in any chunks`, async () => {
    const text = randomBytes(length)
    const sealed = await through(sealing(key, 'c'), text, 1000)

    for (const pieceBytes of length > 1000 ? [7919, 100_000] : [1, 5, 12, 1000]) {
      assert.deepEqual(await through(unsealing(key, 'c'), sealed, pieceBytes), text)
    }
    assert.deepEqual(unseal(key, sealed, 'c'), text)
  })
}

test('a stream that was changed, truncated or encrypted for another context fails', async () => {
  const sealed = await through(sealing(key, 'c'), randomBytes(1000), 100)
  const changed = Buffer.from(sealed)
  changed[500] = (changed[500] ?? 0) ^ 1

  await assert.rejects(through(unsealing(key, 'c'), changed, 64))
  await assert.rejects(through(unsealing(key, 'c'), sealed.subarray(0, -1), 64))
  await assert.rejects(through(unsealing(key, 'c'), sealed.subarray(0, 10), 64))
  await assert.rejects(through(unsealing(key, 'other'), sealed, 64))
})
