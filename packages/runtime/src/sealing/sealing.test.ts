import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sealValues } from './seal-values.ts'
import { SealingKeys } from './sealing-keys.ts'

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString()

test('values are decrypted to the same JSON, in their order', async () => {
  const keys = new SealingKeys()
  const values = ['p@ss "wörd"\0', { a: [1, null] }, '']

  const sealed = await sealValues(await keys.make(), values)
  const opened = await keys.open(sealed)

  assert.deepEqual(
    opened.map(textOf),
    values.map((value) => JSON.stringify(value)),
  )
  assert.ok(!JSON.stringify(sealed).includes('p@ss'))
})

test('a key works once, and only for values that were encrypted with it', async () => {
  const keys = new SealingKeys()
  const [one, other] = [await keys.make(), await keys.make()]
  const sealed = await sealValues(one, ['value'])

  await assert.rejects(keys.open({ ...sealed, key_id: other.key_id }))
  await keys.open(sealed)
  await assert.rejects(keys.open(sealed), /unknown key/)
})

test('the oldest unused keys are removed for newer ones', async () => {
  const keys = new SealingKeys()
  const first = await sealValues(await keys.make(), ['value'])
  let last = first
  for (let count = 0; count < 16; count += 1) last = await sealValues(await keys.make(), ['value'])

  await assert.rejects(keys.open(first), /unknown key/)
  assert.equal((await keys.open(last)).length, 1)
})
