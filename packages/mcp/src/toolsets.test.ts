import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseToolsets, toolsets } from './toolsets.ts'

test('reads names with commas or spaces, prefixes, hyphens and names of tools', () => {
  const read = parseToolsets('manage_profiles, api-keys computer_action  exec_command')

  assert.deepEqual([...read], ['profiles', 'api_keys', 'computer', 'shell'])
})

test('reads all and none', () => {
  assert.deepEqual([...parseToolsets('all')], [...toolsets])
  assert.deepEqual([...parseToolsets('none')], [])
  assert.deepEqual([...parseToolsets('')], [])
})

test('names unknown toolsets', () => {
  assert.throws(() => parseToolsets('browsers,brwsers'), /unknown toolset brwsers; there are: profiles/)
})
