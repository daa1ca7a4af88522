import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NameTable } from './name-table.ts'

test('each name has one address of the pool, which resolves back to it', () => {
  const names = new NameTable()

  const first = names.addressOf('one.test')
  const second = names.addressOf('two.test')

  assert.ok(first && second)
  assert.deepEqual([first, second].map(NameTable.isOfPool), [true, true])
  assert.notEqual(first, second)
  assert.equal(names.addressOf('one.test'), first)
  assert.equal(names.nameOf(first), 'one.test')
  assert.equal(names.nameOf('198.18.200.1'), undefined)
})

test('unused names are dropped first, and no address has two names', () => {
  const names = new NameTable()
  const held = names.addressOf('held.test')
  const release = names.hold('held.test')
  const recent = names.addressOf('recent.test')
  const owners = new Map<string, string>()

  for (let round = 0; round < 9_000; round++) {
    const address = names.addressOf(`name-${round}.test`)
    assert.ok(address && !owners.has(address))
    owners.set(address, `name-${round}.test`)
    names.addressOf('recent.test')
  }

  assert.equal(names.addressOf('held.test'), held)
  assert.equal(names.addressOf('recent.test'), recent)
  const known = [...owners].filter(([address]) => names.nameOf(address) !== undefined)
  assert.equal(known.length, 4_094)
  for (const [address, name] of known) assert.equal(names.nameOf(address), name)
  release()
  for (let round = 0; round < 5_000; round++) names.addressOf(`more-${round}.test`)
  assert.equal(names.nameOf(String(held)), undefined)
})
