import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { BrowserRequest, SessionName } from './browser.ts'
import { Tags } from './tags.ts'
import { derivedRefreshRate } from './viewport.ts'

const isValid = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
  schema.safeParse(value).success

test('accepts exactly the names that the rule permits', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 300 }), fc.stringMatching(/^[a-zA-Z0-9._-]{1,300}$/)), (name) => {
      const holds =
        name.length >= 1 && name.length <= 255 && [...name].every((character) => /[a-zA-Z0-9._-]/.test(character))
      assert.equal(isValid(SessionName, name), holds)
    }),
  )
})

test('counts the characters of tags, not their bytes', () => {
  assert.equal(isValid(Tags, { ['k'.repeat(128)]: 'v'.repeat(256) }), true)
  assert.equal(isValid(Tags, { ['k'.repeat(129)]: 'v' }), false)
  assert.equal(isValid(Tags, { k: 'v'.repeat(257) }), false)
  assert.equal(isValid(Tags, { k: '' }), true)
  assert.equal(isValid(Tags, { '': 'v' }), false)
  assert.equal(isValid(Tags, { schlüssel: 'v' }), false)
  assert.equal(isValid(Tags, { '😀': 'v' }), false)
})

test('accepts 50 tags and rejects 51', () => {
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))

  assert.equal(isValid(Tags, tags(50)), true)
  assert.equal(isValid(Tags, tags(51)), false)
})

test('returns every valid tag set unchanged, whatever its keys are', () => {
  const ordinaryKey = fc.stringMatching(/^[A-Za-z0-9 _.:/=+@-]{1,128}$/).filter((key) => key !== '__proto__') // The body parser rejects this key.
  const key = fc.oneof(fc.constantFrom('constructor', 'toString', 'hasOwnProperty'), ordinaryKey)
  fc.assert(
    fc.property(fc.dictionary(key, fc.stringMatching(/^[A-Za-z0-9 _.:/=+@-]{0,256}$/), { maxKeys: 50 }), (tags) => {
      assert.deepEqual({ ...Tags.parse(tags) }, { ...tags })
    }),
  )
})

for (const [rule, body, holds] of [
  ['a timeout of 10', { timeout_seconds: 10 }, true],
  ['a timeout of 9', { timeout_seconds: 9 }, false],
  ['a timeout of 259200', { timeout_seconds: 259_200 }, true],
  ['a timeout of 259201', { timeout_seconds: 259_201 }, false],
  ['a timeout of 10.5', { timeout_seconds: 10.5 }, false],
  ['a viewport without a height', { viewport: { width: 800 } }, false],
  ['a viewport of 1x1', { viewport: { width: 1, height: 1 } }, true],
  ['a start_url of 2048 characters', { start_url: 'x'.repeat(2048) }, true],
  ['a start_url of 2049 characters', { start_url: 'x'.repeat(2049) }, false],
  ['memory 8GiB', { memory: '8GiB' }, true],
  ['memory 1GiB', { memory: '1GiB' }, true],
  ['memory 6GiB', { memory: '6GiB' }, false],
  ['an unknown region', { region: 'us-north' }, false],
  ['a policy of its own', { chrome_policy: { BookmarkBarEnabled: true } }, true],
  ['a managed policy', { chrome_policy: { ProxySettings: {} } }, false],
  ['a policy over 5 MiB', { chrome_policy: { HomepageLocation: 'x'.repeat(5 * 1024 * 1024) } }, false],
  ['a field that is not built', { video_memory: '1GiB' }, false],
  ['an unknown field', { colour: 'red' }, true],
  ['headless as text', { headless: 'true' }, false],
] as const) {
  test(`${holds ? 'accepts' : 'rejects'} ${rule}`, () => {
    assert.equal(isValid(BrowserRequest, body), holds)
  })
}

test('derives lower refresh rates for larger screens', () => {
  assert.equal(derivedRefreshRate(1920, 1080), 25)
  assert.equal(derivedRefreshRate(390, 844), 60)
  assert.equal(derivedRefreshRate(1280, 800), 60)
  assert.equal(derivedRefreshRate(1281, 801), 25)
  assert.equal(derivedRefreshRate(2560, 1440), 10)
  assert.equal(derivedRefreshRate(5000, 5000), 10)
})
